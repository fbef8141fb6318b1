package gridbench.datagrid.task;

/**
 * Which keys a task reads, updates and inserts. Objects for reading and updating have the keys from 0
 * on, shared objects the keys after these, and insertions what follows.
 */
public final class TaskKeys {
    private final long repeats;
    private final long reads;
    private final long touched;
    private final long inserts;
    private final long objects;
    private final long firstInserted;

    public TaskKeys(Parameters parameters) {
        repeats = parameters.repeats();
        reads = parameters.reads();
        touched = parameters.reads() + parameters.updates();
        inserts = parameters.inserts();
        objects = parameters.objects();
        firstInserted = parameters.objects() + parameters.shared();
    }

    /** The key of a shared object. */
    public long shared(long which) {
        return objects + which;
    }

    /** The key of an object that is read in an iteration. */
    public long read(long task, long iteration, long which) {
        return ((task * repeats + iteration) * touched + which) % objects;
    }

    /** The key of an object that is updated in an iteration. */
    public long update(long task, long iteration, long which) {
        return ((task * repeats + iteration) * touched + reads + which) % objects;
    }

    /** The key of an object that is inserted in an iteration. */
    public long insert(long task, long iteration, long which) {
        return firstInserted + (task * repeats + iteration) * inserts + which;
    }
}

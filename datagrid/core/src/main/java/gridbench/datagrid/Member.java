package gridbench.datagrid;

/** A storage member, in this process or in one that this process has started. */
public interface Member extends AutoCloseable {
    /** How many members the cluster has, as this one sees it. */
    int members();

    /** How many objects this member is responsible for, copies of others' not counted. */
    long entries();

    /** How many objects of other members it keeps copies of; -1 if the product does not tell. */
    long backups();

    /** Bytes of memory in use: by default those of this process's heap, after a collection. */
    default long used() {
        System.gc();
        var memory = Runtime.getRuntime();
        return memory.totalMemory() - memory.freeMemory();
    }

    @Override
    void close();
}

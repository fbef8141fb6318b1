package gridbench.datagrid.task;

/** What a task does, one step after the other. A step that fails does not end the task. */
public interface Steps {
    void read(long key);

    /** Reads an object that all tasks read. */
    void readShared(long key);

    /** Reads an object, and writes it back changed. */
    void update(long key);

    /** Stores a new object; whether it is there now. */
    boolean insert(long key);

    /** Stores an object in place of one that is there, which is not read. */
    void overwrite(long key);

    /** Reads {@code count} objects with keys that follow each other, at once. */
    void scan(long first, int count);

    /** Calls the random generator. */
    void compute(long calls);

    void sleep(double seconds);
}

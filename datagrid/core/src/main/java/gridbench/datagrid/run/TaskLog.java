package gridbench.datagrid.run;

/** The tasks of one client, in the order in which it processed them. */
final class TaskLog {
    final long[] id;
    final long[] began;
    final long[] ended;
    final long[] operations;
    final String[] why;
    private int count;

    /**
     * @param tasks that this client is to process
     */
    TaskLog(int tasks) {
        id = new long[tasks];
        began = new long[tasks];
        ended = new long[tasks];
        operations = new long[tasks];
        why = new String[tasks];
    }

    /** How many tasks have ended. */
    int count() {
        return count;
    }

    void begin(long task, long time) {
        id[count] = task;
        began[count] = time;
        why[count] = "";
    }

    /** Tells what went wrong in the present task; the first one is kept. */
    void wrong(String what) {
        // Before the first task, and after the last one, there is none.
        if (count < why.length && "".equals(why[count])) {
            why[count] = what;
        }
    }

    void end(long time, long answered) {
        ended[count] = time;
        operations[count] = answered;
        count++;
    }
}

package gridbench.datagrid.task;

/** What tasks do. Each client has an object of its own. */
public interface Task {
    /**
     * Does all steps of one task.
     *
     * @param task its number, from 0
     */
    void run(long task, Steps steps);
}

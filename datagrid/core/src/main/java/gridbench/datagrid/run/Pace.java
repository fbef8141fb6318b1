package gridbench.datagrid.run;

/** When a client's operations begin. */
interface Pace {
    /** Waits until the next operation is to begin; the time at which it does. */
    long begin();

    /** When the operation that was begun last should have begun. */
    long intended();
}

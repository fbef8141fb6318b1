package gridbench.datagrid.run;

import gridbench.datagrid.task.Operation;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.List;

/**
 * What one client sees. No other thread writes here, and only the progress is read by others while
 * the client works, so that nothing is shared between processors.
 */
final class Recorder {
    private static final VarHandle ANSWERED = progress("answered");
    private static final VarHandle TASKS = progress("tasks");

    final Latencies service = new Latencies();
    final Latencies intended = new Latencies();
    final Windows windows;
    final Errors errors = new Errors();
    final TaskLog log;
    // Keys of insertions that failed, and may have been done.
    final List<Long> doubtful = new ArrayList<>();
    final long[] counts = new long[Operation.values().length];
    long shared;
    long wrong;
    long missing;
    long inDoubt;
    long conflicts;

    private final boolean open;
    private long answered;
    private long answeredBefore;
    private long tasks;

    /**
     * @param open whether latencies count from intended times, too
     * @param tasks that the client is to process
     */
    Recorder(boolean open, Windows windows, int tasks) {
        this.open = open;
        this.windows = windows;
        log = new TaskLog(tasks);
    }

    /** An operation was answered. */
    void answered(Operation operation, long shouldBegin, long began, long ended) {
        service.record(operation, ended - began);
        if (open) {
            intended.record(operation, ended - shouldBegin);
        }
        counts[operation.ordinal()]++;
        windows.answered(ended);
        ANSWERED.setOpaque(this, answered + 1);
    }

    /** An operation failed. */
    void failed(Throwable failure, long ended) {
        log.wrong(errors.count(failure));
        windows.failed(ended);
    }

    /** An object is not there. */
    void missing(long key) {
        missing++;
        log.wrong("the object with key " + key + " is missing");
    }

    /** A value is not the one that was stored. */
    void wrong(long key) {
        wrong++;
        log.wrong("the value of key " + key + " is not what was stored");
    }

    void beginTask(long task, long time) {
        log.begin(task, time);
        answeredBefore = answered;
    }

    void endTask(long time) {
        log.end(time, answered - answeredBefore);
        TASKS.setOpaque(this, tasks + 1);
    }

    /** Operations answered so far; any thread may ask. */
    long answered() {
        return (long) ANSWERED.getOpaque(this);
    }

    /** Tasks ended so far; any thread may ask. */
    long tasks() {
        return (long) TASKS.getOpaque(this);
    }

    private static VarHandle progress(String field) {
        try {
            return MethodHandles.lookup().findVarHandle(Recorder.class, field, long.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }
}

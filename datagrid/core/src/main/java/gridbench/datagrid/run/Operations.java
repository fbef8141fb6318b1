package gridbench.datagrid.run;

import gridbench.datagrid.Store;
import gridbench.datagrid.task.Operation;
import gridbench.datagrid.value.Values;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * One client's operations: carried out, timed and checked. What has to be prepared is prepared before
 * an operation begins, and what was read is compared after it has ended.
 */
final class Operations {
    // Far more than many clients with one object need. A store that never replaces shall not hold a
    // client forever.
    private static final int MOST_CONFLICTS = 100_000;

    private final Store store;
    private final int size;
    private final boolean atomic;
    private final Clock clock;
    private final Pace pace;
    private final Recorder recorder;
    private byte[] buffer;

    /**
     * @param size bytes of each value
     * @param atomic whether updates replace what was read, and are repeated if it has changed
     */
    Operations(Store store, int size, boolean atomic, Clock clock, Pace pace, Recorder recorder) {
        this.store = store;
        this.size = size;
        this.atomic = atomic;
        this.clock = clock;
        this.pace = pace;
        this.recorder = recorder;
        buffer = new byte[size];
    }

    boolean read(long key) {
        var began = pace.begin();
        byte[] value;
        long ended;
        try {
            value = store.get(key);
            ended = clock.now();
        } catch (Exception e) {
            recorder.failed(e, clock.now());
            return false;
        }
        recorder.answered(Operation.READ, pace.intended(), began, ended);
        check(key, value);
        return true;
    }

    /**
     * Reads an object and writes it back.
     *
     * @param count by how many its counter of updates grows
     */
    void update(long key, long count) {
        var began = pace.begin();
        var writing = false;
        byte[] value;
        long ended;
        try {
            for (var tries = 0; ; tries++) {
                writing = false;
                if (tries > MOST_CONFLICTS) {
                    throw new IllegalStateException("the object has changed each of "
                            + MOST_CONFLICTS + " times between it was read and replaced");
                }
                value = store.get(key);
                if (value == null || !Values.isOf(key, size, value)) {
                    recorder.windows.failed(clock.now());
                    check(key, value);
                    return;
                }
                writing = true;
                if (write(key, value, count)) {
                    break;
                }
            }
            ended = clock.now();
        } catch (Exception e) {
            failed(e, writing);
            return;
        }
        recorder.answered(Operation.UPDATE, pace.intended(), began, ended);
        if (!Values.hasPattern(key, value)) {
            recorder.wrong(key);
        }
    }

    boolean insert(long key) {
        return store(Operation.INSERT, key);
    }

    boolean overwrite(long key) {
        return store(Operation.OVERWRITE, key);
    }

    void scan(long first, int count) {
        List<Long> keys = new ArrayList<>(count);
        for (var key = first; key < first + count; key++) {
            keys.add(key);
        }
        var began = pace.begin();
        Map<Long, byte[]> values;
        long ended;
        try {
            values = store.getAll(keys);
            ended = clock.now();
        } catch (Exception e) {
            recorder.failed(e, clock.now());
            return;
        }
        recorder.answered(Operation.SCAN, pace.intended(), began, ended);
        for (var key : keys) {
            check(key, values.get(key));
        }
    }

    /** Counts that objects could not be removed. */
    void failedToRemove(Exception failure) {
        recorder.failed(failure, clock.now());
    }

    private boolean write(long key, byte[] value, long count) throws Exception {
        if (!atomic) {
            Values.countUpdates(value, count);
            store.put(key, value);
            return true;
        }
        System.arraycopy(value, 0, buffer, 0, size);
        Values.countUpdates(buffer, count);
        if (store.replace(key, value, buffer)) {
            return true;
        }
        recorder.conflicts++;
        return false;
    }

    private boolean store(Operation operation, long key) {
        Values.fill(key, buffer);
        var began = pace.begin();
        long ended;
        try {
            store.put(key, buffer);
            ended = clock.now();
        } catch (Exception e) {
            failed(e, operation == Operation.INSERT);
            if (operation == Operation.INSERT) {
                recorder.doubtful.add(key);
            }
            return false;
        }
        recorder.answered(operation, pace.intended(), began, ended);
        return true;
    }

    private void failed(Exception failure, boolean inDoubt) {
        recorder.failed(failure, clock.now());
        if (inDoubt) {
            recorder.inDoubt++;
        }
        // What is behind a store may still hold the array, and send it later.
        buffer = new byte[size];
    }

    private void check(long key, byte[] value) {
        if (value == null) {
            recorder.missing(key);
        } else if (!Values.holds(key, size, value)) {
            recorder.wrong(key);
        }
    }
}

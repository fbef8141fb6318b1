package gridbench.datagrid.run;

import java.util.Arrays;

/** One client's operations in windows of time, each as long as the others. Times do not go back. */
final class Windows {
    private final long length;
    private long end;
    private int current;
    private long[] operations = new long[64];
    private long[] errors = new long[64];

    /**
     * @param begin of the first window, as {@link Clock#now} has it
     * @param length in nanoseconds
     */
    Windows(long begin, long length) {
        this.length = length;
        end = begin + length;
    }

    /** An operation was answered at this time. */
    void answered(long time) {
        if (time - end >= 0) {
            advance(time);
        }
        operations[current]++;
    }

    /** An operation failed at this time. */
    void failed(long time) {
        if (time - end >= 0) {
            advance(time);
        }
        errors[current]++;
    }

    /** How many windows there are, up to the last one in which something happened. */
    int count() {
        return current + 1;
    }

    /** Adds the operations answered in each window to a sum. */
    void addOperations(long[] sum) {
        add(operations, sum);
    }

    /** Adds the operations that failed in each window to a sum. */
    void addErrors(long[] sum) {
        add(errors, sum);
    }

    private void advance(long time) {
        var further = 1 + (time - end) / length;
        current = Math.toIntExact(current + further);
        end += further * length;
        if (current >= operations.length) {
            var room = Math.max(2 * operations.length, current + 1);
            operations = Arrays.copyOf(operations, room);
            errors = Arrays.copyOf(errors, room);
        }
    }

    private void add(long[] counts, long[] sum) {
        for (var i = 0; i < count(); i++) {
            sum[i] += counts[i];
        }
    }
}

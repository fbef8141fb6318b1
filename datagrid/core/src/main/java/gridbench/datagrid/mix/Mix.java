package gridbench.datagrid.mix;

import gridbench.datagrid.task.Operation;

/**
 * Operations drawn at random, as the core workloads of YCSB have them.
 *
 * @param read share of reads; all shares together are 1
 * @param overwrite share of objects stored unread (the "update" of YCSB)
 * @param update share of objects read and then written ("read-modify-write")
 * @param insert share of new objects
 * @param scan share of scans
 * @param keys how keys of objects that are there are drawn
 * @param scanLength most objects of a scan; lengths from 1 on are equally frequent
 * @param seed what is drawn follows from it
 */
public record Mix(
        double read,
        double overwrite,
        double update,
        double insert,
        double scan,
        Keys keys,
        int scanLength,
        long seed) {
    /** How keys are drawn. */
    public enum Keys {
        UNIFORM,
        ZIPFIAN,
        LATEST
    }

    /** @throws IllegalArgumentException if the shares are not 1 together */
    public Mix {
        var whole = read + overwrite + update + insert + scan;
        if (Math.abs(whole - 1) > 1e-6) {
            throw new IllegalArgumentException(
                    "the shares of a mix have to be 1 together, and are " + whole);
        }
    }

    /**
     * The operation that a random number stands for.
     *
     * @param drawn from 0 up to, not including, 1
     */
    public Operation operation(double drawn) {
        var left = drawn - read;
        if (left < 0) {
            return Operation.READ;
        }
        left -= overwrite;
        if (left < 0) {
            return Operation.OVERWRITE;
        }
        left -= update;
        if (left < 0) {
            return Operation.UPDATE;
        }
        left -= insert;
        if (left < 0) {
            return Operation.INSERT;
        }
        // Shares that are binary fractions add up to a little less than 1: what is left goes to a
        // kind that is in the mix.
        return scan > 0 ? Operation.SCAN : read > 0 ? Operation.READ : most();
    }

    private Operation most() {
        if (overwrite >= update && overwrite >= insert) {
            return Operation.OVERWRITE;
        }
        return update >= insert ? Operation.UPDATE : Operation.INSERT;
    }
}

package gridbench.datagrid.run;

import gridbench.datagrid.Store;

/**
 * The plainest loop of reads, to which the latencies of tasks are compared: what it does not see, the
 * clients have added.
 */
public final class BareLoop {
    private BareLoop() {}

    /**
     * Reads objects, one after the other and from the beginning again.
     *
     * @param operations that are measured
     * @param warm operations before these
     * @param first key
     * @param last key + 1
     * @return latencies
     * @throws IllegalStateException if an object is not there
     */
    public static Slots run(Store store, long operations, long warm, long first, long last)
            throws Exception {
        // What a process does first it does slowly: both loops are the same code.
        measure(store, warm, first, last);
        return measure(store, operations, first, last);
    }

    private static Slots measure(Store store, long operations, long first, long last)
            throws Exception {
        var histogram = Latencies.empty();
        var key = first;
        for (var i = 0L; i < operations; i++) {
            var began = System.nanoTime();
            var value = store.get(key);
            var ended = System.nanoTime();
            if (value == null) {
                throw new IllegalStateException("the object with key " + key + " is missing");
            }
            histogram.recordValue(ended - began);
            key = key + 1 < last ? key + 1 : first;
        }
        return Slots.of(histogram);
    }
}

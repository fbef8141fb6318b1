package gridbench.datagrid.data;

import gridbench.datagrid.Store;
import gridbench.datagrid.value.Values;
import java.util.HashMap;
import java.util.function.LongConsumer;

/** Objects that are stored before a run. */
public final class Loading {
    /**
     * What was stored.
     *
     * @param bytes of values
     */
    public record Loaded(long objects, long bytes, double seconds) {}

    private Loading() {}

    /**
     * Stores objects, several at once. Values are made as they are stored, so that there is one batch
     * of them in memory.
     *
     * @param first key
     * @param last key + 1
     * @param size bytes of a value
     * @param batch bytes of values that are stored at once; at least one value
     * @param progress receives the number of objects stored, ten times a second
     */
    public static Loaded load(
            Store store, long first, long last, int size, long batch, LongConsumer progress)
            throws Exception {
        var began = System.nanoTime();
        var often = new Often(progress);
        var most = Math.max(1, batch / size);
        var values = new HashMap<Long, byte[]>();
        for (var key = first; key < last; ) {
            var end = Math.min(last, key + most);
            for (; key < end; key++) {
                values.put(key, Values.make(key, size));
            }
            store.putAll(values);
            values.clear();
            often.tell(key - first);
        }
        var objects = last - first;
        return new Loaded(objects, objects * size, (System.nanoTime() - began) / 1e9);
    }
}

package gridbench.datagrid.data;

import gridbench.datagrid.Store;
import gridbench.datagrid.value.Values;
import java.util.List;
import java.util.function.LongConsumer;

/** Reads objects after a run, and checks all of them. */
public final class Checking {
    /**
     * What was found.
     *
     * @param read objects that are there
     * @param missing objects that are not
     * @param wrong values that are not what was stored
     * @param updates of all objects together, as their values count them
     */
    public record Checked(long read, long missing, long wrong, long updates) {}

    private static final long MOST_AT_ONCE = 1000;
    private static final long BYTES_AT_ONCE = 4 << 20;

    private final Store store;
    private final int size;
    private long read;
    private long missing;
    private long wrong;
    private long updates;

    private Checking(Store store, int size) {
        this.store = store;
        this.size = size;
    }

    /**
     * Reads objects.
     *
     * @param first key
     * @param last key + 1
     * @param size bytes of a value
     * @param progress receives the number of keys checked, ten times a second
     */
    public static Checked check(Store store, long first, long last, int size, LongConsumer progress)
            throws Exception {
        var checking = new Checking(store, size);
        var often = new Often(progress);
        var most = Math.max(1, Math.min(MOST_AT_ONCE, BYTES_AT_ONCE / size));
        Keys.forEach(first, last, most, keys -> {
            checking.check(keys);
            often.tell(checking.read + checking.missing);
        });
        return new Checked(checking.read, checking.missing, checking.wrong, checking.updates);
    }

    private void check(List<Long> keys) throws Exception {
        var values = store.getAll(keys);
        for (var key : keys) {
            var value = values.get(key);
            if (value == null) {
                missing++;
                continue;
            }
            read++;
            if (Values.holds(key, size, value)) {
                updates += Values.updates(value);
            } else {
                wrong++;
            }
        }
    }
}

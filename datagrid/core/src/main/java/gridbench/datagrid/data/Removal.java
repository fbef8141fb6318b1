package gridbench.datagrid.data;

import gridbench.datagrid.Store;

/** Objects that are removed after a run. */
public final class Removal {
    private static final long AT_ONCE = 1000;

    private Removal() {}

    /**
     * Removes objects that may be there.
     *
     * @param first key
     * @param last key + 1
     */
    public static void remove(Store store, long first, long last) throws Exception {
        Keys.forEach(first, last, AT_ONCE, store::remove);
    }
}

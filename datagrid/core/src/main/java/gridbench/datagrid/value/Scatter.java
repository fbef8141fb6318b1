package gridbench.datagrid.value;

/** Spreads whole numbers, also those that follow each other, evenly over all 64 bits. */
public final class Scatter {
    private Scatter() {}

    /** The finalizer of MurmurHash3: each number has its own result. */
    public static long of(long number) {
        var mixed = number;
        mixed = (mixed ^ (mixed >>> 33)) * 0xff51afd7ed558ccdL;
        mixed = (mixed ^ (mixed >>> 33)) * 0xc4ceb9fe1a85ec53L;
        return mixed ^ (mixed >>> 33);
    }
}

package gridbench.datagrid.mix;

import java.util.SplittableRandom;

/**
 * Few keys are frequent, and they are spread over all keys, as in YCSB: ranks of 10 billion items are
 * hashed (FNV-1a) onto the objects that there are. So the most frequent key takes 3.8 % of the draws,
 * whatever the number of objects.
 */
final class ScrambledZipfianKeys implements KeySource {
    private static final long ITEMS = 10_000_000_000L;
    // Summing up ten billion weights takes minutes.
    private static final double ZETA = 26.46902820178302;
    private static final long FNV_OFFSET = 0xcbf29ce484222325L;
    private static final long FNV_PRIME = 0x100000001b3L;

    private final Zipfian ranks = new Zipfian(ITEMS, ZETA);
    private final long objects;

    ScrambledZipfianKeys(long objects) {
        this.objects = objects;
    }

    @Override
    public long next(SplittableRandom random) {
        return Long.remainderUnsigned(hash(ranks.rank(random.nextDouble())), objects);
    }

    private static long hash(long rank) {
        var hash = FNV_OFFSET;
        for (var shift = 0; shift < Long.SIZE; shift += Byte.SIZE) {
            hash = (hash ^ (rank >>> shift & 0xff)) * FNV_PRIME;
        }
        return hash;
    }
}

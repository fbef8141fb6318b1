package gridbench.datagrid.mix;

/**
 * Ranks of which low ones are drawn often: rank r with a probability proportional to 1 / (r + 1)^theta.
 *
 * <p>The method is that of Gray, Sundaresan, Englert, Baclawski and Weinberger, "Quickly generating
 * billion-record synthetic databases" (SIGMOD 1994): ranks 0 and 1 are exact, further ones come from
 * the inverse of a continuous distribution. The number of items can grow.
 */
public final class Zipfian {
    /** The constant of YCSB. */
    public static final double THETA = 0.99;

    private static final double ALPHA = 1 / (1 - THETA);
    private static final double ZETA_OF_2 = 1 + Math.pow(0.5, THETA);

    private long items;
    private double zeta;
    private double eta;

    /** For items of which none has to be counted yet: sums up all their weights, once. */
    public Zipfian(long items) {
        this(items, sum(0, items));
    }

    /**
     * For a sum of weights that is known.
     *
     * @param zeta sum of 1 / i^0.99 for i from 1 to {@code items}
     */
    public Zipfian(long items, double zeta) {
        this.items = items;
        this.zeta = zeta;
        eta = eta();
    }

    /** Another one of the same items, which grows by itself. */
    public Zipfian copy() {
        return new Zipfian(items, zeta);
    }

    /** How many items there are. */
    public long items() {
        return items;
    }

    /** One more item. */
    public void grow() {
        zeta += sum(items, items + 1);
        items++;
        eta = eta();
    }

    /**
     * The rank that a random number stands for.
     *
     * @param drawn from 0 up to, not including, 1
     * @return from 0 to {@link #items} - 1
     */
    public long rank(double drawn) {
        var weight = drawn * zeta;
        if (weight < 1 || items == 1) {
            return 0;
        }
        if (weight < ZETA_OF_2) {
            return 1;
        }
        var rank = (long) (items * Math.pow(eta * drawn - eta + 1, ALPHA));
        return Math.min(rank, items - 1);
    }

    private double eta() {
        return (1 - Math.pow(2.0 / items, 1 - THETA)) / (1 - ZETA_OF_2 / zeta);
    }

    private static double sum(long from, long to) {
        var sum = 0.0;
        for (var i = from; i < to; i++) {
            sum += 1 / Math.pow(i + 1, THETA);
        }
        return sum;
    }
}

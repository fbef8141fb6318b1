package gridbench.datagrid.mix;

/**
 * Ranks with low ones drawn often: rank r with a probability proportional to 1 / (r + 1)^theta.
 *
 * <p>The method is that of Gray, Sundaresan, Englert, Baclawski and Weinberger, "Quickly generating
 * billion-record synthetic databases" (SIGMOD 1994): ranks 0 and 1 are exact, further ones come from
 * the inverse of a continuous distribution. The number of items can grow.
 */
public final class Zipfian {
    /** The constant of YCSB. */
    public static final double THETA = 0.99;

    /**
     * So many weights are summed up one by one. Of those beyond them the sum is an integral: by the
     * formula of Euler and Maclaurin it differs from that of exact weights by no more than
     * {@code THETA (THETA + 1) (THETA + 2) / 720 / SUMMED^(THETA + 3)}, which is below 1e-26, so that
     * only rounding is left: below 1e-11.
     */
    static final long SUMMED = 1_000_000;

    private static final double ALPHA = 1 / (1 - THETA);
    private static final double ZETA_OF_2 = 1 + Math.pow(0.5, THETA);

    private long items;
    private double zeta;
    private double eta;

    /** For new items: sums all their weights, once. */
    public Zipfian(long items) {
        this(items, zeta(items));
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

    /** The sum of 1 / i^0.99 for i from 1 to {@code items}. */
    static double zeta(long items) {
        var zeta = sum(0, Math.min(items, SUMMED));
        return items <= SUMMED ? zeta : zeta + beyond(SUMMED, items);
    }

    private static double sum(long from, long to) {
        var sum = 0.0;
        for (var i = from; i < to; i++) {
            sum += weight(i + 1);
        }
        return sum;
    }

    /** The sum of weights from that of {@code last + 1} on: their integral, and how it differs from a sum. */
    private static double beyond(long last, long items) {
        var integral = (Math.pow(items, 1 - THETA) - Math.pow(last, 1 - THETA)) / (1 - THETA);
        var ends = (weight(items) - weight(last)) / 2;
        var slopes = THETA * (weight(last) / last - weight(items) / items) / 12;
        return integral + ends + slopes;
    }

    private static double weight(long item) {
        return 1 / Math.pow(item, THETA);
    }
}

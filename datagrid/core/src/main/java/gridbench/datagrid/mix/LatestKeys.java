package gridbench.datagrid.mix;

import java.util.Arrays;
import java.util.SplittableRandom;

/**
 * What came last is frequent: a client's own insertions, the newest first, and then the objects that
 * were there before, the highest key first. What other clients insert a client cannot know to be there.
 */
final class LatestKeys implements KeySource {
    private final Zipfian ages;
    private final long objects;
    private long[] inserted = new long[64];
    private int count;

    /**
     * @param ages of the objects that are there at first
     */
    LatestKeys(Zipfian ages) {
        this.ages = ages.copy();
        objects = ages.items();
    }

    @Override
    public long next(SplittableRandom random) {
        var age = ages.rank(random.nextDouble());
        return age < count ? inserted[(int) (count - 1 - age)] : objects - 1 - (age - count);
    }

    @Override
    public void inserted(long key) {
        if (count == inserted.length) {
            inserted = Arrays.copyOf(inserted, 2 * count);
        }
        inserted[count] = key;
        count++;
        ages.grow();
    }
}

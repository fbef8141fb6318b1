package gridbench.datagrid.mix;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class ZipfianTest {
    private static final int DRAWS = 1_000_000;

    private static double zeta(long items) {
        var zeta = 0.0;
        for (var i = 1L; i <= items; i++) {
            zeta += Math.pow(i, -0.99);
        }
        return zeta;
    }

    @Test
    void ranksHaveTheSharesOfTheDistribution() {
        var items = 1000;
        var zipfian = new Zipfian(items);
        var random = new SplittableRandom(3);
        var counts = new long[items];
        for (var i = 0; i < DRAWS; i++) {
            counts[(int) zipfian.rank(random.nextDouble())]++;
        }
        var zeta = zeta(items);
        assertEquals(1 / zeta, (double) counts[0] / DRAWS, 0.002);
        assertEquals(Math.pow(2, -0.99) / zeta, (double) counts[1] / DRAWS, 0.002);
        var below = 0L;
        for (var rank = 0; rank < items; rank++) {
            below += counts[rank];
            // Of single ranks beyond the second one the method is no more than an approximation.
            if (rank == 9 || rank == 99 || rank == 499) {
                assertEquals(zeta(rank + 1) / zeta, (double) below / DRAWS, 0.02, "ranks to " + rank);
            }
        }
        assertTrue(counts[items - 1] > 0);
    }

    @Test
    void theSumOfManyWeightsIsThatOfEachOfThem() {
        for (var items : new long[] {1, 1000, Zipfian.SUMMED, Zipfian.SUMMED + 1, 4 * Zipfian.SUMMED}) {
            assertEquals(zeta(items), Zipfian.zeta(items), 1e-11, items + " items");
        }
        // YCSB has it of ten billion items, one by one.
        assertEquals(26.46902820178302, Zipfian.zeta(10_000_000_000L), 1e-8);
    }

    @Test
    void aBillionItemsHaveTheirSharesToo() {
        var items = 1_000_000_000L;
        var zipfian = new Zipfian(items);
        assertEquals(0, zipfian.rank(0.99 / Zipfian.zeta(items)));
        assertEquals(1, zipfian.rank(1.01 / Zipfian.zeta(items)));
        assertEquals(items - 1, zipfian.rank(Math.nextDown(1.0)), 1e-6 * items);
    }

    @Test
    void allRanksAreInside() {
        for (var items = 1L; items < 50; items++) {
            var zipfian = new Zipfian(items);
            for (var drawn = 0.0; drawn < 1; drawn += 0.001) {
                var rank = zipfian.rank(drawn);
                assertTrue(rank >= 0 && rank < items, rank + " of " + items);
            }
            assertTrue(zipfian.rank(Math.nextDown(1.0)) < items);
        }
    }

    @Test
    void oneThatHasGrownIsLikeOneThatWasLarge() {
        var grown = new Zipfian(10);
        for (var i = 0; i < 90; i++) {
            grown.grow();
        }
        var large = new Zipfian(100);
        assertEquals(100, grown.items());
        for (var drawn = 0.0005; drawn < 1; drawn += 0.001) {
            assertEquals(large.rank(drawn), grown.rank(drawn));
        }
    }

    @Test
    void scrambledKeysAreThoseOfYcsb() {
        var keys = new ScrambledZipfianKeys(1000);
        var random = new SplittableRandom(3);
        var counts = new HashMap<Long, Long>();
        for (var i = 0; i < DRAWS; i++) {
            counts.merge(keys.next(random), 1L, Long::sum);
        }
        assertTrue(counts.keySet().stream().allMatch(key -> key >= 0 && key < 1000));
        // All keys are drawn, and the most frequent one has 1 / 26.47 of the draws and its part of the
        // rest.
        assertEquals(1000, counts.size());
        var most = counts.values().stream().mapToLong(count -> count).max().orElseThrow();
        assertEquals(1 / 26.469, (double) most / DRAWS, 0.004);
    }
}

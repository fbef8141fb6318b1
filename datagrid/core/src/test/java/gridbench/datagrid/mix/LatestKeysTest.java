package gridbench.datagrid.mix;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.Map;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class LatestKeysTest {
    @Test
    void whatCameLastIsDrawnMostOften() {
        var keys = new LatestKeys(new Zipfian(100));
        assertEquals(99, mostFrequent(keys));
        for (var key = 500L; key < 700; key++) {
            keys.inserted(key);
        }
        assertEquals(699, mostFrequent(keys));
    }

    @Test
    void clientsDoNotShareWhatTheyInserted() {
        var ages = new Zipfian(100);
        new LatestKeys(ages).inserted(500);
        assertEquals(100, ages.items());
    }

    private static long mostFrequent(LatestKeys keys) {
        var random = new SplittableRandom(5);
        var counts = new HashMap<Long, Integer>();
        for (var i = 0; i < 100_000; i++) {
            var key = keys.next(random);
            assertTrue(key >= 0 && key < 100 || key >= 500 && key < 700, "key " + key);
            counts.merge(key, 1, Integer::sum);
        }
        return counts.entrySet().stream()
                .max(Map.Entry.comparingByValue())
                .orElseThrow()
                .getKey();
    }
}

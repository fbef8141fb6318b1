package gridbench.datagrid.run;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import gridbench.datagrid.task.Operation;
import java.util.Arrays;
import java.util.Set;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class LatenciesTest {
    @Test
    void mergedOnesAreLikeOneOfAll() {
        var random = new SplittableRandom(9);
        var all = new Latencies();
        var merged = new Latencies();
        for (var client = 0; client < 5; client++) {
            var its = new Latencies();
            for (var i = 0; i < 1000; i++) {
                var latency = random.nextLong(1L << random.nextInt(1, 40));
                its.record(Operation.READ, latency);
                all.record(Operation.READ, latency);
            }
            merged.add(its);
        }
        var one = all.slots().get(Operation.READ);
        var other = merged.slots().get(Operation.READ);
        assertArrayEquals(one.values(), other.values());
        assertArrayEquals(one.counts(), other.counts());
        assertEquals(5000, Arrays.stream(other.counts()).sum());
    }

    @Test
    void valuesHaveThreeDigits() {
        for (var latency = 1L; latency < 3_000_000_000_000L; latency = latency * 3 + 1) {
            var latencies = new Latencies();
            latencies.record(Operation.UPDATE, latency);
            var value = latencies.slots().get(Operation.UPDATE).values()[0];
            assertTrue(value >= latency && value - latency <= latency / 1000, latency + ": " + value);
        }
    }

    @Test
    void kindsAreToldApartAndHoursAreAnHour() {
        var latencies = new Latencies();
        latencies.record(Operation.READ, 1);
        latencies.record(Operation.SCAN, Long.MAX_VALUE);
        var slots = latencies.slots();
        assertEquals(Set.of(Operation.READ, Operation.SCAN), slots.keySet());
        assertEquals(3.6e12, slots.get(Operation.SCAN).values()[0], 3.6e9);
    }
}

package gridbench.datagrid.task;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.math.BigInteger;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class TaskKeysTest {
    private static Parameters parameters(
            long tasks, long repeats, long reads, long updates, long inserts, long objects, long shared) {
        return new Parameters(
                1, 1, tasks, repeats, reads, updates, inserts, objects, 1024, shared, 0, 0);
    }

    @Test
    void keysAreThoseOfTheSpecification() {
        var random = new SplittableRandom(1);
        for (var n = 0; n < 20_000; n++) {
            var most = n % 2 == 0 ? 20 : 100_000;
            var parameters = parameters(
                    random.nextLong(1, most),
                    random.nextLong(1, most),
                    random.nextLong(0, 1000),
                    random.nextLong(0, 1000),
                    random.nextLong(0, 1000),
                    random.nextLong(1, n % 3 == 0 ? 1L << 60 : 10_000),
                    random.nextLong(0, 1000));
            var it = random.nextLong(parameters.tasks());
            var ip = random.nextLong(parameters.repeats());
            var which = random.nextLong(1000);
            var keys = new TaskKeys(parameters);
            var iteration = big(it).multiply(big(parameters.repeats())).add(big(ip));
            var touched = iteration.multiply(big(parameters.reads() + parameters.updates()));
            var objects = big(parameters.objects());
            assertEquals(big(which).add(objects), big(keys.shared(which)));
            assertEquals(touched.add(big(which)).mod(objects), big(keys.read(it, ip, which)));
            assertEquals(
                    touched.add(big(parameters.reads())).add(big(which)).mod(objects),
                    big(keys.update(it, ip, which)));
            assertEquals(
                    objects.add(big(parameters.shared()))
                            .add(iteration.multiply(big(parameters.inserts())))
                            .add(big(which)),
                    big(keys.insert(it, ip, which)));
        }
    }

    @Test
    void keysThatDoNotFitAreRefused() {
        parameters(1L << 31, 1L << 31, 1, 0, 1, 10, 0);
        var failure = assertThrows(
                IllegalArgumentException.class,
                () -> parameters(1L << 32, 1L << 32, 1, 0, 0, 10, 0));
        assertTrue(failure.getMessage().contains("64 bits"), failure.getMessage());
        assertThrows(
                IllegalArgumentException.class,
                () -> parameters(1L << 30, 1L << 30, 0, 0, 8, 10, 0));
    }

    @Test
    void readingNeedsObjects() {
        parameters(1, 1, 0, 0, 1, 0, 1);
        assertThrows(IllegalArgumentException.class, () -> parameters(1, 1, 1, 0, 0, 0, 1));
        assertThrows(IllegalArgumentException.class, () -> parameters(1, 1, 0, 1, 0, 0, 1));
    }

    private static BigInteger big(long number) {
        return BigInteger.valueOf(number);
    }
}

package gridbench.datagrid.value;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ValuesTest {
    @ParameterizedTest
    @ValueSource(ints = {32, 33, 1024, 65_521, 65_521 + 32, 65_521 + 33, 1 << 20})
    void aValueHoldsForItsKeyAndSizeAlone(int size) {
        for (var key : new long[] {0, 1, 17, -3, Long.MAX_VALUE}) {
            var value = Values.make(key, size);
            assertEquals(size, value.length);
            assertTrue(Values.holds(key, size, value));
            assertFalse(Values.holds(key + 1, size, value));
            assertFalse(Values.holds(key, size, Arrays.copyOf(value, size + 1)));
            assertFalse(Values.holds(key, size, Arrays.copyOf(value, size - 1)));
            assertFalse(Values.holds(key, size, new byte[size]));
        }
    }

    @Test
    void eachByteIsChecked() {
        var value = Values.make(5, 200_000);
        for (var at = 0; at < value.length; at = at < 2000 ? at + 1 : at + 97) {
            value[at]++;
            // The counter of updates may be any.
            assertEquals(at >= 16 && at < 24, Values.holds(5, value.length, value), "byte " + at);
            value[at]--;
        }
    }

    @Test
    void blocksThatWereExchangedAreNoticed() {
        var value = Values.make(5, 1 << 20);
        var block = 1 << 16;
        System.arraycopy(Values.make(5, 1 << 20), 4 * block, value, 8 * block, block);
        assertFalse(Values.holds(5, value.length, value));
    }

    @Test
    void updatesAreCounted() {
        var value = Values.make(5, 1024);
        assertEquals(0, Values.updates(value));
        Values.countUpdates(value, 1);
        Values.countUpdates(value, 2);
        Values.countUpdates(value, 0);
        assertEquals(3, Values.updates(value));
        assertTrue(Values.holds(5, 1024, value));
        Values.fill(5, value);
        assertArrayEquals(Values.make(5, 1024), value);
    }

    @Test
    void theHeaderIsAsDescribed() {
        var header = ByteBuffer.wrap(Values.make(258, 100));
        assertEquals("gridbenc", new String(header.array(), 0, 8, StandardCharsets.US_ASCII));
        assertEquals(258, header.getLong(8));
        assertEquals(0, header.getLong(16));
        assertEquals(100, header.getLong(24));
    }

    @Test
    void keysHaveValuesOfTheirOwn() {
        var bodies = new HashSet<String>();
        for (var key = 0L; key < 1000; key++) {
            var value = Values.make(key, 64);
            bodies.add(Arrays.toString(Arrays.copyOfRange(value, Values.HEADER, 64)));
        }
        // Of 65521 places at which a slice can begin, a few are the same.
        assertTrue(bodies.size() > 980, bodies.size() + " different ones");
    }
}

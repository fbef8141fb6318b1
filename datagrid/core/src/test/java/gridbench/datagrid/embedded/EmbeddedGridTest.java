package gridbench.datagrid.embedded;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

class EmbeddedGridTest {
    @Test
    void valuesAreCopiedBothWays() throws Exception {
        try (var store = new EmbeddedGrid().connect(null, "127.0.0.1")) {
            var value = new byte[] {1, 2, 3};
            store.put(1, value);
            value[0] = 9;
            assertArrayEquals(new byte[] {1, 2, 3}, store.get(1));
            store.get(1)[1] = 9;
            assertArrayEquals(new byte[] {1, 2, 3}, store.get(1));
            assertTrue(store.replace(1, new byte[] {1, 2, 3}, value));
            value[2] = 0;
            assertArrayEquals(new byte[] {9, 2, 3}, store.get(1));
            assertFalse(store.replace(1, new byte[] {1, 2, 3}, value));
            assertFalse(store.replace(2, new byte[] {1, 2, 3}, value));
        }
    }

    @Test
    void objectsAreCounted() throws Exception {
        try (var store = new EmbeddedGrid().connect(null, "127.0.0.1")) {
            for (var key = -5L; key < 5; key++) {
                store.put(key, new byte[8]);
                store.put(key, new byte[8]);
            }
            assertEquals(10, store.size());
            assertEquals(Set.of(3L, 4L), store.getAll(List.of(3L, 4L, 5L)).keySet());
            store.remove(List.of(3L, 7L));
            assertNull(store.get(3));
            assertEquals(9, store.size());
            store.clear();
            assertEquals(0, store.size());
        }
    }

    @Test
    void thereAreNoMembers() {
        assertThrows(
                UnsupportedOperationException.class, () -> new EmbeddedGrid().join(null, 0, 1 << 30));
    }
}

package gridbench.datagrid.nothing;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import gridbench.datagrid.data.Checking;
import gridbench.datagrid.data.Loading;
import gridbench.datagrid.data.Removal;
import gridbench.datagrid.value.Values;
import java.util.List;
import org.junit.jupiter.api.Test;

class NullGridTest {
    @Test
    void answersHoldForTheirKeys() throws Exception {
        try (var store = new NullGrid().connect(null, "127.0.0.1")) {
            assertNull(store.get(1));
            Loading.load(store, 0, 100, 1024, 10_000, done -> {});
            assertTrue(Values.holds(17, 1024, store.get(17)));
            assertSame(store.get(1), store.get(2));
            assertEquals(new Checking.Checked(100, 0, 0, 0), Checking.check(store, 0, 100, 1024, done -> {}));
        }
    }

    @Test
    void theSizeIsWhatWasPut() throws Exception {
        try (var store = new NullGrid().connect(null, "127.0.0.1")) {
            Loading.load(store, 0, 100, 1024, 10_000, done -> {});
            store.put(100, new byte[1024]);
            store.put(7, new byte[1024]);
            store.put(-1, new byte[1024]);
            assertEquals(101, store.size());
            store.remove(List.of(-1L));
            assertEquals(101, store.size());
            Removal.remove(store, 90, 101);
            assertEquals(90, store.size());
            store.clear();
            assertEquals(0, store.size());
        }
    }
}

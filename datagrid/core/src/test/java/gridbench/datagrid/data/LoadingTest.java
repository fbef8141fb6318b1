package gridbench.datagrid.data;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import gridbench.datagrid.Store;
import gridbench.datagrid.embedded.EmbeddedGrid;
import gridbench.datagrid.value.Values;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class LoadingTest {
    private final Store store = new EmbeddedGrid().connect(null, "127.0.0.1");

    @Test
    void allObjectsAreStored() throws Exception {
        var loaded = Loading.load(store, 10, 1010, 100, 3333, done -> {});
        assertEquals(1000, loaded.objects());
        assertEquals(100_000, loaded.bytes());
        assertEquals(1000, store.size());
        assertEquals(new Checking.Checked(1000, 0, 0, 0), Checking.check(store, 10, 1010, 100, done -> {}));
    }

    @Test
    void batchesAreBounded() throws Exception {
        assertEquals(List.of(4, 4, 2), batches(10, 100, 499));
        assertEquals(List.of(1, 1, 1), batches(3, 100, 99));
        assertEquals(List.of(3), batches(3, 100, 1 << 20));
        assertEquals(List.of(), batches(0, 100, 1 << 20));
    }

    @Test
    void whatIsNotAsItWasIsFound() throws Exception {
        Loading.load(store, 0, 10, 100, 1000, done -> {});
        store.remove(List.of(2L));
        store.put(3, Values.make(4, 100));
        var updated = Values.make(5, 100);
        Values.countUpdates(updated, 7);
        store.put(5, updated);
        assertEquals(new Checking.Checked(9, 1, 1, 7), Checking.check(store, 0, 10, 100, done -> {}));
        Removal.remove(store, 4, 10);
        assertEquals(3, store.size());
        assertEquals(new Checking.Checked(3, 7, 1, 0), Checking.check(store, 0, 10, 100, done -> {}));
    }

    private static List<Integer> batches(long count, int size, long batch) throws Exception {
        var sizes = new ArrayList<Integer>();
        var store = (Store) Proxy.newProxyInstance(
                Store.class.getClassLoader(), new Class<?>[] {Store.class}, (proxy, method, arguments) -> {
                    assertTrue(method.getName().equals("putAll"));
                    sizes.add(((Map<?, ?>) arguments[0]).size());
                    return null;
                });
        Loading.load(store, 0, count, size, batch, done -> {});
        return sizes;
    }
}

package gridbench.datagrid.ignite;

import gridbench.datagrid.Store;
import java.util.Collection;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.ignite.cache.CachePeekMode;
import org.apache.ignite.client.ClientCache;
import org.apache.ignite.client.IgniteClient;

/** Many objects at once are given in the order of their keys, as members lock them in the order given. */
final class IgniteStore implements Store {
    private final IgniteClient client;
    private final ClientCache<Long, byte[]> cache;

    IgniteStore(IgniteClient client) {
        this.client = client;
        this.cache = client.cache(IgniteGrid.CACHE);
    }

    @Override
    public byte[] get(long key) {
        return cache.get(key);
    }

    @Override
    public void put(long key, byte[] value) {
        cache.put(key, value);
    }

    @Override
    public boolean replace(long key, byte[] expected, byte[] value) {
        return cache.replace(key, expected, value);
    }

    @Override
    public void remove(Collection<Long> keys) {
        cache.removeAll(new TreeSet<>(keys));
    }

    @Override
    public void clear() {
        cache.clear();
    }

    @Override
    public long size() {
        return cache.size(CachePeekMode.PRIMARY);
    }

    @Override
    public Map<Long, byte[]> getAll(Collection<Long> keys) {
        return cache.getAll(new TreeSet<>(keys));
    }

    @Override
    public void putAll(Map<Long, byte[]> values) {
        cache.putAll(new TreeMap<>(values));
    }

    @Override
    public void close() {
        client.close();
    }
}

package gridbench.datagrid.coherence;

import com.tangosol.net.CacheFactory;
import com.tangosol.net.NamedCache;
import gridbench.datagrid.Store;
import java.util.Collection;
import java.util.Map;

/** A member of the cluster without storage: it keeps nothing, all goes to the members that have it. */
final class CoherenceStore implements Store {
    private final NamedCache<Long, byte[]> cache;

    CoherenceStore(NamedCache<Long, byte[]> cache) {
        this.cache = cache;
    }

    @Override
    public byte[] get(long key) {
        return cache.get(key);
    }

    @Override
    public void put(long key, byte[] value) {
        // Unlike put, this does not bring back what was there.
        cache.putAll(Map.of(key, value));
    }

    @Override
    public boolean replace(long key, byte[] expected, byte[] value) {
        return cache.invoke(key, new ReplaceProcessor(expected, value));
    }

    @Override
    public Map<Long, byte[]> getAll(Collection<Long> keys) {
        return cache.getAll(keys);
    }

    @Override
    public void putAll(Map<Long, byte[]> values) {
        cache.putAll(values);
    }

    @Override
    public void remove(Collection<Long> keys) {
        cache.keySet().removeAll(keys);
    }

    @Override
    public void clear() {
        cache.truncate();
    }

    @Override
    public long size() {
        return cache.size();
    }

    @Override
    public void close() {
        CacheFactory.shutdown();
    }
}

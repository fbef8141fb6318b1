package gridbench.datagrid.geode;

import gridbench.datagrid.Store;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import org.apache.geode.cache.Region;
import org.apache.geode.cache.client.ClientCache;

/** A client with a proxy region: it keeps nothing, all goes to the servers. */
final class GeodeStore implements Store {
    /** Keys that are removed by one request. */
    private static final int AT_ONCE = 10_000;

    private final ClientCache cache;
    private final Region<Long, byte[]> region;

    GeodeStore(ClientCache cache, Region<Long, byte[]> region) {
        this.cache = cache;
        this.region = region;
    }

    @Override
    public byte[] get(long key) {
        return region.get(key);
    }

    @Override
    public void put(long key, byte[] value) {
        region.put(key, value);
    }

    @Override
    public boolean replace(long key, byte[] expected, byte[] value) {
        return region.replace(key, expected, value);
    }

    @Override
    public Map<Long, byte[]> getAll(Collection<Long> keys) {
        var found = new HashMap<Long, byte[]>(region.getAll(keys));
        found.values().removeIf(value -> value == null);
        return found;
    }

    @Override
    public void putAll(Map<Long, byte[]> values) {
        region.putAll(values);
    }

    @Override
    public void remove(Collection<Long> keys) {
        region.removeAll(keys);
    }

    /** Partitioned regions cannot be cleared as a whole. */
    @Override
    public void clear() {
        var some = new ArrayList<Long>(AT_ONCE);
        for (var key : region.keySetOnServer()) {
            some.add(key);
            if (some.size() == AT_ONCE) {
                region.removeAll(some);
                some.clear();
            }
        }
        region.removeAll(some);
    }

    @Override
    public long size() {
        return region.sizeOnServer();
    }

    @Override
    public void close() {
        cache.close();
    }
}

package gridbench.datagrid.hazelcast;

import com.hazelcast.core.HazelcastInstance;
import com.hazelcast.map.IMap;
import gridbench.datagrid.Store;
import java.util.Collection;
import java.util.HashSet;
import java.util.Map;

final class HazelcastStore implements Store {
    private final HazelcastInstance client;
    private final IMap<Long, byte[]> map;

    HazelcastStore(HazelcastInstance client) {
        this.client = client;
        this.map = client.getMap(HazelcastGrid.MAP);
    }

    @Override
    public byte[] get(long key) {
        return map.get(key);
    }

    @Override
    public void put(long key, byte[] value) {
        // Unlike put, set does not bring the former object back.
        map.set(key, value);
    }

    @Override
    public boolean replace(long key, byte[] expected, byte[] value) {
        return map.replace(key, expected, value);
    }

    @Override
    public void remove(Collection<Long> keys) {
        var removals = keys.stream().map(key -> map.deleteAsync(key).toCompletableFuture()).toList();
        removals.forEach(removal -> removal.join());
    }

    @Override
    public void clear() {
        map.clear();
    }

    @Override
    public long size() {
        return map.size();
    }

    @Override
    public Map<Long, byte[]> getAll(Collection<Long> keys) {
        return map.getAll(new HashSet<>(keys));
    }

    @Override
    public void putAll(Map<Long, byte[]> values) {
        map.setAll(values);
    }

    @Override
    public void close() {
        client.shutdown();
    }
}

package gridbench.datagrid.run;

import gridbench.datagrid.Store;
import gridbench.datagrid.embedded.EmbeddedGrid;
import gridbench.datagrid.value.Values;
import java.util.Collection;
import java.util.Map;

/** The embedded map, with what a test wants to happen before each operation. */
class MapStore implements Store {
    final Store map = new EmbeddedGrid().connect(null, "127.0.0.1");

    /** What happens before the map is asked. */
    void before(String operation, long key) throws Exception {}

    /** Puts objects 0..count-1. */
    MapStore with(long count, int size) throws Exception {
        for (var key = 0L; key < count; key++) {
            map.put(key, Values.make(key, size));
        }
        return this;
    }

    @Override
    public byte[] get(long key) throws Exception {
        before("get", key);
        return map.get(key);
    }

    @Override
    public void put(long key, byte[] value) throws Exception {
        before("put", key);
        map.put(key, value);
    }

    @Override
    public boolean replace(long key, byte[] expected, byte[] value) throws Exception {
        before("replace", key);
        return map.replace(key, expected, value);
    }

    @Override
    public void remove(Collection<Long> keys) throws Exception {
        map.remove(keys);
    }

    @Override
    public void clear() throws Exception {
        map.clear();
    }

    @Override
    public long size() throws Exception {
        return map.size();
    }

    @Override
    public Map<Long, byte[]> getAll(Collection<Long> keys) throws Exception {
        before("getAll", keys.iterator().next());
        return map.getAll(keys);
    }

    @Override
    public void close() {
        map.close();
    }
}

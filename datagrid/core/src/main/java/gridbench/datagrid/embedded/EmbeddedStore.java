package gridbench.datagrid.embedded;

import gridbench.datagrid.Store;
import java.util.Arrays;
import java.util.Collection;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/** Objects in a map, which are copied when they come and when they go. */
final class EmbeddedStore implements Store {
    private final ConcurrentMap<Long, byte[]> values = new ConcurrentHashMap<>();

    @Override
    public byte[] get(long key) {
        var value = values.get(key);
        return value == null ? null : value.clone();
    }

    @Override
    public void put(long key, byte[] value) {
        values.put(key, value.clone());
    }

    @Override
    public boolean replace(long key, byte[] expected, byte[] value) {
        var present = values.get(key);
        // Arrays in the map do not change: the same array has the same content.
        return present != null
                && Arrays.equals(present, expected)
                && values.replace(key, present, value.clone());
    }

    @Override
    public void remove(Collection<Long> keys) {
        keys.forEach(values::remove);
    }

    @Override
    public void clear() {
        values.clear();
    }

    @Override
    public long size() {
        return values.size();
    }

    @Override
    public void close() {
        values.clear();
    }
}

package gridbench.datagrid.nothing;

import gridbench.datagrid.Store;
import gridbench.datagrid.value.Values;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.LongAccumulator;

/**
 * Keeps nothing but the size of values and the highest key. It answers with the value that each key
 * had at first, in an array of the thread that asks, which the thread's next read overwrites.
 */
final class NullStore implements Store {
    private final LongAccumulator highest = new LongAccumulator(Math::max, -1);
    private final ThreadLocal<byte[]> answer = ThreadLocal.withInitial(() -> new byte[Values.HEADER]);
    private volatile int size;

    @Override
    public byte[] get(long key) {
        if (size == 0) {
            return null;
        }
        var value = answer.get();
        if (value.length != size) {
            value = new byte[size];
            answer.set(value);
        }
        Values.fill(key, value);
        return value;
    }

    @Override
    public Map<Long, byte[]> getAll(Collection<Long> keys) {
        var found = new HashMap<Long, byte[]>();
        if (size != 0) {
            keys.forEach(key -> found.put(key, Values.make(key, size)));
        }
        return found;
    }

    @Override
    public void put(long key, byte[] value) {
        // Writing what is written already would send the line from processor to processor.
        if (size != value.length) {
            size = value.length;
        }
        highest.accumulate(key);
    }

    @Override
    public boolean replace(long key, byte[] expected, byte[] value) {
        return true;
    }

    /** Forgets the keys from the lowest one on, if the highest one is among them. */
    @Override
    public void remove(Collection<Long> keys) {
        var lowest = keys.stream().mapToLong(key -> key).filter(key -> key >= 0).min();
        if (lowest.isPresent() && keys.contains(highest.get())) {
            highest.reset();
            highest.accumulate(lowest.getAsLong() - 1);
        }
    }

    @Override
    public void clear() {
        highest.reset();
        size = 0;
    }

    /** How many keys there are from 0 to the highest one. */
    @Override
    public long size() {
        return highest.get() + 1;
    }

    @Override
    public void close() {
        clear();
    }
}

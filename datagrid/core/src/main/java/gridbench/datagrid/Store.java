package gridbench.datagrid;

import java.util.Collection;
import java.util.HashMap;
import java.util.Map;

/**
 * A client's view of the data: objects by their keys. Many threads use one at the same time.
 *
 * <p>All methods wait for the cluster's answer, and throw what the product throws if it does not
 * come. None of them may keep a copy of the data in the client.
 */
public interface Store extends AutoCloseable {
    /** The object, in memory of the caller's own; null if there is none. */
    byte[] get(long key) throws Exception;

    /**
     * Stores an object, in place of one that may be there. Returns when its copies are stored too; the
     * array is then the caller's again, who writes the next object into it.
     */
    void put(long key, byte[] value) throws Exception;

    /** Replaces an object if it still is {@code expected}; whether it was. */
    boolean replace(long key, byte[] expected, byte[] value) throws Exception;

    /** Removes objects that may be there. */
    void remove(Collection<Long> keys) throws Exception;

    /** Removes all objects. */
    void clear() throws Exception;

    /** How many objects there are in the cluster. */
    long size() throws Exception;

    /** Several objects; those that are not there are not in the map. */
    default Map<Long, byte[]> getAll(Collection<Long> keys) throws Exception {
        var found = new HashMap<Long, byte[]>();
        for (long key : keys) {
            var value = get(key);
            if (value != null) {
                found.put(key, value);
            }
        }
        return found;
    }

    /** Stores several objects. */
    default void putAll(Map<Long, byte[]> values) throws Exception {
        for (var one : values.entrySet()) {
            put(one.getKey(), one.getValue());
        }
    }

    @Override
    void close();
}

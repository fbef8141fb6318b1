package gridbench.datagrid.value;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.SplittableRandom;

/**
 * The dummy values of objects: what is in them follows from key and size, so that each byte that
 * comes back can be checked.
 *
 * <p>A value begins with a header of 32 bytes: four big-endian numbers of 8 bytes, which are a magic
 * number, the key, how often the object was updated, and the size of the value. The rest is a slice
 * of one pseudo-random pattern, which begins at a place that depends on the key. The pattern repeats
 * after a prime number of bytes, so that blocks of usual lengths that were exchanged are noticed.
 */
public final class Values {
    /** Bytes of the header, and the least size of a value. */
    public static final int HEADER = 32;

    private static final long MAGIC = 0x67726964_62656e63L;
    private static final int KEY = 8;
    private static final int UPDATES = 16;
    private static final int SIZE = 24;

    private static final int PERIOD = 65_521;
    // Two periods: from each place in the first one, a whole period follows without a seam.
    private static final byte[] PATTERN = pattern();

    private static final VarHandle NUMBER =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);

    private Values() {}

    /** A new value of {@code size} bytes, never updated. */
    public static byte[] make(long key, int size) {
        var value = new byte[size];
        fill(key, value);
        return value;
    }

    /** Makes all of an array the value of a key, never updated. */
    public static void fill(long key, byte[] value) {
        NUMBER.set(value, 0, MAGIC);
        NUMBER.set(value, KEY, key);
        NUMBER.set(value, UPDATES, 0L);
        NUMBER.set(value, SIZE, (long) value.length);
        var from = begin(key);
        for (var at = HEADER; at < value.length; at += PERIOD) {
            System.arraycopy(PATTERN, from, value, at, Math.min(PERIOD, value.length - at));
        }
    }

    /** Whether all of a value is as it was made for this key, with any number of updates. */
    public static boolean holds(long key, int size, byte[] value) {
        return isOf(key, size, value) && hasPattern(key, value);
    }

    /** Whether the header is that of this key's value; the rest is not looked at. */
    public static boolean isOf(long key, int size, byte[] value) {
        return value.length == size
                && (long) NUMBER.get(value, 0) == MAGIC
                && (long) NUMBER.get(value, KEY) == key
                && (long) NUMBER.get(value, SIZE) == size;
    }

    /** Whether what follows the header is as it was made for this key. */
    public static boolean hasPattern(long key, byte[] value) {
        var from = begin(key);
        for (var at = HEADER; at < value.length; at += PERIOD) {
            var length = Math.min(PERIOD, value.length - at);
            if (!Arrays.equals(value, at, at + length, PATTERN, from, from + length)) {
                return false;
            }
        }
        return true;
    }

    /** How often an object was updated. */
    public static long updates(byte[] value) {
        return (long) NUMBER.get(value, UPDATES);
    }

    /** Counts further updates in a value. */
    public static void countUpdates(byte[] value, long more) {
        NUMBER.set(value, UPDATES, updates(value) + more);
    }

    private static int begin(long key) {
        // The upper 32 bits as a fraction of the period: as even as a remainder, without a division.
        return (int) ((Scatter.of(key) >>> 32) * PERIOD >>> 32);
    }

    private static byte[] pattern() {
        var period = new byte[PERIOD];
        new SplittableRandom(25).nextBytes(period);
        var pattern = Arrays.copyOf(period, 2 * PERIOD);
        System.arraycopy(period, 0, pattern, PERIOD, PERIOD);
        return pattern;
    }
}

package gridrpc;

import com.sun.jna.Pointer;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.util.List;

/**
 * A function of this program that a remote function calls while it runs.
 *
 * <p>It runs in a thread of the library, one call of it after the other for each call of the remote function. If it
 * throws, the call ends with a {@link GridRpcException} whose cause is that exception.
 */
public final class Callback {
    /** What a callback does. */
    @FunctionalInterface
    public interface Body {
        /**
         * Serves one call.
         *
         * @param arguments its arguments
         */
        void run(Arguments arguments);
    }

    final Body body;
    final List<Class<?>> types;

    private Callback(Body body, List<Class<?>> types) {
        this.body = body;
        this.types = types;
    }

    /**
     * A callback with the parameters of the interface, in its order: {@code int.class}, {@code double.class} and the
     * other primitive classes for numbers of that size, {@code String.class} for strings, and {@code double[].class}
     * and the like for arrays.
     *
     * @param body what it does
     * @param types its parameters
     * @return the callback
     */
    public static Callback of(Body body, Class<?>... types) {
        for (Class<?> type : types) {
            boolean isNumber = type.isPrimitive() && type != void.class && type != boolean.class;
            boolean isArray = type.isArray() && type.getComponentType().isPrimitive();
            if (!isNumber && !isArray && type != String.class) {
                throw new IllegalArgumentException(
                        "a callback has no parameter of " + type + ": give int.class, double[].class, String.class");
            }
        }
        return new Callback(body, List.of(types));
    }

    /** The arguments of one call of a callback. Buffers of arrays are valid until it returns. */
    public static final class Arguments {
        private final Object[] values;

        Arguments(Object[] values) {
            this.values = values;
        }

        /**
         * A number.
         *
         * @param index its place, from 0
         * @return its value, in the class of the parameter
         */
        public Number number(int index) {
            return (Number) values[index];
        }

        /**
         * A string.
         *
         * @param index its place, from 0
         * @return the text
         */
        public String text(int index) {
            Pointer text = (Pointer) values[index];
            return text == null ? null : text.getString(0);
        }

        /**
         * The bytes of an array, in native order. What is written to those of an output goes to the remote function.
         *
         * @param index its place, from 0
         * @param bytes its length in bytes, as the interface says; a longer one reads beyond its end
         * @return the array's memory
         */
        public ByteBuffer bytes(int index, long bytes) {
            return ((Pointer) values[index]).getByteBuffer(0, bytes).order(ByteOrder.nativeOrder());
        }

        /**
         * An array of {@code double}; see {@link #bytes}.
         *
         * @param index its place, from 0
         * @param length number of elements
         * @return the array's memory
         */
        public DoubleBuffer doubles(int index, int length) {
            return bytes(index, 8L * length).asDoubleBuffer();
        }

        /**
         * An array of {@code float}; see {@link #bytes}.
         *
         * @param index its place, from 0
         * @param length number of elements
         * @return the array's memory
         */
        public FloatBuffer floats(int index, int length) {
            return bytes(index, 4L * length).asFloatBuffer();
        }

        /**
         * An array of {@code int}; see {@link #bytes}.
         *
         * @param index its place, from 0
         * @param length number of elements
         * @return the array's memory
         */
        public IntBuffer ints(int index, int length) {
            return bytes(index, 4L * length).asIntBuffer();
        }

        /**
         * An array of {@code long}; see {@link #bytes}.
         *
         * @param index its place, from 0
         * @param length number of elements
         * @return the array's memory
         */
        public LongBuffer longs(int index, int length) {
            return bytes(index, 8L * length).asLongBuffer();
        }
    }
}

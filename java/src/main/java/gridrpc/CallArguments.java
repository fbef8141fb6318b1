package gridrpc;

import com.sun.jna.CallbackProxy;
import com.sun.jna.CallbackReference;
import com.sun.jna.CallbackThreadInitializer;
import com.sun.jna.Memory;
import com.sun.jna.Pointer;

import java.lang.reflect.Array;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.CharBuffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;
import java.util.ArrayList;
import java.util.List;

/** The arguments of one call in native memory, from before it begins until its results are in place. */
final class CallArguments implements AutoCloseable {
    /** Arrays of this many bytes and more are copied into memory that workers on this machine see. */
    private static final long SHARED = 1 << 16;

    private static final long NUMBER_SIZE = 16;

    private final String function;

    /** What copies results to where the caller wants them. */
    private final List<Runnable> results = new ArrayList<>();

    /** What must not be collected before the call has ended. */
    private final List<Object> alive = new ArrayList<>();

    /** Memory of the library. */
    private final List<Pointer> shared = new ArrayList<>();

    private final Pointer stack;
    private volatile Throwable failure;

    CallArguments(String function, List<Parameter> parameters, Object[] arguments) {
        this.function = function;
        if (arguments.length != parameters.size()) {
            throw new IllegalArgumentException(
                    function + " has " + parameters.size() + " parameters, but " + arguments.length + " are given");
        }
        stack = Native.grpc_arg_stack_new(arguments.length);
        try {
            Memory numbers = new Memory(NUMBER_SIZE * Math.max(1, arguments.length));
            alive.add(numbers);
            for (int index = 0; index < arguments.length; index++) {
                Pointer place = numbers.share(index * NUMBER_SIZE, NUMBER_SIZE);
                add(parameters.get(index), arguments[index], place);
            }
        } catch (Throwable error) {
            close();
            throw error;
        }
    }

    Pointer stack() {
        return stack;
    }

    /** Copies the results to where the caller wants them, and throws what a callback has thrown. */
    void finish() {
        rethrow();
        results.forEach(Runnable::run);
    }

    /** Throws what a callback has thrown. */
    void rethrow() {
        if (failure != null) {
            throw new GridRpcException(
                    GridRpcException.Code.OTHER, "a callback of " + function + " failed: " + failure, failure);
        }
    }

    @Override
    public void close() {
        Native.grpc_arg_stack_destruct(stack);
        shared.forEach(Native::grpc_free_np);
        shared.clear();
        alive.clear();
    }

    private void add(Parameter parameter, Object argument, Pointer place) {
        if (parameter.mode() == Parameter.Mode.WORK) {
            push(null);
        } else if (parameter.isCallback()) {
            push(address(parameter, cast(parameter, argument, Callback.class)));
        } else if (parameter.type().kind == Parameter.Kind.TEXT) {
            addTexts(parameter, argument);
        } else if (!parameter.isArray()) {
            store(parameter, cast(parameter, argument, Object.class), place);
            push(place);
        } else if (argument instanceof Buffer buffer) {
            addBuffer(parameter, buffer);
        } else {
            addArray(parameter, cast(parameter, argument, Object.class));
        }
    }

    private void push(Pointer address) {
        if (Native.grpc_arg_stack_push_arg(stack, address) != 0) {
            throw new IllegalStateException(Native.grpc_error_detail_np(Native.NO_SESSION));
        }
    }

    private void push(Pointer array, long bytes) {
        if (Native.grpc_arg_stack_push_array_np(stack, array, bytes) != 0) {
            throw new IllegalStateException(Native.grpc_error_detail_np(Native.NO_SESSION));
        }
    }

    private IllegalArgumentException refused(Parameter parameter, String why) {
        return new IllegalArgumentException("argument `" + parameter.name() + "` of " + function + " " + why);
    }

    private <T> T cast(Parameter parameter, Object argument, Class<T> wanted) {
        if (!wanted.isInstance(argument)) {
            String given = argument == null ? "null" : "a " + argument.getClass().getSimpleName();
            throw refused(parameter, "is " + given + ", but has to be " + described(parameter));
        }
        return wanted.cast(argument);
    }

    private static String described(Parameter parameter) {
        if (parameter.isCallback()) {
            return "a Callback";
        }
        String type = parameter.type().name().toLowerCase(java.util.Locale.ROOT);
        return parameter.isArray() ? "an array of " + type : "a " + type;
    }

    // ---- Numbers

    private void store(Parameter parameter, Object argument, Pointer place) {
        Parameter.Type type = parameter.type();
        Object value = argument instanceof Character character ? (Object) (int) character : argument;
        switch (type.kind) {
            case REAL -> {
                double number = cast(parameter, value, Number.class).doubleValue();
                if (type.size == 4) {
                    place.setFloat(0, (float) number);
                } else {
                    place.setDouble(0, number);
                }
            }
            case COMPLEX -> {
                int length = Array.getLength(complex(parameter, value));
                if (length != 2) {
                    throw refused(parameter, "has " + length + " elements, but has to have 2: real and imaginary part");
                }
                for (int part = 0; part < 2; part++) {
                    if (value instanceof float[] numbers) {
                        place.setFloat(4L * part, numbers[part]);
                    } else {
                        place.setDouble(8L * part, ((double[]) value)[part]);
                    }
                }
            }
            default -> {
                if (!(value instanceof Long || value instanceof Integer || value instanceof Short || value instanceof Byte)) {
                    cast(parameter, null, Number.class);
                }
                long number = ((Number) value).longValue();
                if (!fits(number, type)) {
                    throw refused(parameter, "is " + number + ", which does not fit in " + described(parameter));
                }
                switch (type.size) {
                    case 1 -> place.setByte(0, (byte) number);
                    case 2 -> place.setShort(0, (short) number);
                    case 4 -> place.setInt(0, (int) number);
                    default -> place.setLong(0, number);
                }
            }
        }
    }

    private Object complex(Parameter parameter, Object value) {
        Class<?> wanted = parameter.type().size == 8 ? float[].class : double[].class;
        return cast(parameter, value, wanted);
    }

    private static boolean fits(long number, Parameter.Type type) {
        int bits = 8 * type.size;
        if (type.kind == Parameter.Kind.UNSIGNED) {
            return number >= 0 && (bits == 64 || number >> bits == 0);
        }
        return bits == 64 || number >> (bits - 1) == 0 || number >> (bits - 1) == -1;
    }

    // ---- Arrays

    /** Throws if elements of this class, in an array or a buffer, are not those of the parameter. */
    private void check(Parameter parameter, Class<?> element, String given) {
        Parameter.Type type = parameter.type();
        boolean isReal = element == float.class || element == double.class;
        boolean isWanted = type.kind == Parameter.Kind.REAL || type.kind == Parameter.Kind.COMPLEX;
        int size = type.kind == Parameter.Kind.COMPLEX ? type.size / 2 : type.size;
        if (!parameter.isArray() || isReal != isWanted || sizeOf(element) != size) {
            throw refused(parameter, "is " + given + ", but has to be " + described(parameter));
        }
    }

    private static int sizeOf(Class<?> element) {
        if (element == byte.class) {
            return 1;
        }
        if (element == short.class || element == char.class) {
            return 2;
        }
        return element == int.class || element == float.class ? 4 : element == long.class || element == double.class ? 8 : 0;
    }

    private void addBuffer(Parameter parameter, Buffer buffer) {
        Class<?> element = elementOf(buffer);
        check(parameter, element, "a " + buffer.getClass().getSimpleName());
        if (!buffer.isDirect()) {
            throw refused(parameter, "is a buffer on the heap: pass a direct one, or its array");
        }
        if (orderOf(buffer) != ByteOrder.nativeOrder()) {
            throw refused(parameter, "has the other byte order: make it with order(ByteOrder.nativeOrder())");
        }
        if (parameter.isOutput() && buffer.isReadOnly()) {
            throw refused(parameter, "is written to, but the buffer is read-only");
        }
        long size = sizeOf(element);
        alive.add(buffer);
        push(com.sun.jna.Native.getDirectBufferPointer(buffer).share(size * buffer.position()), size * buffer.remaining());
    }

    private static Class<?> elementOf(Buffer buffer) {
        if (buffer instanceof DoubleBuffer) {
            return double.class;
        }
        if (buffer instanceof FloatBuffer) {
            return float.class;
        }
        if (buffer instanceof LongBuffer) {
            return long.class;
        }
        if (buffer instanceof IntBuffer) {
            return int.class;
        }
        if (buffer instanceof ShortBuffer) {
            return short.class;
        }
        return buffer instanceof CharBuffer ? char.class : byte.class;
    }

    private static ByteOrder orderOf(Buffer buffer) {
        if (buffer instanceof DoubleBuffer doubles) {
            return doubles.order();
        }
        if (buffer instanceof FloatBuffer floats) {
            return floats.order();
        }
        if (buffer instanceof LongBuffer longs) {
            return longs.order();
        }
        if (buffer instanceof IntBuffer ints) {
            return ints.order();
        }
        if (buffer instanceof ShortBuffer shorts) {
            return shorts.order();
        }
        // The order of bytes does not matter for bytes.
        return buffer instanceof CharBuffer chars ? chars.order() : ByteOrder.nativeOrder();
    }

    private void addArray(Parameter parameter, Object array) {
        Class<?> element = array.getClass().getComponentType();
        if (element == null || !element.isPrimitive() || element == boolean.class) {
            throw refused(
                    parameter,
                    "is a " + array.getClass().getSimpleName() + ", but has to be " + described(parameter)
                            + " in one piece, or a direct buffer");
        }
        check(parameter, element, "a " + array.getClass().getSimpleName());
        long bytes = (long) sizeOf(element) * Array.getLength(array);
        Pointer memory = memory(bytes);
        if (parameter.mode() != Parameter.Mode.OUT) {
            write(memory, array);
        }
        if (parameter.isOutput()) {
            results.add(() -> read(memory, array));
        }
        push(memory, bytes);
    }

    private Pointer memory(long bytes) {
        if (bytes >= SHARED) {
            Pointer memory = Native.grpc_malloc_np(bytes);
            if (memory == null) {
                throw new OutOfMemoryError(Native.grpc_error_detail_np(Native.NO_SESSION));
            }
            shared.add(memory);
            return memory;
        }
        Memory memory = new Memory(Math.max(1, bytes));
        alive.add(memory);
        return memory;
    }

    private static void write(Pointer memory, Object array) {
        if (array instanceof double[] numbers) {
            memory.write(0, numbers, 0, numbers.length);
        } else if (array instanceof float[] numbers) {
            memory.write(0, numbers, 0, numbers.length);
        } else if (array instanceof long[] numbers) {
            memory.write(0, numbers, 0, numbers.length);
        } else if (array instanceof int[] numbers) {
            memory.write(0, numbers, 0, numbers.length);
        } else if (array instanceof short[] numbers) {
            memory.write(0, numbers, 0, numbers.length);
        } else if (array instanceof char[] numbers) {
            memory.getByteBuffer(0, 2L * numbers.length).order(ByteOrder.nativeOrder()).asCharBuffer().put(numbers);
        } else {
            memory.write(0, (byte[]) array, 0, ((byte[]) array).length);
        }
    }

    private static void read(Pointer memory, Object array) {
        if (array instanceof double[] numbers) {
            memory.read(0, numbers, 0, numbers.length);
        } else if (array instanceof float[] numbers) {
            memory.read(0, numbers, 0, numbers.length);
        } else if (array instanceof long[] numbers) {
            memory.read(0, numbers, 0, numbers.length);
        } else if (array instanceof int[] numbers) {
            memory.read(0, numbers, 0, numbers.length);
        } else if (array instanceof short[] numbers) {
            memory.read(0, numbers, 0, numbers.length);
        } else if (array instanceof char[] numbers) {
            memory.getByteBuffer(0, 2L * numbers.length).order(ByteOrder.nativeOrder()).asCharBuffer().get(numbers);
        } else {
            memory.read(0, (byte[]) array, 0, ((byte[]) array).length);
        }
    }

    // ---- Texts

    private void addTexts(Parameter parameter, Object argument) {
        boolean isFile = parameter.type() == Parameter.Type.FILENAME;
        if (!parameter.isArray() && (isFile || !parameter.isOutput())) {
            push(text(cast(parameter, argument, String.class)));
            return;
        }
        String[] texts = cast(parameter, argument, String[].class);
        if (!parameter.isArray() && texts.length != 1) {
            throw refused(parameter, "has " + texts.length + " elements, but has to be a String[1]");
        }
        Memory addresses = new Memory(Math.max(1L, (long) com.sun.jna.Native.POINTER_SIZE * texts.length));
        addresses.clear();
        alive.add(addresses);
        Pointer[] given = new Pointer[texts.length];
        for (int index = 0; index < texts.length; index++) {
            if (isFile || parameter.mode() != Parameter.Mode.OUT) {
                given[index] = text(cast(parameter, texts[index], String.class));
                addresses.setPointer((long) com.sun.jna.Native.POINTER_SIZE * index, given[index]);
            }
        }
        if (parameter.isOutput() && !isFile) {
            results.add(() -> readTexts(addresses, given, texts));
        }
        if (parameter.isArray()) {
            push(addresses, addresses.size());
        } else {
            push(addresses);
        }
    }

    private static void readTexts(Memory addresses, Pointer[] given, String[] texts) {
        for (int index = 0; index < texts.length; index++) {
            Pointer text = addresses.getPointer((long) com.sun.jna.Native.POINTER_SIZE * index);
            texts[index] = text == null ? null : text.getString(0, "UTF-8");
            // New texts are in memory of their own.
            if (text != null && !text.equals(given[index])) {
                com.sun.jna.Native.free(Pointer.nativeValue(text));
            }
        }
    }

    private Pointer text(String text) {
        byte[] bytes = text.getBytes(java.nio.charset.StandardCharsets.UTF_8);
        Memory memory = new Memory(bytes.length + 1L);
        memory.write(0, bytes, 0, bytes.length);
        memory.setByte(bytes.length, (byte) 0);
        alive.add(memory);
        return memory;
    }

    // ---- Callbacks

    private Pointer address(Parameter parameter, Callback callback) {
        CallbackProxy proxy = new Proxy(callback);
        com.sun.jna.Native.setCallbackThreadInitializer(
                proxy, new CallbackThreadInitializer(true, false, "gridrpc callback"));
        alive.add(proxy);
        return CallbackReference.getFunctionPointer(proxy);
    }

    private final class Proxy implements CallbackProxy {
        private final Callback callback;

        Proxy(Callback callback) {
            this.callback = callback;
        }

        @Override
        public Object callback(Object[] arguments) {
            try {
                callback.body.run(new Callback.Arguments(arguments));
            } catch (Throwable error) {
                failure = error;
            }
            return null;
        }

        @Override
        public Class<?>[] getParameterTypes() {
            return callback.types.stream()
                    .map(type -> type.isPrimitive() ? type : Pointer.class)
                    .toArray(Class<?>[]::new);
        }

        @Override
        public Class<?> getReturnType() {
            return void.class;
        }
    }
}

package gridrpc;

import com.sun.jna.Pointer;

import java.lang.ref.Cleaner;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.file.Path;

/**
 * Workers on this machine and on hosts, and the functions that they can run. A process has one open grid at a time.
 *
 * <p>Modules are found in the folders of the environment variable {@code GRIDRPC_MODULE_PATH}; {@code gridrpc compile}
 * makes them.
 */
public final class Grid implements AutoCloseable {
    private static final Cleaner CLEANER = Cleaner.create();

    final Completions completions;
    private boolean isOpen = true;

    private Grid(Path configuration) {
        Native.check(Native.grpc_initialize(configuration == null ? null : configuration.toString()));
        completions = new Completions();
    }

    /**
     * Opens a grid with the configuration that {@code NG_CONFIG_FILE} names, or {@code ~/.ngconf}, or else with a worker
     * for each processor of this machine.
     *
     * @return the grid
     * @throws GridRpcException if a grid is open, or the configuration is malformed
     */
    public static Grid open() {
        return new Grid(null);
    }

    /**
     * Opens a grid with a configuration.
     *
     * @param configuration its file, as the C library has it
     * @return the grid
     * @throws GridRpcException if a grid is open, or the configuration is malformed
     */
    public static Grid open(Path configuration) {
        return new Grid(configuration);
    }

    /**
     * A function whose calls run wherever there is room.
     *
     * @param name {@code module/function}
     * @return the function
     * @throws GridRpcException if no known module has it
     */
    public Function function(String name) {
        return new Function(this, name, null);
    }

    /**
     * A function whose calls run on a server.
     *
     * @param name {@code module/function}
     * @param server a server of the configuration, a host of it, or {@code gridrpc://host:port}
     * @return the function
     * @throws GridRpcException if there is no such server, or it does not have the function
     */
    public Function function(String name, String server) {
        return new Function(this, name, server);
    }

    /**
     * Starts an object where there is room.
     *
     * @param name {@code module/class}
     * @return the object
     * @throws GridRpcException if no known module has the class
     */
    public RemoteObject object(String name) {
        return new RemoteObject(this, name, null);
    }

    /**
     * Starts an object on a server.
     *
     * @param name {@code module/class}
     * @param server a server of the configuration, a host of it, or {@code gridrpc://host:port}
     * @return the object
     * @throws GridRpcException if there is no such server, or it does not have the class
     */
    public RemoteObject object(String name, String server) {
        return new RemoteObject(this, name, server);
    }

    /**
     * Memory that workers on this machine see without a copy. It is freed when neither the buffer nor a view of it is
     * reachable.
     *
     * @param bytes its length
     * @return a direct buffer in native byte order, filled with 0
     * @throws OutOfMemoryError if there is none left
     */
    public ByteBuffer allocate(int bytes) {
        if (bytes < 0) {
            throw new IllegalArgumentException("memory of " + bytes + " bytes");
        }
        Pointer memory = Native.grpc_malloc_np(Math.max(1, bytes));
        if (memory == null) {
            throw new OutOfMemoryError(Native.grpc_error_detail_np(Native.NO_SESSION));
        }
        ByteBuffer buffer = memory.getByteBuffer(0, bytes);
        CLEANER.register(buffer, () -> Native.grpc_free_np(memory));
        return buffer.order(ByteOrder.nativeOrder());
    }

    /**
     * {@link #allocate} for {@code double}.
     *
     * @param length number of elements
     * @return the buffer
     */
    public DoubleBuffer allocateDoubles(int length) {
        return allocate(Math.multiplyExact(8, length)).asDoubleBuffer();
    }

    /**
     * {@link #allocate} for {@code float}.
     *
     * @param length number of elements
     * @return the buffer
     */
    public FloatBuffer allocateFloats(int length) {
        return allocate(Math.multiplyExact(4, length)).asFloatBuffer();
    }

    /**
     * {@link #allocate} for {@code int}.
     *
     * @param length number of elements
     * @return the buffer
     */
    public IntBuffer allocateInts(int length) {
        return allocate(Math.multiplyExact(4, length)).asIntBuffer();
    }

    /**
     * {@link #allocate} for {@code long}.
     *
     * @param length number of elements
     * @return the buffer
     */
    public LongBuffer allocateLongs(int length) {
        return allocate(Math.multiplyExact(8, length)).asLongBuffer();
    }

    /** Cancels all calls that have not ended. */
    public void cancelAll() {
        Native.check(Native.grpc_cancel_all());
    }

    /** Cancels all calls that have not ended, ends the workers, and closes all functions and objects. */
    @Override
    public void close() {
        synchronized (this) {
            if (!isOpen) {
                return;
            }
            isOpen = false;
        }
        Native.grpc_cancel_all();
        completions.close();
        Native.check(Native.grpc_finalize());
    }
}

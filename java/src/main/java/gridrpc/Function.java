package gridrpc;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.IntByReference;

import java.util.List;

/** A remote function, from {@link Grid#function}. Workers are chosen for each call. */
public final class Function implements AutoCloseable {
    private final Handle handle;
    private final List<Parameter> parameters;

    Function(Grid grid, String name, String server) {
        Memory memory = new Memory(Native.HANDLE_SIZE);
        Native.check(
                server == null
                        ? Native.grpc_function_handle_default(memory, name)
                        : Native.grpc_function_handle_init(memory, server, name));
        handle = new Handle(grid, name, memory);
        parameters = handle.readParameters();
    }

    /**
     * Its parameters, in the order of the interface.
     *
     * @return the parameters
     */
    public List<Parameter> parameters() {
        return parameters;
    }

    /**
     * Calls the function and waits until its results are in the caller's arrays and buffers.
     *
     * <p>A thread that waits here does not notice {@link Thread#interrupt}; one in {@code submit(...).get()} does.
     *
     * @param arguments one for each parameter: see {@link gridrpc}
     * @throws IllegalArgumentException if one does not fit its parameter
     * @throws GridRpcException if the call failed
     */
    public void call(Object... arguments) {
        handle.call(parameters, arguments);
    }

    /**
     * Begins a call. It waits only while too many calls wait for workers.
     *
     * @param arguments one for each parameter: see {@link gridrpc}
     * @return the call
     * @throws IllegalArgumentException if one does not fit its parameter
     * @throws GridRpcException if the call cannot begin
     */
    public Call submit(Object... arguments) {
        return handle.submit(parameters, arguments);
    }

    /** Gives the function up. Calls that have begun and not ended are cancelled. */
    @Override
    public void close() {
        Native.grpc_function_handle_destruct(handle.handle);
    }

    @Override
    public String toString() {
        return handle.name;
    }

    private static final class Handle extends Callee {
        Handle(Grid grid, String name, Pointer handle) {
            super(grid, name, handle);
        }

        @Override
        int describe(Pointer described, long capacity, Pointer count) {
            return Native.grpc_function_parameters_np(handle, described, capacity, count);
        }

        @Override
        int run(Pointer stack) {
            return Native.grpc_call_arg_stack(handle, stack);
        }

        @Override
        int begin(IntByReference session, Pointer stack) {
            return Native.grpc_call_argstack_async(handle, session, stack);
        }
    }
}

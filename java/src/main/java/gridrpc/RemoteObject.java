package gridrpc;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.IntByReference;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * An instance of a class of a module, from {@link Grid#object}: it keeps its state in a worker of its own. Its methods
 * run one after the other, in the order of their calls.
 */
public final class RemoteObject implements AutoCloseable {
    private final Grid grid;
    private final String name;
    private final Memory handle = new Memory(Native.HANDLE_SIZE);

    /** Parameters of the methods that were called. */
    private final Map<String, List<Parameter>> parameters = new ConcurrentHashMap<>();

    RemoteObject(Grid grid, String name, String server) {
        this.grid = grid;
        this.name = name;
        Native.check(
                server == null
                        ? Native.grpc_object_handle_default_np(handle, name)
                        : Native.grpc_object_handle_init_np(handle, server, name));
    }

    /**
     * The parameters of a method, in the order of the interface.
     *
     * @param method its name
     * @return the parameters
     * @throws GridRpcException if the class has no such method
     */
    public List<Parameter> parameters(String method) {
        return parameters.computeIfAbsent(method, name -> new Method(name).readParameters());
    }

    /**
     * Calls a method and waits until its results are in the caller's arrays and buffers.
     *
     * @param method its name
     * @param arguments one for each parameter: see {@link gridrpc}
     * @throws IllegalArgumentException if one does not fit its parameter
     * @throws GridRpcException if the call failed
     */
    public void call(String method, Object... arguments) {
        new Method(method).call(parameters(method), arguments);
    }

    /**
     * Begins a call of a method.
     *
     * @param method its name
     * @param arguments one for each parameter: see {@link gridrpc}
     * @return the call
     * @throws IllegalArgumentException if one does not fit its parameter
     * @throws GridRpcException if the call cannot begin
     */
    public Call submit(String method, Object... arguments) {
        return new Method(method).submit(parameters(method), arguments);
    }

    /** Ends the object: cancels calls that have not ended, has it finalize, and ends its worker. */
    @Override
    public void close() {
        Native.grpc_object_handle_destruct_np(handle);
    }

    @Override
    public String toString() {
        return name;
    }

    private final class Method extends Callee {
        private final String method;

        Method(String method) {
            super(RemoteObject.this.grid, RemoteObject.this.name + "." + method, RemoteObject.this.handle);
            this.method = method;
        }

        @Override
        int describe(Pointer described, long capacity, Pointer count) {
            return Native.grpc_method_parameters_np(handle, method, described, capacity, count);
        }

        @Override
        int run(Pointer stack) {
            return Native.grpc_invoke_arg_stack_np(handle, method, stack);
        }

        @Override
        int begin(IntByReference session, Pointer stack) {
            return Native.grpc_invoke_argstack_async_np(handle, method, session, stack);
        }
    }
}

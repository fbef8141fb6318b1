package gridrpc;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.IntByReference;

import java.util.ArrayList;
import java.util.List;

/** What a function and a method of an object share: parameters, and calls with arguments. */
abstract class Callee {
    /** {@code grpc_parameter_np}: an address and four {@code int}. */
    private static final int PARAMETER_SIZE = 24;

    final Grid grid;
    final String name;
    final Pointer handle;

    Callee(Grid grid, String name, Pointer handle) {
        this.grid = grid;
        this.name = name;
        this.handle = handle;
    }

    /** Stores the parameters of the interface. */
    abstract int describe(Pointer parameters, long capacity, Pointer count);

    abstract int run(Pointer stack);

    abstract int begin(IntByReference session, Pointer stack);

    List<Parameter> readParameters() {
        Memory count = new Memory(8);
        Native.check(describe(null, 0, count));
        int length = (int) count.getLong(0);
        Memory memory = new Memory((long) PARAMETER_SIZE * Math.max(1, length));
        Native.check(describe(memory, length, count));
        List<Parameter> parameters = new ArrayList<>();
        for (int index = 0; index < length; index++) {
            Pointer one = memory.share((long) PARAMETER_SIZE * index);
            parameters.add(new Parameter(
                    one.getPointer(0).getString(0),
                    Parameter.Mode.values()[one.getInt(8) - 1],
                    Parameter.Type.values()[one.getInt(12)],
                    one.getInt(16) != 0,
                    one.getInt(20) != 0));
        }
        return List.copyOf(parameters);
    }

    void call(List<Parameter> parameters, Object[] arguments) {
        try (CallArguments given = new CallArguments(name, parameters, arguments)) {
            int error = run(given.stack());
            if (error != 0) {
                String detail = Native.grpc_error_detail_np(Native.NO_SESSION);
                given.rethrow();
                throw new GridRpcException(GridRpcException.Code.of(error), detail);
            }
            given.finish();
        }
    }

    Call submit(List<Parameter> parameters, Object[] arguments) {
        CallArguments given = new CallArguments(name, parameters, arguments);
        try {
            Call call = new Call(given);
            IntByReference session = new IntByReference(Native.NO_SESSION);
            Native.check(begin(session, given.stack()));
            grid.completions.begun(session.getValue(), call);
            return call;
        } catch (Throwable error) {
            given.close();
            throw error;
        }
    }
}

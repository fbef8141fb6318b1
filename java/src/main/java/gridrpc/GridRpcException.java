package gridrpc;

/** A call, or another request to the grid, failed. */
public final class GridRpcException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** Reasons, as in the GridRPC standard. */
    public enum Code {
        /** No grid is open. */
        NOT_INITIALIZED,
        /** A grid is already open in this process. */
        ALREADY_INITIALIZED,
        /** The configuration file cannot be read. */
        CONFIGFILE_NOT_FOUND,
        /** The configuration file is malformed. */
        CONFIGFILE_ERROR,
        /** There is no such server, or its workers cannot be started. */
        SERVER_NOT_FOUND,
        /** No known module has such a function. */
        FUNCTION_NOT_FOUND,
        /** The function is closed. */
        INVALID_FUNCTION_HANDLE,
        /** There is no such call. */
        INVALID_SESSION_ID,
        /** The server refuses the call. */
        RPC_REFUSED,
        /** The connection, or the worker behind it, was lost. */
        COMMUNICATION_FAILED,
        /** The call failed. */
        SESSION_FAILED,
        /** The call has not ended. */
        NOT_COMPLETED,
        /** No call has ended. */
        NONE_COMPLETED,
        /** The object is closed. */
        INVALID_OBJECT_HANDLE,
        /** No known module has such a class. */
        CLASS_NOT_FOUND,
        /** A time limit was reached. */
        TIMEOUT,
        /** The call was cancelled. */
        CANCELED,
        /** Anything else; {@link #detail} says what. */
        OTHER;

        /** The code of a number in grpc.h. */
        static Code of(int number) {
            return number >= 1 && number <= OTHER.ordinal() ? values()[number - 1] : OTHER;
        }
    }

    /** Why it failed. */
    private final Code code;

    /** Cause, host, worker, and the end of its output, as far as known. */
    private final String detail;

    GridRpcException(Code code, String detail) {
        this(code, detail, null);
    }

    GridRpcException(Code code, String detail, Throwable cause) {
        super(detail.isEmpty() ? code.name() : code + ": " + detail, cause);
        this.code = code;
        this.detail = detail;
    }

    /**
     * Why it failed.
     *
     * @return the code
     */
    public Code code() {
        return code;
    }

    /**
     * Cause, host, worker, and the end of its output, as far as known.
     *
     * @return the text, which may be empty
     */
    public String detail() {
        return detail;
    }
}

package gridrpc;

import java.util.concurrent.CompletableFuture;

/**
 * A call that nobody waits for yet. It completes when its results are in the caller's arrays and buffers, which must be
 * left alone until then, or with a {@link GridRpcException}.
 *
 * <p>Functions that depend on it run in the thread that delivers results, unless they are given an executor, as with
 * {@link #thenRunAsync(Runnable)}: they must not wait for other calls.
 */
public final class Call extends CompletableFuture<Void> {
    private final CallArguments arguments;
    private int session = Native.NO_SESSION;

    Call(CallArguments arguments) {
        this.arguments = arguments;
    }

    /**
     * Cancels the call: it is withdrawn if it waits, and its worker is stopped if it runs.
     *
     * <p>Arrays and buffers are in use until {@link Grid#close}, or until the call has ended at its worker.
     *
     * @param mayInterruptIfRunning has no effect
     * @return whether it was cancelled; false if it had completed
     */
    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
        boolean cancelled = super.cancel(mayInterruptIfRunning);
        synchronized (this) {
            if (cancelled && session != Native.NO_SESSION) {
                Native.grpc_cancel(session);
            }
        }
        return cancelled;
    }

    /** It has begun with this number. */
    void begun(int number) {
        synchronized (this) {
            session = number;
            if (isCancelled()) {
                Native.grpc_cancel(number);
            }
        }
    }

    /** It has ended, and the library has stored its results. */
    void ended() {
        int error = Native.grpc_get_error(session);
        String detail = error == 0 ? "" : Native.grpc_error_detail_np(session);
        Native.grpc_session_info_remove_np(session);
        Throwable failure = null;
        try (arguments) {
            if (error == 0) {
                arguments.finish();
            } else {
                arguments.rethrow();
                failure = new GridRpcException(GridRpcException.Code.of(error), detail);
            }
        } catch (RuntimeException thrown) {
            failure = thrown;
        }
        if (failure == null) {
            complete(null);
        } else {
            completeExceptionally(failure);
        }
    }
}

package gridrpc;

import com.sun.jna.ptr.IntByReference;

import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;

/** Delivers the results of calls in a thread, in the order in which they end. */
final class Completions implements AutoCloseable {
    /** By number of their session. A call may end before its submitter has entered it here. */
    private final Map<Integer, CompletableFuture<Call>> calls = new ConcurrentHashMap<>();

    /** One for each call that has begun and was not delivered. */
    private final Semaphore open = new Semaphore(0);

    private final AtomicInteger undelivered = new AtomicInteger();
    private final Thread thread = new Thread(this::deliver, "gridrpc results");

    Completions() {
        thread.setDaemon(true);
        thread.start();
    }

    /** A call has begun with this session. */
    void begun(int session, Call call) {
        call.begun(session);
        undelivered.incrementAndGet();
        entry(session).complete(call);
        open.release();
    }

    /** Waits until all calls, which have been cancelled, have ended. */
    @Override
    public void close() {
        boolean interrupted = false;
        synchronized (undelivered) {
            while (undelivered.get() > 0) {
                try {
                    undelivered.wait();
                } catch (InterruptedException error) {
                    interrupted = true;
                }
            }
        }
        thread.interrupt();
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private CompletableFuture<Call> entry(int session) {
        return calls.computeIfAbsent(session, number -> new CompletableFuture<>());
    }

    private void deliver() {
        IntByReference session = new IntByReference();
        while (true) {
            try {
                open.acquire();
            } catch (InterruptedException closed) {
                return;
            }
            Native.grpc_wait_any(session);
            int number = session.getValue();
            if (number == Native.NO_SESSION) {
                // The library was closed by another library in this process.
                return;
            }
            entry(number).thenAccept(call -> {
                calls.remove(number);
                call.ended();
                synchronized (undelivered) {
                    undelivered.decrementAndGet();
                    undelivered.notifyAll();
                }
            });
        }
    }
}

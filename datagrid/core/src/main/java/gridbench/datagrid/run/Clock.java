package gridbench.datagrid.run;

import java.util.concurrent.locks.LockSupport;

/** The time that is measured with, and waiting for it. */
public interface Clock {
    /** The clock of this machine: {@link System#nanoTime}, which all processes of a host share. */
    Clock SYSTEM = new SystemClock();

    /** Nanoseconds since some instant. */
    long now();

    /** Waits until a time, to within microseconds; returns at once if it has passed. The time then. */
    long waitUntil(long time);

    /** Sleeps at least until a time, without load. */
    void sleepUntil(long time);

    /** The clock of this machine. */
    final class SystemClock implements Clock {
        // What waking up takes, on Linux: the slack of timers and a switch of threads.
        private static final long EARLIER = 60_000;

        private SystemClock() {}

        @Override
        public long now() {
            return System.nanoTime();
        }

        @Override
        public long waitUntil(long time) {
            var now = System.nanoTime();
            while (now - time < 0) {
                if (time - now > EARLIER) {
                    LockSupport.parkNanos(time - now - EARLIER);
                } else {
                    Thread.onSpinWait();
                }
                now = System.nanoTime();
            }
            return now;
        }

        @Override
        public void sleepUntil(long time) {
            for (var left = time - System.nanoTime(); left > 0; left = time - System.nanoTime()) {
                LockSupport.parkNanos(left);
            }
        }
    }
}

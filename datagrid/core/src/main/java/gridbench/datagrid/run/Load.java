package gridbench.datagrid.run;

import java.util.Random;

/** What a client does between operations. */
final class Load {
    private final Clock clock;
    // Of this client alone: Math.random() would let clients wait for each other.
    private final Random random = new Random(0);
    // Nobody asks for it, but without it the compiler would leave out the calls.
    private double drawn;

    Load(Clock clock) {
        this.clock = clock;
    }

    void compute(long calls) {
        var sum = 0.0;
        for (var i = 0L; i < calls; i++) {
            sum += random.nextDouble();
        }
        drawn += sum;
    }

    void sleep(double seconds) {
        if (seconds > 0) {
            clock.sleepUntil(clock.now() + Math.round(seconds * 1e9));
        }
    }
}

package gridbench.datagrid.run;

import gridbench.datagrid.task.Steps;
import java.util.Random;

/** The steps of tasks that are measured. */
final class Measured implements Steps {
    private final Operations operations;
    private final Recorder recorder;
    private final Clock clock;
    private final boolean open;
    // Of this client alone: Math.random() would let clients wait for each other.
    private final Random random = new Random(0);
    // Nobody asks for it, but without it the compiler would leave out the calls.
    private double drawn;

    /**
     * @param open whether a schedule says when operations begin, in place of sleep and load
     */
    Measured(Operations operations, Recorder recorder, Clock clock, boolean open) {
        this.operations = operations;
        this.recorder = recorder;
        this.clock = clock;
        this.open = open;
    }

    @Override
    public void read(long key) {
        operations.read(key);
    }

    @Override
    public void readShared(long key) {
        if (operations.read(key)) {
            recorder.shared++;
        }
    }

    @Override
    public void update(long key) {
        operations.update(key, 1);
    }

    @Override
    public boolean insert(long key) {
        return operations.insert(key);
    }

    @Override
    public void overwrite(long key) {
        operations.overwrite(key);
    }

    @Override
    public void scan(long first, int count) {
        operations.scan(first, count);
    }

    @Override
    public void compute(long calls) {
        if (open) {
            return;
        }
        var sum = 0.0;
        for (var i = 0L; i < calls; i++) {
            sum += random.nextDouble();
        }
        drawn += sum;
    }

    @Override
    public void sleep(double seconds) {
        if (seconds > 0 && !open) {
            clock.sleepUntil(clock.now() + Math.round(seconds * 1e9));
        }
    }
}

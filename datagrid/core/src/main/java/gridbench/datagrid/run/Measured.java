package gridbench.datagrid.run;

import gridbench.datagrid.task.Steps;

/** The steps of tasks that are measured. */
final class Measured implements Steps {
    private final Operations operations;
    private final Recorder recorder;
    private final boolean open;
    private final Load load;

    /**
     * @param open whether a schedule says when operations begin, in place of sleep and load
     */
    Measured(Operations operations, Recorder recorder, Clock clock, boolean open) {
        this.operations = operations;
        this.recorder = recorder;
        this.open = open;
        load = new Load(clock);
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
        if (!open) {
            load.compute(calls);
        }
    }

    @Override
    public void sleep(double seconds) {
        if (!open) {
            load.sleep(seconds);
        }
    }
}

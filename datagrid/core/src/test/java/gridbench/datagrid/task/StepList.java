package gridbench.datagrid.task;

import java.util.ArrayList;
import java.util.List;

/** Notes the steps of tasks, in words. */
public final class StepList implements Steps {
    public final List<String> steps = new ArrayList<>();

    @Override
    public void read(long key) {
        steps.add("read " + key);
    }

    @Override
    public void readShared(long key) {
        steps.add("shared " + key);
    }

    @Override
    public void update(long key) {
        steps.add("update " + key);
    }

    @Override
    public boolean insert(long key) {
        steps.add("insert " + key);
        return true;
    }

    @Override
    public void overwrite(long key) {
        steps.add("overwrite " + key);
    }

    @Override
    public void scan(long first, int count) {
        steps.add("scan " + first + " " + count);
    }

    @Override
    public void compute(long calls) {
        steps.add("compute " + calls);
    }

    @Override
    public void sleep(double seconds) {
        steps.add("sleep " + seconds);
    }
}

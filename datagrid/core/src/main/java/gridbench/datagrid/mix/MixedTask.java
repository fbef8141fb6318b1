package gridbench.datagrid.mix;

import gridbench.datagrid.task.Parameters;
import gridbench.datagrid.task.Steps;
import gridbench.datagrid.task.Task;
import gridbench.datagrid.task.TaskKeys;

/** A task with as many operations as the specified one has, but drawn from a mix. */
public final class MixedTask implements Task {
    private final MixPlan plan;
    private final Mix mix;
    private final Parameters parameters;
    private final TaskKeys specified;
    private final KeySource source;

    public MixedTask(MixPlan plan) {
        this.plan = plan;
        mix = plan.mix();
        parameters = plan.parameters();
        specified = new TaskKeys(parameters);
        source = plan.keySource();
    }

    @Override
    public void run(long task, Steps steps) {
        for (var is = 0L; is < parameters.shared(); is++) {
            steps.readShared(specified.shared(is));
        }
        var operations = plan.operations(task);
        var keys = plan.keys(task);
        var inserted = plan.firstInserted(task);
        for (var ip = 0L; ip < parameters.repeats(); ip++) {
            for (var io = 0L; io < parameters.perIteration(); io++) {
                switch (mix.operation(operations.nextDouble())) {
                    case READ -> steps.read(source.next(keys));
                    case UPDATE -> steps.update(source.next(keys));
                    case OVERWRITE -> steps.overwrite(source.next(keys));
                    case INSERT -> {
                        if (steps.insert(inserted)) {
                            source.inserted(inserted);
                        }
                        inserted++;
                    }
                    case SCAN -> {
                        // Insertions may come later, or fail: a scan ends with the objects that are
                        // there from the beginning.
                        var first = Math.min(source.next(keys), parameters.objects() - 1);
                        var count = 1 + keys.nextInt(mix.scanLength());
                        steps.scan(first, (int) Math.min(count, parameters.objects() - first));
                    }
                }
            }
            steps.compute(parameters.randomCalls());
            steps.sleep(parameters.sleep());
        }
    }
}

package gridbench.datagrid.task;

/** The task as the benchmark specifies it. */
public final class SpecifiedTask implements Task {
    private final Parameters parameters;
    private final TaskKeys keys;

    public SpecifiedTask(Parameters parameters) {
        this.parameters = parameters;
        keys = new TaskKeys(parameters);
    }

    @Override
    public void run(long task, Steps steps) {
        for (var is = 0L; is < parameters.shared(); is++) {
            steps.readShared(keys.shared(is));
        }
        for (var ip = 0L; ip < parameters.repeats(); ip++) {
            for (var ir = 0L; ir < parameters.reads(); ir++) {
                steps.read(keys.read(task, ip, ir));
            }
            steps.compute(parameters.randomCalls());
            steps.sleep(parameters.sleep());
            for (var iu = 0L; iu < parameters.updates(); iu++) {
                steps.update(keys.update(task, ip, iu));
            }
            for (var iw = 0L; iw < parameters.inserts(); iw++) {
                steps.insert(keys.insert(task, ip, iw));
            }
        }
    }
}

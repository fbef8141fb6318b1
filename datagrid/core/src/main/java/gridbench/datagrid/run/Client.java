package gridbench.datagrid.run;

import gridbench.datagrid.Store;
import gridbench.datagrid.task.Task;
import java.util.function.BooleanSupplier;

/** A client, which processes every n-th task, n being the number of clients. */
final class Client {
    private final Store store;
    private final Plan plan;
    private final Clock clock;
    private final int number;

    /**
     * @param number among the clients of all processes, from 0
     */
    Client(Store store, Plan plan, Clock clock, int number) {
        this.store = store;
        this.plan = plan;
        this.clock = clock;
        this.number = number;
    }

    int number() {
        return number;
    }

    /** A recorder for all tasks of this client, whose first window begins at a time. */
    Recorder recorder(boolean open, long begin) {
        var windows = new Windows(begin, Math.max(1, Math.round(plan.window() * 1e9)));
        return new Recorder(open, windows, Math.toIntExact(tasks()));
    }

    /** Does its first task, which leaves no trace; how many nanoseconds it took. */
    long first(Task task, Recorder recorder, BooleanSupplier over) throws Exception {
        var steps = new FirstTask(
                operations(new ClosedLoop(clock), recorder),
                store,
                over,
                clock,
                plan.clients().all(),
                number,
                size());
        var began = clock.now();
        task.run(number, steps);
        var took = clock.now() - began - steps.removing();
        steps.removeInserted();
        return took;
    }

    /** Does the tasks' operations again and again, until told that it is over, and leaves no trace. */
    void warm(Task task, Recorder recorder, BooleanSupplier over) throws Exception {
        var pace = new ClosedLoop(clock);
        var steps = new Warming(
                operations(pace, recorder), store, over, clock, plan.clients().all(), number, size());
        while (!over.getAsBoolean()) {
            for (var id = (long) number; id < all() && !over.getAsBoolean(); id += step()) {
                task.run(id, steps);
            }
        }
        steps.removeInserted();
    }

    /** Processes this client's tasks from a time on. */
    void run(Task task, Recorder recorder, long at, BooleanSupplier over) {
        var pace = plan.open()
                // Clients without a task leave nothing out of the schedule.
                ? new OpenLoop(clock, at, Math.min(step(), all()), number, plan.rate().getAsDouble())
                : new ClosedLoop(clock);
        var steps = new Measured(operations(pace, recorder), recorder, clock, plan.open());
        clock.waitUntil(at);
        for (var id = (long) number; id < all() && !over.getAsBoolean(); id += step()) {
            recorder.beginTask(id, clock.now() - at);
            task.run(id, steps);
            recorder.endTask(clock.now() - at);
        }
    }

    /** Whether this client has anything to do with the store. */
    boolean hasOperations() {
        return tasks() > 0 && plan.parameters().perTask() > 0;
    }

    private long tasks() {
        return number < all() ? (all() - number - 1) / step() + 1 : 0;
    }

    private Operations operations(Pace pace, Recorder recorder) {
        return new Operations(store, size(), plan.atomic(), clock, pace, recorder);
    }

    private long all() {
        return plan.parameters().tasks();
    }

    private long step() {
        return plan.clients().all();
    }

    private int size() {
        return plan.parameters().size();
    }
}

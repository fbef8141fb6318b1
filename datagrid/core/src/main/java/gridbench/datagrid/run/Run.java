package gridbench.datagrid.run;

import gridbench.datagrid.Store;
import gridbench.datagrid.mix.MixPlan;
import gridbench.datagrid.mix.MixedTask;
import gridbench.datagrid.task.SpecifiedTask;
import gridbench.datagrid.task.Task;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.TreeMap;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;

/**
 * A run of this process's clients, each in a thread of its own: {@link #warm} first, and then either
 * {@link #go} or {@link #giveUp}.
 */
public final class Run {
    /** Receives the progress of the tasks, ten times a second. */
    public interface Progress {
        void done(long tasks, long operations);
    }

    private static final long BETWEEN_PROGRESS = 100;

    private final Plan plan;
    private final Clock clock;
    private final List<Client> clients = new ArrayList<>();
    // One for each client; what a mix has inserted is kept in them.
    private final List<Task> tasks = new ArrayList<>();
    // Of the present phase, one for each client.
    private final List<Recorder> recorders = new ArrayList<>();
    private final AtomicReference<Throwable> failure = new AtomicReference<>();
    private final CompletableFuture<Long> go = new CompletableFuture<>();
    private final Queue<Long> firstTasks = new ConcurrentLinkedQueue<>();
    private final CountDownLatch cold;
    private final CountDownLatch warm;
    private final CountDownLatch finished;
    private final CountDownLatch leave = new CountDownLatch(1);
    private volatile boolean warmUpOver;

    public Run(Store store, Plan plan, Clock clock) {
        this.plan = plan;
        this.clock = clock;
        var newTask = tasks(plan);
        var count = plan.clients().count();
        for (var i = 0; i < count; i++) {
            tasks.add(newTask.get());
            clients.add(new Client(store, plan, clock, plan.clients().first() + i));
        }
        cold = new CountDownLatch(count);
        warm = new CountDownLatch(count);
        finished = new CountDownLatch(count);
    }

    /**
     * Starts the clients, has each do its first task, and makes the tasks' operations until their rate
     * is steady.
     *
     * @throws ExecutionException if a client broke off; the run is then given up
     */
    public Warmed warm() throws InterruptedException, ExecutionException {
        var started = clock.now();
        clients.forEach(client -> recorders.add(client.recorder(false, started)));
        for (var i = 0; i < clients.size(); i++) {
            start(clients.get(i), i);
        }
        cold.await();
        var began = clock.now();
        var rates = new ArrayList<Double>();
        var steady = hasWarmUp() && awaitSteadiness(began, rates);
        warmUpOver = true;
        warm.await();
        if (hasFailed()) {
            giveUp();
            throw new ExecutionException(failure.get());
        }
        var errors = new TreeMap<String, Long>();
        recorders.forEach(recorder -> recorder.errors.addTo(errors));
        var first = firstTasks.stream().map(Run::seconds).toList();
        return new Warmed(first, seconds(clock.now() - began), steady, answered(), rates, errors);
    }

    /**
     * Processes the tasks.
     *
     * @param at when all clients begin, as {@link System#nanoTime} has it
     * @throws ExecutionException if a client broke off
     */
    public Ran go(long at, Progress progress) throws InterruptedException, ExecutionException {
        recorders.clear();
        clients.forEach(client -> recorders.add(client.recorder(plan.open(), at)));
        var before = new Usage();
        go.complete(at);
        while (!finished.await(BETWEEN_PROGRESS, TimeUnit.MILLISECONDS)) {
            progress.done(recorders.stream().mapToLong(Recorder::tasks).sum(), answered());
        }
        // What a thread has allocated cannot be asked any more when it has ended.
        var use = new Usage().since(before);
        leave.countDown();
        if (hasFailed()) {
            throw new ExecutionException(failure.get());
        }
        return Report.of(plan, clients, recorders, use);
    }

    /** Ends the clients, which wait for a measurement that does not come. */
    public void giveUp() {
        go.cancel(false);
        leave.countDown();
    }

    private void start(Client client, int index) {
        var thread = new Thread(() -> {
            try {
                warm(client, index);
                measure(client, index);
                leave.await();
            } catch (InterruptedException e) {
                // Nobody interrupts it but a process that ends.
            }
        }, "client-" + client.number());
        thread.setDaemon(true);
        thread.start();
    }

    private void warm(Client client, int index) {
        try {
            if (hasWarmUp() && client.hasOperations()) {
                firstTasks.add(client.first(tasks.get(index), recorders.get(index), this::hasFailed));
                cold.countDown();
                client.warm(tasks.get(index), recorders.get(index), () -> warmUpOver || hasFailed());
            }
        } catch (Throwable e) {
            failure.compareAndSet(null, e);
        } finally {
            cold.countDown();
            warm.countDown();
        }
    }

    private void measure(Client client, int index) throws InterruptedException {
        try {
            // Only then are the recorders those of the measurement.
            var at = go.get();
            client.run(tasks.get(index), recorders.get(index), at, this::hasFailed);
        } catch (CancellationException e) {
            // The run was given up.
        } catch (InterruptedException e) {
            throw e;
        } catch (Throwable e) {
            failure.compareAndSet(null, e);
        } finally {
            finished.countDown();
        }
    }

    private boolean hasFailed() {
        return failure.get() != null;
    }

    private boolean hasWarmUp() {
        return plan.warmUp().most() > 0 && clients.stream().anyMatch(Client::hasOperations);
    }

    private boolean awaitSteadiness(long began, List<Double> rates) {
        var warmUp = plan.warmUp();
        var from = began;
        // Those of the first tasks were answered in no window.
        var before = answered();
        while (!hasFailed() && seconds(from - began) < warmUp.most()) {
            clock.sleepUntil(from + Math.round(warmUp.window() * 1e9));
            var to = clock.now();
            var operations = answered();
            rates.add((operations - before) / seconds(to - from));
            before = operations;
            from = to;
            if (seconds(to - began) >= warmUp.least()
                    && Steadiness.reached(rates, warmUp.window(), warmUp.within())) {
                return true;
            }
        }
        return false;
    }

    private long answered() {
        return recorders.stream().mapToLong(Recorder::answered).sum();
    }

    private static double seconds(long nanoseconds) {
        return nanoseconds / 1e9;
    }

    private static Supplier<Task> tasks(Plan plan) {
        if (plan.mix().isEmpty()) {
            return () -> new SpecifiedTask(plan.parameters());
        }
        var mixed = new MixPlan(plan.mix().get(), plan.parameters());
        return () -> new MixedTask(mixed);
    }
}

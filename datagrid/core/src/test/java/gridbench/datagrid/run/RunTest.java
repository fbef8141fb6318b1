package gridbench.datagrid.run;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import gridbench.datagrid.data.Checking;
import gridbench.datagrid.mix.Mix;
import gridbench.datagrid.task.Parameters;
import gridbench.datagrid.task.SpecifiedTask;
import gridbench.datagrid.value.Values;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

class RunTest {
    private static Ran run(MapStore store, Plan plan) throws Exception {
        var run = new Run(store, plan, Clock.SYSTEM);
        run.warm();
        return run.go(System.nanoTime() + 1_000_000, (tasks, operations) -> {});
    }

    @Test
    void countsAreExactAfterAWarmUp() throws Exception {
        // 50 objects and 3 shared ones.
        var store = new MapStore().with(53, Plans.SIZE);
        var parameters = Plans.parameters(20, 5, 2, 1, 4, 50, 3);
        var plan = Plans.plan(
                parameters, 3, OptionalDouble.empty(), false, Optional.empty(), 0.3);
        var run = new Run(store, plan, Clock.SYSTEM);
        var warmed = run.warm();
        assertTrue(warmed.operations() > 0 && !warmed.rates().isEmpty(), warmed.toString());
        assertEquals(Map.of(), warmed.errors());
        assertEquals(3, warmed.cold().size());
        assertEquals(53, store.size());
        assertEquals(new Checking.Checked(53, 0, 0, 0), Checking.check(store, 0, 53, Plans.SIZE, done -> {}));

        var ran = run.go(System.nanoTime(), (tasks, operations) -> {});
        assertEquals(new Ran.Counts(200, 100, 400, 0, 0, 60), ran.counts());
        assertEquals(453, store.size());
        var checked = Checking.check(store, 0, 453, Plans.SIZE, done -> {});
        assertEquals(453, checked.read());
        assertEquals(0, checked.wrong() + checked.missing());
        assertEquals(0, ran.wrong() + ran.missing() + ran.inDoubt() + ran.conflicts());
        assertEquals(Map.of(), ran.errors());

        var tasks = ran.tasks();
        assertEquals(
                LongStream.range(0, 20).boxed().toList(),
                Arrays.stream(tasks.id()).sorted().boxed().toList());
        for (var i = 0; i < 20; i++) {
            assertEquals(tasks.id()[i] % 3, tasks.client()[i]);
            assertEquals(38, tasks.operations()[i]);
            assertEquals("", tasks.why()[i]);
            assertTrue(tasks.began()[i] >= 0 && tasks.ended()[i] >= tasks.began()[i]);
        }
        assertEquals(760, Arrays.stream(ran.windows().operations()).sum());
        assertEquals(0, Arrays.stream(ran.windows().errors()).sum());
        assertEquals(760, ran.latencies().stream().flatMapToLong(one -> Arrays.stream(one.counts())).sum());
        // Processor time comes in steps of 10 ms.
        assertTrue(ran.process().cpu() >= 0 && ran.process().allocated() > 0);
    }

    @Test
    void processesShareTheTasks() throws Exception {
        var store = new MapStore().with(50, Plans.SIZE);
        var parameters = Plans.parameters(10, 1, 1, 0, 1, 50, 0);
        for (var process = 0; process < 2; process++) {
            var closed = Plans.closed(parameters, 4);
            var plan = new Plan(
                    parameters,
                    new Plan.Clients(4, 2 * process, 2),
                    closed.rate(),
                    false,
                    Optional.empty(),
                    new Plan.WarmUp(0, 0.1, 0.02, 0.1),
                    0.1);
            var ran = run(store, plan);
            assertEquals(
                    process == 0 ? "[0, 1, 4, 5, 8, 9]" : "[2, 3, 6, 7]",
                    Arrays.toString(Arrays.stream(ran.tasks().id()).sorted().toArray()));
        }
        assertEquals(60, store.size());
        assertEquals(60, Checking.check(store, 0, 60, Plans.SIZE, done -> {}).read());
    }

    @Test
    void atomicUpdatesUnderContentionAddUp() throws Exception {
        var store = new MapStore() {
            @Override
            void before(String operation, long key) {
                // Gives the others a chance to come between.
                Thread.yield();
            }
        }.with(2, Plans.SIZE);
        var parameters = Plans.parameters(80, 100, 0, 1, 0, 2, 0);
        var plan = Plans.plan(
                parameters, 8, OptionalDouble.empty(), true, Optional.empty(), 0.1);
        var ran = run(store, plan);
        assertEquals(8000, ran.counts().updates());
        assertTrue(ran.conflicts() > 0, "no conflicts at all");
        assertEquals(new Checking.Checked(2, 0, 0, 8000), Checking.check(store, 0, 2, Plans.SIZE, done -> {}));
    }

    @Test
    void failuresAreCountedAndTasksGoOn() throws Exception {
        var operations = new AtomicLong();
        var store = new MapStore() {
            @Override
            void before(String operation, long key) throws Exception {
                if (operations.incrementAndGet() % 10 == 0) {
                    throw new IOException("lost the " + operation);
                }
            }
        }.with(50, Plans.SIZE);
        var parameters = Plans.parameters(1, 10, 7, 1, 1, 50, 0);
        var ran = run(store, Plans.closed(parameters, 1));
        // Each iteration: 7 times get, get and put of the update, put of the insertion.
        assertEquals(new Ran.Counts(70, 10, 0, 0, 0, 0), ran.counts());
        assertEquals(Map.of("IOException: lost the put", 10L), ran.errors());
        assertEquals(10, ran.inDoubt());
        assertEquals(LongStream.range(50, 60).boxed().toList(), ran.doubtful());
        assertEquals(80, ran.tasks().operations()[0]);
        assertEquals("IOException: lost the put", ran.tasks().why()[0]);
        assertEquals(80, Arrays.stream(ran.windows().operations()).sum());
        assertEquals(10, Arrays.stream(ran.windows().errors()).sum());
        assertEquals(50, store.size());
    }

    @Test
    void updatesThatFailBeforeTheyWriteAreNotInDoubt() throws Exception {
        var store = new MapStore() {
            @Override
            void before(String operation, long key) throws Exception {
                if (key == 3 && operation.equals("get") || key == 4 && !operation.equals("get")) {
                    throw new IOException("object " + key);
                }
            }
        }.with(10, Plans.SIZE);
        for (var atomic : new boolean[] {false, true}) {
            var plan = Plans.plan(
                    Plans.parameters(1, 10, 0, 1, 0, 10, 0),
                    1,
                    OptionalDouble.empty(),
                    atomic,
                    Optional.empty(),
                    0);
            var ran = run(store, plan);
            assertEquals(8, ran.counts().updates());
            assertEquals(1, ran.inDoubt());
            assertEquals(List.of(), ran.doubtful());
            assertEquals(2, ran.errors().size());
        }
        assertEquals(16, Checking.check(store.map, 0, 10, Plans.SIZE, done -> {}).updates());
    }

    @Test
    void missingAndWrongObjectsAreTold() throws Exception {
        var store = new MapStore().with(10, Plans.SIZE);
        store.map.remove(List.of(3L));
        store.map.put(5, Values.make(6, Plans.SIZE));
        var spoiled = Values.make(7, Plans.SIZE);
        spoiled[Plans.SIZE - 1]++;
        store.map.put(7, spoiled);
        var ran = run(store, Plans.closed(Plans.parameters(10, 1, 1, 0, 0, 10, 0), 2));
        assertEquals(1, ran.missing());
        assertEquals(2, ran.wrong());
        assertEquals(10, ran.counts().reads());
        assertEquals("the object with key 3 is missing", why(ran, 3));
        assertEquals("the value of key 5 is not what was stored", why(ran, 5));
        assertEquals("the value of key 7 is not what was stored", why(ran, 7));

        var updated = run(store, Plans.closed(Plans.parameters(10, 1, 0, 1, 0, 10, 0), 2));
        assertEquals(1, updated.missing());
        assertEquals(2, updated.wrong());
        assertEquals(9, store.size());
    }

    @Test
    void mixesLeaveExactCounts() throws Exception {
        for (var keys : Mix.Keys.values()) {
            var store = new MapStore().with(100, Plans.SIZE);
            var mix = new Mix(0.3, 0.1, 0.3, 0.2, 0.1, keys, 10, 11);
            var plan = Plans.plan(
                    Plans.parameters(20, 10, 10, 0, 0, 100, 0),
                    3,
                    OptionalDouble.empty(),
                    true,
                    Optional.of(mix),
                    0.1);
            var ran = run(store, plan);
            var counts = ran.counts();
            assertEquals(
                    2000,
                    counts.reads() + counts.updates() + counts.inserts() + counts.overwrites() + counts.scans());
            assertTrue(counts.inserts() > 0 && counts.scans() > 0 && counts.overwrites() > 0);
            assertEquals(0, ran.missing() + ran.wrong());
            assertEquals(100 + counts.inserts(), store.size());
            assertEquals(store.size(), Checking.check(store, 0, store.size(), Plans.SIZE, done -> {}).read());
        }
    }

    @Test
    void anErrorOfTheMachineEndsTheRun() throws Exception {
        var store = new MapStore() {
            @Override
            void before(String operation, long key) {
                if (key == 7) {
                    throw new OutOfMemoryError("no room");
                }
            }
        }.with(10, Plans.SIZE);
        var parameters = Plans.parameters(10, 1, 1, 0, 0, 10, 0);
        var cold = new Run(store, Plans.closed(parameters, 2), Clock.SYSTEM);
        cold.warm();
        var failure = assertThrows(
                ExecutionException.class, () -> cold.go(System.nanoTime(), (tasks, operations) -> {}));
        assertEquals("OutOfMemoryError: no room", Failure.text(failure));
        var plan = Plans.plan(parameters, 2, OptionalDouble.empty(), false, Optional.empty(), 60);
        assertThrows(ExecutionException.class, () -> new Run(store, plan, Clock.SYSTEM).warm());
    }

    @Test
    void tasksSleepAndCompute() throws Exception {
        var clock = new ManualClock();
        var parameters = new Parameters(1, 1, 2, 3, 1, 0, 0, 10, Plans.SIZE, 0, 1000, 0.25);
        var client = new Client(
                new MapStore().with(10, Plans.SIZE), Plans.closed(parameters, 1), clock, 0);
        var recorder = client.recorder(false, 0);
        client.run(new SpecifiedTask(parameters), recorder, 0, () -> false);
        assertEquals(1_500_000_000, clock.now);
        assertEquals(750_000_000, recorder.log.ended[0]);
        assertEquals(750_000_000, recorder.log.began[1]);
    }

    @Test
    void moreClientsThanTasksAreNoTrouble() throws Exception {
        var store = new MapStore().with(10, Plans.SIZE);
        var plan = Plans.plan(
                Plans.parameters(2, 1, 1, 0, 0, 10, 0),
                5,
                OptionalDouble.empty(),
                false,
                Optional.empty(),
                0.1);
        assertEquals(2, run(store, plan).tasks().id().length);
        var none = Plans.parameters(0, 1, 1, 0, 0, 10, 0);
        var ran = run(store, Plans.plan(none, 2, OptionalDouble.empty(), false, Optional.empty(), 9));
        assertEquals(0, ran.ended());
        assertNotNull(ran.windows());
    }

    private static String why(Ran ran, long task) {
        for (var i = 0; i < ran.tasks().id().length; i++) {
            if (ran.tasks().id()[i] == task) {
                return ran.tasks().why()[i];
            }
        }
        throw new AssertionError("no task " + task);
    }
}

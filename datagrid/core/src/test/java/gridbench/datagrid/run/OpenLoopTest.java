package gridbench.datagrid.run;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import gridbench.datagrid.task.SpecifiedTask;
import java.util.List;
import org.junit.jupiter.api.Test;

class OpenLoopTest {
    private static final long MS = 1_000_000;

    @Test
    void operationsBeginByTheScheduleOfTheirClient() {
        var clock = new ManualClock();
        var pace = new OpenLoop(clock, 1000, 4, 3, 1e6);
        assertEquals(1000 + 3000, pace.begin());
        assertEquals(1000 + 7000, pace.begin());
        clock.now = 30_000;
        assertEquals(30_000, pace.begin());
        assertEquals(1000 + 11_000, pace.intended());
        assertEquals(30_000, pace.begin());
        assertEquals(1000 + 15_000, pace.intended());
        clock.now = 0;
        assertEquals(1000 + 19_000, pace.begin());
    }

    @Test
    void intendedLatenciesShowTheQueueBehindAStall() throws Exception {
        var clock = new ManualClock();
        clock.now = 5000 * MS;
        var store = new MapStore() {
            private int operations;

            @Override
            void before(String operation, long key) {
                operations++;
                clock.now += operations == 100 ? 300 * MS : MS / 10;
            }
        }.with(10, Plans.SIZE);
        var parameters = Plans.parameters(1, 1000, 1, 0, 0, 10, 0);
        var client = new Client(store, Plans.open(parameters, 1, 1000), clock, 0);
        var at = clock.now + 7 * MS;
        var recorder = client.recorder(true, at);
        client.run(new SpecifiedTask(parameters), recorder, at, () -> false);
        var plan = Plans.open(parameters, 1, 1000);
        var ran = Report.of(plan, List.of(client), List.of(recorder), null);

        assertEquals(1, above(ran, "service", 50 * MS));
        // A thousand operations per second: those of 300 ms wait, and what waits becomes less by 0.9 ms
        // with each operation.
        assertEquals(1 + 222.0, above(ran, "intended", 100 * MS), 2);
        assertEquals(1 + 333.0, above(ran, "intended", MS), 4);
        assertEquals(1000, above(ran, "intended", 0));
        assertEquals(1000, above(ran, "service", 0));
        // The schedule was made up for.
        assertEquals(999 * MS + MS / 10, ran.ended());
        assertEquals(ran.ended(), ran.tasks().ended()[0]);
        assertEquals(0, ran.tasks().began()[0]);
    }

    @Test
    void clientsWithoutATaskLeaveNoGaps() throws Exception {
        var clock = new ManualClock();
        var parameters = Plans.parameters(1, 11, 1, 0, 0, 10, 0);
        var client = new Client(new MapStore().with(10, Plans.SIZE), Plans.open(parameters, 4, 1000), clock, 0);
        var recorder = client.recorder(true, 0);
        client.run(new SpecifiedTask(parameters), recorder, 0, () -> false);
        assertEquals(10 * MS, recorder.log.ended[0]);
    }

    @Test
    void closedLoopsHaveNoIntendedLatencies() throws Exception {
        var parameters = Plans.parameters(1, 10, 1, 0, 0, 10, 0);
        var plan = Plans.closed(parameters, 1);
        var run = new Run(new MapStore().with(10, Plans.SIZE), plan, Clock.SYSTEM);
        run.warm();
        var ran = run.go(System.nanoTime(), (tasks, operations) -> {});
        assertTrue(ran.latencies().stream().allMatch(latency -> latency.from().equals("service")));
        assertEquals(10, above(ran, "service", 0));
    }

    private static long above(Ran ran, String from, long latency) {
        var count = 0L;
        for (var one : ran.latencies()) {
            for (var i = 0; one.from().equals(from) && i < one.values().length; i++) {
                count += one.values()[i] > latency ? one.counts()[i] : 0;
            }
        }
        return count;
    }
}

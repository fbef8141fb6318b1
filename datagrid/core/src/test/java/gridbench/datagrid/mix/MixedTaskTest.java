package gridbench.datagrid.mix;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import gridbench.datagrid.task.Operation;
import gridbench.datagrid.task.Parameters;
import gridbench.datagrid.task.StepList;
import java.util.ArrayList;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

class MixedTaskTest {
    private static final Parameters PARAMETERS =
            new Parameters(4, 1, 20, 50, 10, 10, 0, 1000, 1024, 1, 2, 0.5);

    private static Mix mix(double read, double overwrite, double update, double insert, double scan) {
        return new Mix(read, overwrite, update, insert, scan, Mix.Keys.UNIFORM, 30, 7);
    }

    @Test
    void operationsHaveTheirShares() {
        var mix = mix(0.5, 0.2, 0.1, 0.05, 0.15);
        assertEquals(Operation.READ, mix.operation(0));
        assertEquals(Operation.READ, mix.operation(0.499));
        assertEquals(Operation.OVERWRITE, mix.operation(0.501));
        assertEquals(Operation.UPDATE, mix.operation(0.701));
        assertEquals(Operation.INSERT, mix.operation(0.801));
        assertEquals(Operation.SCAN, mix.operation(0.851));
        assertEquals(Operation.SCAN, mix.operation(Math.nextDown(1.0)));
        assertEquals(Operation.INSERT, mix(0, 0, 0, 1, 0).operation(Math.nextDown(1.0)));
    }

    @Test
    void sharesHaveToBeAllTogether() {
        mix(0.1, 0.2, 0.3, 0.3, 0.1);
        assertThrows(IllegalArgumentException.class, () -> mix(0.5, 0.2, 0, 0, 0));
        assertThrows(IllegalArgumentException.class, () -> mix(0.5, 0.6, 0, 0, 0));
    }

    @Test
    void insertionsOfAllTasksHaveNoHoles() {
        var plan = new MixPlan(mix(0.5, 0, 0, 0.5, 0), PARAMETERS);
        var keys = new ArrayList<Long>();
        // Whichever client processes a task.
        for (var task = 19; task >= 0; task--) {
            var steps = new StepList();
            new MixedTask(plan).run(task, steps);
            steps.steps.stream()
                    .filter(step -> step.startsWith("insert "))
                    .forEach(step -> keys.add(Long.parseLong(step.substring(7))));
        }
        assertEquals(10_000.0, keys.size(), 500.0);
        assertEquals(
                LongStream.range(1001, 1001 + keys.size()).boxed().toList(),
                keys.stream().sorted().toList());
    }

    @Test
    void aTaskFollowsFromItsNumber() {
        var plan = new MixPlan(mix(0.4, 0.2, 0.2, 0.1, 0.1), PARAMETERS);
        var once = new StepList();
        var again = new StepList();
        var other = new StepList();
        new MixedTask(plan).run(3, once);
        new MixedTask(plan).run(3, again);
        new MixedTask(plan).run(4, other);
        assertEquals(once.steps, again.steps);
        assertTrue(!once.steps.equals(other.steps));
        assertEquals(1 + 50 * (20 + 2), once.steps.size());
        assertEquals("shared 1000", once.steps.get(0));
        assertEquals("compute 2", once.steps.get(21));
        assertEquals("sleep 0.5", once.steps.get(22));
    }

    @Test
    void scansStayAmongTheObjects() {
        for (var keys : Mix.Keys.values()) {
            var mix = new Mix(0, 0, 0, 0.1, 0.9, keys, 30, 7);
            var steps = new StepList();
            new MixedTask(new MixPlan(mix, PARAMETERS)).run(0, steps);
            var longest = 0L;
            for (var step : steps.steps) {
                if (step.startsWith("scan ")) {
                    var words = step.split(" ");
                    var first = Long.parseLong(words[1]);
                    var count = Long.parseLong(words[2]);
                    assertTrue(first >= 0 && count >= 1 && count <= 30 && first + count <= 1000, step);
                    longest = Math.max(longest, count);
                }
            }
            assertEquals(30, longest);
        }
    }
}

package gridbench.datagrid.task;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Test;

class SpecifiedTaskTest {
    @Test
    void stepsAreInTheOrderOfTheSpecification() {
        var steps = new StepList();
        var parameters = new Parameters(1, 1, 3, 2, 2, 1, 2, 10, 1024, 2, 7, 0.5);
        new SpecifiedTask(parameters).run(1, steps);
        assertEquals(
                List.of(
                        "shared 10", "shared 11",
                        "read 6", "read 7", "compute 7", "sleep 0.5", "update 8", "insert 16", "insert 17",
                        "read 9", "read 0", "compute 7", "sleep 0.5", "update 1", "insert 18", "insert 19"),
                steps.steps);
        assertEquals(2 + 2 * 5, parameters.perTask());
    }
}

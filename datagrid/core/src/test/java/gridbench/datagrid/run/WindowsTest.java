package gridbench.datagrid.run;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class WindowsTest {
    @Test
    void operationsAreInTheWindowInWhichTheyEnded() {
        var windows = new Windows(1000, 100);
        windows.answered(1000);
        windows.answered(1099);
        windows.answered(1100);
        windows.failed(1350);
        windows.answered(1400);
        assertEquals(5, windows.count());
        var operations = new long[6];
        var errors = new long[6];
        windows.addOperations(operations);
        windows.addOperations(operations);
        windows.addErrors(errors);
        assertArrayEquals(new long[] {4, 2, 0, 0, 2, 0}, operations);
        assertArrayEquals(new long[] {0, 0, 0, 1, 0, 0}, errors);
    }

    @Test
    void longPausesAreWindowsWithoutOperations() {
        var windows = new Windows(0, 10);
        windows.answered(5);
        windows.answered(100_005);
        var operations = new long[windows.count()];
        windows.addOperations(operations);
        assertEquals(10_001, operations.length);
        assertEquals(1, operations[0]);
        assertEquals(1, operations[10_000]);
    }
}

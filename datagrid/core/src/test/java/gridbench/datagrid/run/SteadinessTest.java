package gridbench.datagrid.run;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Arrays;
import org.junit.jupiter.api.Test;

class SteadinessTest {
    private static void check(boolean steady, double... rates) {
        check(1000, steady, rates);
    }

    private static void check(double window, boolean steady, double... rates) {
        assertEquals(steady, Steadiness.reached(Arrays.stream(rates).boxed().toList(), window, 0.1));
    }

    @Test
    void equalRatesAreSteady() {
        check(true, 10, 10, 10, 10, 10);
        check(true, 100, 95, 104, 98, 101);
    }

    @Test
    void theLastFiveCount() {
        check(false, 10, 10, 10, 10);
        check(true, 1, 2, 5, 10, 10, 10, 10, 10);
        check(false, 10, 10, 10, 10, 10, 1);
    }

    @Test
    void oneOutlierIsTooMany() {
        check(false, 100, 100, 115, 100, 100);
        check(false, 100, 100, 85, 100, 100);
    }

    @Test
    void aTrendIsNotSteady() {
        check(false, 92, 96, 100, 104, 108);
        check(false, 108, 104, 100, 96, 92);
        check(true, 108, 96, 100, 104, 92 + 8);
    }

    @Test
    void fewOperationsScatter() {
        // 10 in half a second: 6 more or less may be chance.
        check(0.5, true, 20, 26, 16, 24, 14);
        check(0.5, false, 20, 20, 45, 20, 20);
        check(0.5, false, 8, 14, 20, 26, 32);
        // 1000 do not scatter so far.
        check(0.5, false, 2000, 2600, 1600, 2400, 1400);
    }

    @Test
    void nothingIsNotSteady() {
        check(false, 0, 0, 0, 0, 0);
    }
}

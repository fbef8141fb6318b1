package gridbench.datagrid.run;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Arrays;
import org.junit.jupiter.api.Test;

class SteadinessTest {
    private static void check(boolean steady, double... rates) {
        assertEquals(steady, Steadiness.reached(Arrays.stream(rates).boxed().toList(), 0.1));
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
    void nothingIsNotSteady() {
        check(false, 0, 0, 0, 0, 0);
    }
}

package gridbench.datagrid.run;

import java.util.List;
import java.util.Map;

/**
 * What the warm-up of a process was like.
 *
 * @param cold seconds of the first task of each client that has one, right after it had connected
 * @param steady whether the rate became steady
 * @param operations that were answered
 * @param rates operations per second in each window
 * @param errors by their texts
 */
public record Warmed(
        List<Double> cold,
        double seconds,
        boolean steady,
        long operations,
        List<Double> rates,
        Map<String, Long> errors) {}

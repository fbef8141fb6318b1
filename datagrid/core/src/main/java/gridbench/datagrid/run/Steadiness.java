package gridbench.datagrid.run;

import java.util.List;

/** Whether a rate has become steady. */
final class Steadiness {
    private static final int WINDOWS = 5;
    // Of a count of operations, by which a window may differ from the mean by chance.
    private static final double DEVIATIONS = 2;

    private Steadiness() {}

    /**
     * Whether the last five rates are near their mean, and neither rise nor fall.
     *
     * @param rates of windows of time that follow each other
     * @param window seconds of each of these: where few operations end, their numbers scatter
     * @param within how far each rate may be from the mean, and how far a line through them may rise
     *     or fall from the first one to the last, as a fraction of the mean
     */
    static boolean reached(List<Double> rates, double window, double within) {
        if (rates.size() < WINDOWS) {
            return false;
        }
        var last = rates.subList(rates.size() - WINDOWS, rates.size());
        var mean = last.stream().mapToDouble(rate -> rate).average().orElseThrow();
        var chance = DEVIATIONS * Math.sqrt(mean / window);
        var middle = (WINDOWS - 1) / 2.0;
        var covariance = 0.0;
        var variance = 0.0;
        for (var i = 0; i < WINDOWS; i++) {
            if (Math.abs(last.get(i) - mean) > Math.max(within * mean, chance)) {
                return false;
            }
            covariance += (i - middle) * (last.get(i) - mean);
            variance += (i - middle) * (i - middle);
        }
        var rise = covariance / variance * (WINDOWS - 1);
        var byChance = chance / Math.sqrt(variance) * (WINDOWS - 1);
        return mean > 0 && Math.abs(rise) <= Math.max(within * mean, byChance);
    }
}

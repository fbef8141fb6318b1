package gridbench.datagrid.run;

import gridbench.datagrid.task.Operation;
import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.HdrHistogram.Histogram;

/** Histograms of latencies, one for each kind of operation. Each client has its own. */
final class Latencies {
    private static final long HIGHEST = TimeUnit.HOURS.toNanos(1);

    private final Histogram[] histograms = new Histogram[Operation.values().length];

    /** Records a latency in nanoseconds; what is above an hour counts as an hour. */
    void record(Operation operation, long latency) {
        var histogram = histograms[operation.ordinal()];
        if (histogram == null) {
            histogram = empty();
            histograms[operation.ordinal()] = histogram;
        }
        histogram.recordValue(Math.min(latency, HIGHEST));
    }

    /** Adds another client's. */
    void add(Latencies others) {
        for (var i = 0; i < histograms.length; i++) {
            if (others.histograms[i] != null) {
                if (histograms[i] == null) {
                    histograms[i] = empty();
                }
                histograms[i].add(others.histograms[i]);
            }
        }
    }

    /** The histograms of those kinds of operations that there were. */
    Map<Operation, Slots> slots() {
        var slots = new EnumMap<Operation, Slots>(Operation.class);
        for (var operation : Operation.values()) {
            var histogram = histograms[operation.ordinal()];
            if (histogram != null) {
                slots.put(operation, Slots.of(histogram));
            }
        }
        return slots;
    }

    /** A histogram of nanoseconds with three digits, which grows with what is recorded. */
    static Histogram empty() {
        var histogram = new Histogram(3);
        histogram.setAutoResize(true);
        return histogram;
    }
}

package gridbench.datagrid.run;

import java.util.stream.LongStream;
import org.HdrHistogram.Histogram;

/**
 * The slots of a histogram that are not empty.
 *
 * @param values the highest value of each slot, in nanoseconds
 * @param counts how many values fell into it
 */
public record Slots(long[] values, long[] counts) {
    static Slots of(Histogram histogram) {
        var values = LongStream.builder();
        var counts = LongStream.builder();
        for (var slot : histogram.recordedValues()) {
            values.add(slot.getValueIteratedTo());
            counts.add(slot.getCountAddedInThisIterationStep());
        }
        return new Slots(values.build().toArray(), counts.build().toArray());
    }
}

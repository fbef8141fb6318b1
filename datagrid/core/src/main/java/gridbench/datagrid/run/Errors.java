package gridbench.datagrid.run;

import java.util.Map;
import java.util.TreeMap;

/**
 * Errors by their texts. Texts with a number in each would fill memory: when there are many, further
 * ones are counted by their class alone.
 */
final class Errors {
    private static final int MOST_TEXTS = 50;

    private final Map<String, Long> counts = new TreeMap<>();

    /** Counts an exception; its text. */
    String count(Throwable failure) {
        var text = Failure.text(failure);
        var known = counts.containsKey(text) || counts.size() < MOST_TEXTS;
        counts.merge(known ? text : failure.getClass().getSimpleName(), 1L, Long::sum);
        return text;
    }

    /** Adds these to a sum. */
    void addTo(Map<String, Long> sum) {
        counts.forEach((text, count) -> sum.merge(text, count, Long::sum));
    }
}

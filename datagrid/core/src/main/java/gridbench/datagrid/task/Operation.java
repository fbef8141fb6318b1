package gridbench.datagrid.task;

import java.util.Locale;

/** The kinds of operations whose latencies are told apart. */
public enum Operation {
    READ,
    UPDATE,
    INSERT,
    OVERWRITE,
    SCAN;

    /** The name in messages. */
    public String word() {
        return name().toLowerCase(Locale.ROOT);
    }
}

package gridbench.datagrid.run;

import gridbench.datagrid.Store;
import java.util.function.BooleanSupplier;

/**
 * The steps of a client's first task, right after it has connected: all of it, with the load between
 * operations, but it leaves no trace, as those of the warm-up.
 */
final class FirstTask extends Warming {
    private final Load load;

    /** See {@link Warming}. */
    FirstTask(
            Operations operations,
            Store store,
            BooleanSupplier over,
            Clock clock,
            long clients,
            long client,
            int size) {
        super(operations, store, over, clock, clients, client, size);
        load = new Load(clock);
    }

    @Override
    public void compute(long calls) {
        load.compute(calls);
    }

    @Override
    public void sleep(double seconds) {
        load.sleep(seconds);
    }
}

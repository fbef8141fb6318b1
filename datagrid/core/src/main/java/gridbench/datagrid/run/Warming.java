package gridbench.datagrid.run;

import gridbench.datagrid.Store;
import gridbench.datagrid.task.Steps;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;

/**
 * The steps of tasks before the measurement: the same operations, but they leave no trace. Updates
 * write back what they read, and insertions go to keys below 0 and are removed again. The load
 * between them is left out: programs are not compiled sooner for it.
 */
class Warming implements Steps {
    private static final int MOST_INSERTED = 1000;
    // Of all clients together.
    private static final long MOST_BYTES = 64 << 20;

    private final Operations operations;
    private final Store store;
    private final BooleanSupplier over;
    private final long clients;
    private final long most;
    private final List<Long> inserted = new ArrayList<>();
    private final Clock clock;
    private long next;
    private long removing;

    /**
     * @param over tells when no further operation is to begin
     * @param clock tells how long objects are removed
     * @param clients how many there are in all processes
     * @param client which one this is, from 0
     * @param size bytes of each value
     */
    Warming(
            Operations operations,
            Store store,
            BooleanSupplier over,
            Clock clock,
            long clients,
            long client,
            int size) {
        this.operations = operations;
        this.clock = clock;
        this.store = store;
        this.over = over;
        this.clients = clients;
        most = Math.max(1, Math.min(MOST_INSERTED, MOST_BYTES / clients / size));
        next = -1 - client;
    }

    @Override
    public void read(long key) {
        if (!over.getAsBoolean()) {
            operations.read(key);
        }
    }

    @Override
    public void readShared(long key) {
        read(key);
    }

    @Override
    public void update(long key) {
        if (!over.getAsBoolean()) {
            operations.update(key, 0);
        }
    }

    /** Inserts an object below 0; the one that was requested is not there. */
    @Override
    public boolean insert(long key) {
        if (over.getAsBoolean()) {
            return false;
        }
        // Before it is sent: one that failed may be there all the same.
        inserted.add(next);
        operations.insert(next);
        next -= clients;
        if (inserted.size() >= most) {
            try {
                removeInserted();
            } catch (Exception e) {
                // They stay in the list, and the next time will show.
                operations.failedToRemove(e);
            }
        }
        return false;
    }

    @Override
    public void overwrite(long key) {
        if (!over.getAsBoolean()) {
            operations.overwrite(key);
        }
    }

    @Override
    public void scan(long first, int count) {
        if (!over.getAsBoolean()) {
            operations.scan(first, count);
        }
    }

    @Override
    public void compute(long calls) {
        // See above.
    }

    @Override
    public void sleep(double seconds) {
        // See above.
    }

    /** Removes what was inserted. */
    void removeInserted() throws Exception {
        if (!inserted.isEmpty()) {
            var began = clock.now();
            store.remove(inserted);
            removing += clock.now() - began;
            inserted.clear();
        }
    }

    /** Nanoseconds that removing has taken so far. */
    long removing() {
        return removing;
    }
}

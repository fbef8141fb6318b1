package gridbench.datagrid.data;

import java.util.function.LongConsumer;

/** Tells how far something is, but not more than ten times a second. */
final class Often {
    private static final long BETWEEN = 100_000_000;

    private final LongConsumer progress;
    private long told = System.nanoTime();

    Often(LongConsumer progress) {
        this.progress = progress;
    }

    void tell(long done) {
        var now = System.nanoTime();
        if (now - told > BETWEEN) {
            told = now;
            progress.accept(done);
        }
    }
}

package gridbench.datagrid.run;

/** The next operation begins when the one before has ended. */
final class ClosedLoop implements Pace {
    private final Clock clock;
    private long began;

    ClosedLoop(Clock clock) {
        this.clock = clock;
    }

    @Override
    public long begin() {
        began = clock.now();
        return began;
    }

    @Override
    public long intended() {
        return began;
    }
}

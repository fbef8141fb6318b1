package gridbench.datagrid.run;

/** Time that passes when somebody waits, and when a test says so. */
final class ManualClock implements Clock {
    long now;

    @Override
    public long now() {
        return now;
    }

    @Override
    public long waitUntil(long time) {
        now = Math.max(now, time);
        return now;
    }

    @Override
    public void sleepUntil(long time) {
        now = Math.max(now, time);
    }
}

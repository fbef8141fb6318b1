package gridbench.datagrid.run;

/**
 * Operations begin at times that were fixed beforehand. One that is late, as those before it took
 * long, begins at once, and the schedule stays as it is.
 */
final class OpenLoop implements Pace {
    private final Clock clock;
    private final long at;
    private final long clients;
    private final long client;
    private final double interval;
    private long operation;
    private long intended;

    /**
     * @param at when the first operation of client 0 begins
     * @param clients how many there are in all processes that have a task
     * @param client which one this is, from 0
     * @param rate operations per second of all clients together
     */
    OpenLoop(Clock clock, long at, long clients, long client, double rate) {
        this.clock = clock;
        this.at = at;
        this.clients = clients;
        this.client = client;
        interval = 1e9 / rate;
    }

    @Override
    public long begin() {
        intended = at + Math.round((operation * clients + client) * interval);
        operation++;
        return clock.waitUntil(intended);
    }

    @Override
    public long intended() {
        return intended;
    }
}

package gridbench.datagrid.run;

import gridbench.datagrid.mix.Mix;
import gridbench.datagrid.task.Parameters;
import java.util.Optional;
import java.util.OptionalDouble;

/**
 * What is to be run.
 *
 * @param clients those of this process
 * @param rate operations per second of all clients of all processes, in an open loop; in a closed
 *     loop there is none
 * @param atomic whether updates replace what was read, and are repeated if it has changed
 * @param mix in place of the specified operations
 * @param window seconds of a window of throughput
 */
public record Plan(
        Parameters parameters,
        Clients clients,
        OptionalDouble rate,
        boolean atomic,
        Optional<Mix> mix,
        WarmUp warmUp,
        double window) {

    /**
     * Which clients are in this process.
     *
     * @param all how many there are in all processes
     * @param first the number of the first one here
     * @param count how many are here
     */
    public record Clients(int all, int first, int count) {
        /** @throws IllegalArgumentException if there are not so many */
        public Clients {
            if (first > all - count) {
                throw new IllegalArgumentException("clients " + first + " to " + (first + (long) count - 1)
                        + " are not among " + all);
            }
        }
    }

    /**
     * How long operations are made before the measurement.
     *
     * @param least seconds
     * @param most seconds; 0 for no warm-up, and no first task before it
     * @param window seconds of each rate
     * @param within how far rates may differ from their mean, as a fraction of it
     */
    public record WarmUp(double least, double most, double window, double within) {}

    /** Whether operations begin by a schedule. */
    boolean open() {
        return rate.isPresent();
    }
}

package gridbench.datagrid.run;

import gridbench.datagrid.mix.Mix;
import gridbench.datagrid.task.Parameters;
import java.util.Optional;
import java.util.OptionalDouble;

/** Plans for tests. */
final class Plans {
    static final int SIZE = 100;

    private Plans() {}

    static Parameters parameters(
            long tasks, long repeats, long reads, long updates, long inserts, long objects, long shared) {
        return new Parameters(
                1, 1, tasks, repeats, reads, updates, inserts, objects, SIZE, shared, 0, 0);
    }

    static Plan closed(Parameters parameters, int clients) {
        return plan(parameters, clients, OptionalDouble.empty(), false, Optional.empty(), 0);
    }

    static Plan open(Parameters parameters, int clients, double rate) {
        return plan(parameters, clients, OptionalDouble.of(rate), false, Optional.empty(), 0);
    }

    static Plan plan(
            Parameters parameters,
            int clients,
            OptionalDouble rate,
            boolean atomic,
            Optional<Mix> mix,
            double warm) {
        return new Plan(
                parameters,
                new Plan.Clients(clients, 0, clients),
                rate,
                atomic,
                mix,
                new Plan.WarmUp(0, warm, 0.02, 0.1),
                0.1);
    }
}

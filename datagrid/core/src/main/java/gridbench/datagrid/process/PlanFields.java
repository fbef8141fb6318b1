package gridbench.datagrid.process;

import gridbench.datagrid.mix.Mix;
import gridbench.datagrid.run.Plan;
import gridbench.datagrid.task.Parameters;
import gridbench.datagrid.value.Values;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalDouble;

/** The plan of a run, as it is in a request. */
final class PlanFields {
    private PlanFields() {}

    static Plan plan(Fields plan) {
        var open = plan.word("loop", List.of("closed", "open")).equals("open");
        var warm = plan.object("warm");
        try {
            return new Plan(
                    parameters(plan.object("parameters")),
                    clients(plan.object("clients")),
                    open ? OptionalDouble.of(plan.positive("rate")) : OptionalDouble.empty(),
                    plan.word("updates", List.of("plain", "atomic")).equals("atomic"),
                    plan.has("mix") ? Optional.of(mix(plan.object("mix"))) : Optional.empty(),
                    new Plan.WarmUp(
                            warm.number("least", 0),
                            warm.number("most", 0),
                            warm.positive("window"),
                            warm.positive("within")),
                    plan.number("window", 0.001));
        } catch (BadRequest e) {
            throw e;
        } catch (IllegalArgumentException e) {
            throw new BadRequest("in `plan`: " + e.getMessage(), e);
        }
    }

    private static Parameters parameters(Fields fields) {
        return new Parameters(
                fields.whole("NNodes", 1),
                fields.whole("MNodes", 0),
                fields.whole("NTasks", 0),
                fields.whole("NRepeats", 0),
                fields.whole("ReadDataSize", 0),
                fields.whole("UpdateDataSize", 0),
                fields.whole("WriteDataSize", 0),
                fields.whole("NObjects", 0),
                fields.wholeInt("size", Values.HEADER),
                fields.whole("SharedDataSize", 0),
                fields.whole("ProcessTime", 0),
                fields.number("SleepTime", 0));
    }

    private static Plan.Clients clients(Fields fields) {
        return new Plan.Clients(
                fields.wholeInt("all", 1), fields.wholeInt("first", 0), fields.wholeInt("count", 1));
    }

    private static Mix mix(Fields fields) {
        return new Mix(
                fields.number("read", 0),
                fields.number("overwrite", 0),
                fields.number("update", 0),
                fields.number("insert", 0),
                fields.number("scan", 0),
                Mix.Keys.valueOf(fields.word("keys", List.of("zipfian", "latest", "uniform"))
                        .toUpperCase(Locale.ROOT)),
                fields.wholeInt("scan_length", 1),
                fields.whole("seed", Long.MIN_VALUE + 1));
    }
}

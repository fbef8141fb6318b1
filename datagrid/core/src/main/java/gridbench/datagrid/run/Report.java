package gridbench.datagrid.run;

import gridbench.datagrid.task.Operation;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.ToLongFunction;

/** Merges what clients have recorded. */
final class Report {
    private Report() {}

    static Ran of(Plan plan, List<Client> clients, List<Recorder> recorders, Ran.ProcessUse use) {
        var tasks = tasks(clients, recorders);
        var errors = new TreeMap<String, Long>();
        recorders.forEach(recorder -> recorder.errors.addTo(errors));
        return new Ran(
                tasks,
                latencies(recorders),
                throughput(plan, recorders),
                counts(recorders),
                sum(recorders, recorder -> recorder.wrong),
                sum(recorders, recorder -> recorder.missing),
                errors,
                sum(recorders, recorder -> recorder.inDoubt),
                recorders.stream().flatMap(recorder -> recorder.doubtful.stream()).toList(),
                sum(recorders, recorder -> recorder.conflicts),
                use,
                Arrays.stream(tasks.ended()).max().orElse(0));
    }

    private static Ran.Tasks tasks(List<Client> clients, List<Recorder> recorders) {
        var count = recorders.stream().mapToInt(recorder -> recorder.log.count()).sum();
        var all = new Ran.Tasks(
                new long[count],
                new int[count],
                new long[count],
                new long[count],
                new long[count],
                new String[count]);
        var to = 0;
        for (var i = 0; i < recorders.size(); i++) {
            var log = recorders.get(i).log;
            System.arraycopy(log.id, 0, all.id(), to, log.count());
            System.arraycopy(log.began, 0, all.began(), to, log.count());
            System.arraycopy(log.ended, 0, all.ended(), to, log.count());
            System.arraycopy(log.operations, 0, all.operations(), to, log.count());
            System.arraycopy(log.why, 0, all.why(), to, log.count());
            Arrays.fill(all.client(), to, to + log.count(), clients.get(i).number());
            to += log.count();
        }
        return all;
    }

    private static List<Ran.Latency> latencies(List<Recorder> recorders) {
        var service = new Latencies();
        var intended = new Latencies();
        for (var recorder : recorders) {
            service.add(recorder.service);
            intended.add(recorder.intended);
        }
        var all = new ArrayList<Ran.Latency>();
        add("service", service.slots(), all);
        add("intended", intended.slots(), all);
        return all;
    }

    private static void add(String from, Map<Operation, Slots> slots, List<Ran.Latency> all) {
        slots.forEach((operation, its) ->
                all.add(new Ran.Latency(operation.word(), from, its.values(), its.counts())));
    }

    private static Ran.Throughput throughput(Plan plan, List<Recorder> recorders) {
        var count = recorders.stream().mapToInt(recorder -> recorder.windows.count()).max().orElse(0);
        var operations = new long[count];
        var errors = new long[count];
        for (var recorder : recorders) {
            recorder.windows.addOperations(operations);
            recorder.windows.addErrors(errors);
        }
        return new Ran.Throughput(0, plan.window(), operations, errors);
    }

    private static Ran.Counts counts(List<Recorder> recorders) {
        var shared = sum(recorders, recorder -> recorder.shared);
        return new Ran.Counts(
                counted(recorders, Operation.READ) - shared,
                counted(recorders, Operation.UPDATE),
                counted(recorders, Operation.INSERT),
                counted(recorders, Operation.OVERWRITE),
                counted(recorders, Operation.SCAN),
                shared);
    }

    private static long counted(List<Recorder> recorders, Operation operation) {
        return sum(recorders, recorder -> recorder.counts[operation.ordinal()]);
    }

    private static long sum(List<Recorder> recorders, ToLongFunction<Recorder> number) {
        return recorders.stream().mapToLong(number).sum();
    }
}

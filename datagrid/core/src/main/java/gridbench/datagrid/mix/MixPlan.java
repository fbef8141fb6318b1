package gridbench.datagrid.mix;

import gridbench.datagrid.task.Operation;
import gridbench.datagrid.task.Parameters;
import gridbench.datagrid.value.Scatter;
import java.util.SplittableRandom;

/**
 * What is drawn for the tasks of a mix. It follows from seed and task alone, so that all client
 * processes know where the insertions of each task go, and the keys of all of them have no holes.
 */
public final class MixPlan {
    private final Mix mix;
    private final Parameters parameters;
    private final long[] firstInserted;
    private final Zipfian ages;

    /** @throws IllegalArgumentException if there are no objects to draw from */
    public MixPlan(Mix mix, Parameters parameters) {
        if (parameters.objects() < 1) {
            throw new IllegalArgumentException("NObjects has to be at least 1 for a mix");
        }
        this.mix = mix;
        this.parameters = parameters;
        firstInserted = mix.insert() > 0 ? insertions() : null;
        ages = mix.keys() == Mix.Keys.LATEST ? new Zipfian(parameters.objects()) : null;
    }

    Mix mix() {
        return mix;
    }

    Parameters parameters() {
        return parameters;
    }

    /** The key of a task's first insertion; its others follow. 0 if the mix has none. */
    long firstInserted(long task) {
        return firstInserted == null ? 0 : firstInserted[(int) task];
    }

    /** What the kinds of a task's operations are drawn from. */
    SplittableRandom operations(long task) {
        return random(2 * task);
    }

    /** What the keys of a task, and lengths of its scans, are drawn from. */
    SplittableRandom keys(long task) {
        return random(2 * task + 1);
    }

    KeySource keySource() {
        return switch (mix.keys()) {
            case UNIFORM -> new UniformKeys(parameters.objects());
            case ZIPFIAN -> new ScrambledZipfianKeys(parameters.objects());
            case LATEST -> new LatestKeys(ages);
        };
    }

    private SplittableRandom random(long stream) {
        return new SplittableRandom(Scatter.of(Scatter.of(mix.seed()) + stream));
    }

    private long[] insertions() {
        var first = new long[Math.toIntExact(parameters.tasks())];
        var next = parameters.objects() + parameters.shared();
        var perTask = parameters.repeats() * parameters.perIteration();
        for (var task = 0; task < first.length; task++) {
            first[task] = next;
            var operations = operations(task);
            for (var i = 0L; i < perTask; i++) {
                if (mix.operation(operations.nextDouble()) == Operation.INSERT) {
                    next++;
                }
            }
        }
        return first;
    }
}

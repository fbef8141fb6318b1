package gridbench.datagrid.mix;

import java.util.SplittableRandom;

/** All keys are equally frequent. */
final class UniformKeys implements KeySource {
    private final long objects;

    UniformKeys(long objects) {
        this.objects = objects;
    }

    @Override
    public long next(SplittableRandom random) {
        return random.nextLong(objects);
    }
}

package gridbench.datagrid.mix;

import java.util.SplittableRandom;

/** Draws keys of objects that are there. Each client has an object of its own. */
interface KeySource {
    long next(SplittableRandom random);

    /** Tells that the client has inserted an object. */
    default void inserted(long key) {}
}

package gridbench.datagrid.task;

/**
 * The parameters of the benchmark.
 *
 * @param nodes NNodes, clients that process tasks
 * @param members MNodes, storage members
 * @param tasks NTasks
 * @param repeats NRepeats, iterations of the loop inside a task
 * @param reads ReadDataSize, objects read per iteration
 * @param updates UpdateDataSize, objects updated per iteration
 * @param inserts WriteDataSize, objects inserted per iteration
 * @param objects NObjects, objects that exist for reading and updating
 * @param size bytes of a value (ObjectSize is in KB)
 * @param shared SharedDataSize, objects that every task reads
 * @param randomCalls ProcessTime, calls of the random generator per iteration
 * @param sleep SleepTime, seconds of sleep per iteration
 */
public record Parameters(
        long nodes,
        long members,
        long tasks,
        long repeats,
        long reads,
        long updates,
        long inserts,
        long objects,
        int size,
        long shared,
        long randomCalls,
        double sleep) {

    /** @throws IllegalArgumentException if keys would not fit, or there is nothing to read */
    public Parameters {
        if (objects < 1 && (reads > 0 || updates > 0)) {
            throw new IllegalArgumentException(
                    "NObjects has to be at least 1, as tasks read or update objects");
        }
        try {
            var iterations = Math.multiplyExact(tasks, repeats);
            Math.multiplyExact(iterations, Math.addExact(reads, updates));
            Math.addExact(Math.addExact(objects, shared), Math.multiplyExact(iterations, inserts));
            Math.addExact(shared, Math.multiplyExact(repeats, perIteration(reads, updates, inserts)));
        } catch (ArithmeticException e) {
            throw new IllegalArgumentException(
                    "the keys of so many tasks, iterations and objects do not fit into 64 bits", e);
        }
    }

    /** Operations in one iteration. */
    public long perIteration() {
        return perIteration(reads, updates, inserts);
    }

    /** Operations of one task. */
    public long perTask() {
        return shared + repeats * perIteration();
    }

    private static long perIteration(long reads, long updates, long inserts) {
        return Math.addExact(Math.addExact(reads, updates), inserts);
    }
}

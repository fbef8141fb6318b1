package gridbench.datagrid.run;

import com.google.gson.annotations.SerializedName;
import java.util.List;
import java.util.Map;

/**
 * What a process has measured. Times are nanoseconds since the common beginning.
 *
 * @param latencies of answered operations
 * @param wrong values that were not what had been stored
 * @param missing objects that were not there
 * @param errors operations that failed, by the texts of their errors
 * @param inDoubt updates and insertions that failed after they were sent
 * @param doubtful keys of insertions among these
 * @param conflicts atomic updates that had to be repeated
 * @param ended when the last task has ended
 */
public record Ran(
        Tasks tasks,
        List<Latency> latencies,
        Throughput windows,
        Counts counts,
        long wrong,
        long missing,
        Map<String, Long> errors,
        @SerializedName("in_doubt") long inDoubt,
        List<Long> doubtful,
        long conflicts,
        ProcessUse process,
        long ended) {

    /** The tasks of all clients: arrays of the same length. */
    public record Tasks(
            long[] id, int[] client, long[] began, long[] ended, long[] operations, String[] why) {}

    /**
     * A histogram.
     *
     * @param from "service": since the operation began; "intended": since it should have begun
     * @param values nanoseconds
     */
    public record Latency(String operation, String from, long[] values, long[] counts) {}

    /**
     * Operations in windows of time.
     *
     * @param first when the first window begins
     * @param length seconds
     * @param operations answered in each
     * @param errors operations that failed in each
     */
    public record Throughput(long first, double length, long[] operations, long[] errors) {}

    /**
     * Operations that were answered.
     *
     * @param reads without the shared ones
     */
    public record Counts(
            long reads, long updates, long inserts, long overwrites, long scans, long shared) {}

    /**
     * What this process took.
     *
     * @param cpu seconds of processor time
     * @param gc seconds of garbage collection
     * @param allocated bytes
     */
    public record ProcessUse(double cpu, double gc, long allocated) {}
}

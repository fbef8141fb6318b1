package gridbench.datagrid.run;

import com.sun.management.OperatingSystemMXBean;
import com.sun.management.ThreadMXBean;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.Map;

/** What this process has taken until an instant. */
final class Usage {
    private static final OperatingSystemMXBean SYSTEM =
            ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);
    private static final ThreadMXBean THREADS =
            ManagementFactory.getPlatformMXBean(ThreadMXBean.class);

    private final long cpu = SYSTEM.getProcessCpuTime();
    private final long gc = ManagementFactory.getGarbageCollectorMXBeans().stream()
            .mapToLong(GarbageCollectorMXBean::getCollectionTime)
            .sum();
    private final Map<Long, Long> allocated = new HashMap<>();

    Usage() {
        var threads = THREADS.getAllThreadIds();
        var bytes = THREADS.getThreadAllocatedBytes(threads);
        for (var i = 0; i < threads.length; i++) {
            // -1 for a thread that has just ended.
            if (bytes[i] >= 0) {
                allocated.put(threads[i], bytes[i]);
            }
        }
    }

    /** What was taken since an earlier instant. Threads that are gone again do not count. */
    Ran.ProcessUse since(Usage before) {
        var bytes = 0L;
        for (var thread : allocated.entrySet()) {
            bytes += thread.getValue() - before.allocated.getOrDefault(thread.getKey(), 0L);
        }
        return new Ran.ProcessUse((cpu - before.cpu) / 1e9, (gc - before.gc) / 1e3, bytes);
    }
}

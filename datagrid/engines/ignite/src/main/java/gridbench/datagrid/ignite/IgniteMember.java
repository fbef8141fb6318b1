package gridbench.datagrid.ignite;

import gridbench.datagrid.Member;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.ignite.Ignite;
import org.apache.ignite.IgniteCache;
import org.apache.ignite.cache.CachePeekMode;

final class IgniteMember implements Member {
    private static final int POLL_MILLISECONDS = 20;

    private final Ignite ignite;
    private final IgniteCache<Long, byte[]> cache;

    IgniteMember(Ignite ignite) {
        this.ignite = ignite;
        this.cache = ignite.cache(IgniteGrid.CACHE);
    }

    /** Waits until each of so many members has its share of the partitions. */
    void awaitBalance(int members, int milliseconds) throws InterruptedException, TimeoutException {
        var until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(milliseconds);
        while (!balanced(members)) {
            if (System.nanoTime() > until) {
                throw new TimeoutException(
                        members() + " of " + members + " members are there, or partitions are not spread over them yet,"
                                + " after " + milliseconds / 1000 + " s");
            }
            Thread.sleep(POLL_MILLISECONDS);
        }
    }

    private boolean balanced(int members) {
        var nodes = ignite.cluster().forServers().nodes();
        var affinity = ignite.<Long>affinity(IgniteGrid.CACHE);
        // Shares are even by chance only; the members that have joined last have none for a while.
        var least = affinity.partitions() / members / 2;
        return nodes.size() == members
                && nodes.stream().allMatch(node -> affinity.primaryPartitions(node).length >= least);
    }

    @Override
    public int members() {
        return ignite.cluster().forServers().nodes().size();
    }

    @Override
    public long entries() {
        return cache.localSizeLong(CachePeekMode.PRIMARY);
    }

    @Override
    public long backups() {
        return cache.localSizeLong(CachePeekMode.BACKUP);
    }

    /**
     * The heap and, off it, the pages of the data region that are in use. Of objects
     * that were removed, Ignite keeps counting some.
     */
    @Override
    public long used() {
        var region = ignite.dataRegionMetrics(IgniteGrid.REGION);
        var pageSize = ignite.configuration().getDataStorageConfiguration().getPageSize();
        return Member.super.used() + region.getTotalUsedPages() * pageSize;
    }

    @Override
    public void close() {
        ignite.close();
    }
}

package gridbench.datagrid.coherence;

import com.tangosol.coherence.component.util.SafeService;
import com.tangosol.coherence.component.util.daemon.queueProcessor.service.grid.partitionedService.PartitionedCache;
import com.tangosol.coherence.component.util.daemon.queueProcessor.service.grid.partitionedService.partitionedCache.Storage;
import com.tangosol.net.CacheFactory;
import com.tangosol.net.DistributedCacheService;
import com.tangosol.net.NamedCache;
import gridbench.datagrid.Cluster;
import gridbench.datagrid.Member;

/** A member with storage. */
final class CoherenceMember implements Member {
    private static final int LOOK_MS = 50;
    /** Partitions that a member may have less than its share: Coherence leaves small differences as they are. */
    private static final double LEAST_SHARE = 0.8;

    private final NamedCache<Long, byte[]> cache;
    private final DistributedCacheService service;

    private CoherenceMember(NamedCache<Long, byte[]> cache) {
        this.cache = cache;
        service = (DistributedCacheService) cache.getCacheService();
    }

    static CoherenceMember of(NamedCache<Long, byte[]> cache, Cluster cluster) throws InterruptedException {
        var member = new CoherenceMember(cache);
        while (!member.isBalanced(cluster.members().size(), cluster.backups())) {
            Thread.sleep(LOOK_MS);
        }
        return member;
    }

    /** Whether all members have their share of partitions, and all partitions their copies. */
    private boolean isBalanced(int members, int backups) {
        if (members() < members) {
            return false;
        }
        var least = LEAST_SHARE * service.getPartitionCount() / members;
        for (var member : service.getOwnershipEnabledMembers()) {
            if (service.getOwnedPartitions(member).cardinality() < least) {
                return false;
            }
        }
        return service.getBackupStrength() >= Math.min(backups, members - 1);
    }

    @Override
    public int members() {
        return service.getOwnershipEnabledMembers().size();
    }

    @Override
    public long entries() {
        return storage().getBackingMap().size();
    }

    @Override
    public long backups() {
        return storage().getBackupMap().size();
    }

    /** What the product's own management counts; without management there is no public way to it. */
    private Storage storage() {
        var running = (PartitionedCache) ((SafeService) service).getRunningService();
        return running.getStorage(cache.getCacheName());
    }

    @Override
    public void close() {
        CacheFactory.shutdown();
    }
}

package gridbench.datagrid.hazelcast;

import com.hazelcast.core.HazelcastInstance;
import com.hazelcast.map.LocalMapStats;
import gridbench.datagrid.Member;
import java.util.HashMap;
import java.util.UUID;

final class HazelcastMember implements Member {
    private static final int POLL_MILLISECONDS = 20;

    private final HazelcastInstance instance;

    HazelcastMember(HazelcastInstance instance) {
        this.instance = instance;
    }

    /** Waits until each of so many members has its share of the partitions, and all copies are there. */
    void awaitBalance(int members) throws InterruptedException {
        // The first use of a map has the partitions assigned.
        instance.getMap(HazelcastGrid.MAP).size();
        while (members() < members || !balanced(members) || !instance.getPartitionService().isClusterSafe()) {
            Thread.sleep(POLL_MILLISECONDS);
        }
    }

    private boolean balanced(int members) {
        var shares = new HashMap<UUID, Integer>();
        var partitions = instance.getPartitionService().getPartitions();
        for (var partition : partitions) {
            var owner = partition.getOwner();
            if (owner == null) {
                return false;
            }
            shares.merge(owner.getUuid(), 1, Integer::sum);
        }
        var fair = partitions.size() / members;
        return shares.size() == members && shares.values().stream().allMatch(share -> share >= fair);
    }

    @Override
    public int members() {
        return instance.getCluster().getMembers().size();
    }

    @Override
    public long entries() {
        return statistics().getOwnedEntryCount();
    }

    @Override
    public long backups() {
        return statistics().getBackupEntryCount();
    }

    private LocalMapStats statistics() {
        return instance.getMap(HazelcastGrid.MAP).getLocalMapStats();
    }

    @Override
    public void close() {
        instance.getLifecycleService().terminate();
    }
}

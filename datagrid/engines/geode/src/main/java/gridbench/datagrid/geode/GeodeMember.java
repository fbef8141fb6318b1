package gridbench.datagrid.geode;

import gridbench.datagrid.Cluster;
import gridbench.datagrid.Member;
import java.net.InetAddress;
import org.apache.geode.cache.Cache;
import org.apache.geode.cache.CacheFactory;
import org.apache.geode.cache.PartitionAttributesFactory;
import org.apache.geode.cache.Region;
import org.apache.geode.cache.RegionShortcut;
import org.apache.geode.cache.partition.PartitionRegionHelper;

/** A peer that holds buckets of the region, and serves clients. */
final class GeodeMember implements Member {
    private static final int LOOK_MS = 50;

    private final Cache cache;
    private final Region<Long, byte[]> region;

    private GeodeMember(Cache cache, Region<Long, byte[]> region) {
        this.cache = cache;
        this.region = region;
    }

    static GeodeMember join(Cluster cluster, int index) throws Exception {
        var place = cluster.members().get(index);
        var ports = Ports.of(cluster, index);
        // Geode would try others of the range for its membership.
        for (var port : place.ports()) {
            place.requireFree(port);
        }
        var factory = new CacheFactory()
                .set("name", "member-" + index)
                .set("bind-address", place.address())
                .set("server-bind-address", place.address())
                .set("tcp-port", String.valueOf(ports.peers()))
                .set("membership-port-range", ports.membershipRange())
                .set("mcast-port", "0")
                .set("locators", locator(cluster))
                .set("locator-wait-time", "120")
                .set("enable-network-partition-detection", "false")
                .set("enable-cluster-configuration", "false")
                .set("use-cluster-configuration", "false")
                .set("jmx-manager", "false")
                .set("http-service-port", "0")
                .set("statistic-sampling-enabled", "false")
                .set("log-level", "warning");
        if (index == 0) {
            factory.set("start-locator", locator(cluster));
        }
        Cache cache;
        var others = ports.takeOthers(InetAddress.getByName(place.address()));
        var workFolder = System.setProperty("user.dir", cluster.folder().toString());
        try {
            cache = factory.create();
        } finally {
            System.setProperty("user.dir", workFolder);
            for (var other : others) {
                other.close();
            }
        }
        var partitions = new PartitionAttributesFactory<Long, byte[]>()
                .setRedundantCopies(cluster.backups())
                // Copies that a lost member held are made again at once; by default they are not.
                .setRecoveryDelay(0)
                .create();
        var region = cache.<Long, byte[]>createRegionFactory(RegionShortcut.PARTITION)
                .setPartitionAttributes(partitions)
                .create(GeodeGrid.REGION);
        var server = cache.addCacheServer();
        server.setBindAddress(place.address());
        server.setPort(ports.server());
        server.start();
        var member = new GeodeMember(cache, region);
        member.awaitBuckets(cluster, index);
        return member;
    }

    private static String locator(Cluster cluster) {
        return cluster.members().get(0).address() + "[" + Ports.of(cluster, 0).locator() + "]";
    }

    /** Has the last member assign buckets to all, once all have the region, and others wait until that is done. */
    private void awaitBuckets(Cluster cluster, int index) throws InterruptedException {
        var all = cluster.members().size();
        while (PartitionRegionHelper.getPartitionRegionInfo(region)
                        .getPartitionMemberInfo()
                        .size()
                < all) {
            Thread.sleep(LOOK_MS);
        }
        if (index == all - 1) {
            PartitionRegionHelper.assignBucketsToPartitions(region);
            cache.getResourceManager().createRebalanceFactory().start().getResults();
        }
        while (!isAssigned()) {
            Thread.sleep(LOOK_MS);
        }
    }

    private boolean isAssigned() {
        var info = PartitionRegionHelper.getPartitionRegionInfo(region);
        return info.getCreatedBucketCount() == info.getConfiguredBucketCount()
                && (info.getLowRedundancyBucketCount() == 0
                        || info.getPartitionMemberInfo().size() == 1);
    }

    @Override
    public int members() {
        return cache.getDistributedSystem().getAllOtherMembers().size() + 1;
    }

    @Override
    public long entries() {
        return PartitionRegionHelper.getLocalPrimaryData(region).size();
    }

    @Override
    public long backups() {
        return PartitionRegionHelper.getLocalData(region).size() - entries();
    }

    @Override
    public void close() {
        cache.close();
    }
}

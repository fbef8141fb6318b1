package gridbench.datagrid.geode;

import gridbench.datagrid.Cluster;
import gridbench.datagrid.DataGrid;
import gridbench.datagrid.Member;
import gridbench.datagrid.Store;
import org.apache.geode.cache.client.ClientCacheFactory;
import org.apache.geode.cache.client.ClientRegionShortcut;
import org.apache.geode.internal.GemFireVersion;

/**
 * Apache Geode: members are peers with cache servers, clients know the servers and send each operation to the one that
 * has the object.
 */
public final class GeodeGrid implements DataGrid {
    static final String REGION = "objects";
    /** Longer than members take to agree on the loss of one of them: member-timeout, and again as much. */
    private static final int READ_TIMEOUT_MS = 12_000;

    @Override
    public Member join(Cluster cluster, int index, long memory) throws Exception {
        return GeodeMember.join(cluster, index);
    }

    @Override
    public Store connect(Cluster cluster, String address) {
        var factory = new ClientCacheFactory()
                .set("bind-address", address)
                .set("log-level", "warning")
                .set("statistic-sampling-enabled", "false")
                .setPoolPRSingleHopEnabled(true)
                .setPoolSubscriptionEnabled(false)
                .setPoolReadTimeout(READ_TIMEOUT_MS)
                .setPoolMaxConnections(-1);
        for (var index = 0; index < cluster.members().size(); index++) {
            var ports = Ports.of(cluster, index);
            factory.addPoolServer(cluster.members().get(index).address(), ports.server());
        }
        var cache = factory.create();
        return new GeodeStore(
                cache, cache.<Long, byte[]>createClientRegionFactory(ClientRegionShortcut.PROXY).create(REGION));
    }

    @Override
    public String version() {
        return GemFireVersion.getGemFireVersion();
    }
}

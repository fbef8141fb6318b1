package gridbench.datagrid.coherence;

import com.tangosol.net.CacheFactory;
import com.tangosol.net.ConfigurableCacheFactory;
import com.tangosol.net.NamedCache;
import gridbench.datagrid.Cluster;
import gridbench.datagrid.DataGrid;
import gridbench.datagrid.Member;
import gridbench.datagrid.Store;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.stream.Collectors;

/**
 * Oracle Coherence: members have the storage, and clients are members of the cluster without. The product offers clients
 * outside of the cluster as well, through proxies; inside they ask the member that has the object, without a step between.
 */
public final class CoherenceGrid implements DataGrid {
    private static final String CONFIGURATION = "gridbench-coherence-cache.xml";
    private static final String CACHE = "objects";
    private static final int LOOK_MS = 50;

    @Override
    public Member join(Cluster cluster, int index, long memory) throws Exception {
        var place = cluster.members().get(index);
        place.requireFree(place.ports().get(0));
        if (index == 0) {
            place.requireFree(clusterPort(cluster));
        } else {
            awaitFirst(cluster);
        }
        configure(cluster, place.address());
        set("distributed.localstorage", "true");
        set("localport", place.ports().get(0));
        set("member", "member-" + index);
        return CoherenceMember.of(cache(), cluster);
    }

    @Override
    public Store connect(Cluster cluster, String address) {
        configure(cluster, address);
        set("distributed.localstorage", "false");
        set("localport", 0);
        return new CoherenceStore(cache());
    }

    @Override
    public String version() {
        return CacheFactory.VERSION;
    }

    /** Where members find the cluster; on each host, the first of them listens there for all. */
    private static int clusterPort(Cluster cluster) {
        return cluster.members().get(0).ports().get(1);
    }

    /** Leaves the cluster's port to the member that it was given to. */
    private static void awaitFirst(Cluster cluster) throws InterruptedException {
        var first = new InetSocketAddress(cluster.members().get(0).address(), clusterPort(cluster));
        while (true) {
            try (var socket = new Socket()) {
                socket.connect(first, LOOK_MS * 20);
                return;
            } catch (IOException notYet) {
                Thread.sleep(LOOK_MS);
            }
        }
    }

    /** Coherence takes its configuration from the system's properties. */
    private static void configure(Cluster cluster, String address) {
        set("cluster", cluster.name());
        set(
                "wka",
                cluster.members().stream()
                        .map(Cluster.Place::address)
                        .distinct()
                        .collect(Collectors.joining(",")));
        set("clusterport", clusterPort(cluster));
        set("localhost", address);
        set("discovery.address", address);
        set("localport.adjust", "false");
        set("distributed.backupcount", cluster.backups());
        set("mode", "prod");
        set("management", "none");
        set("management.remote", "false");
        set("management.http", "none");
        set("metrics.http.enabled", "false");
        set("health.http.enabled", "false");
        set("log", "stderr");
        set("log.level", 2);
    }

    private static void set(String name, Object value) {
        System.setProperty("coherence." + name, String.valueOf(value));
    }

    private static NamedCache<Long, byte[]> cache() {
        ConfigurableCacheFactory factory =
                CacheFactory.getCacheFactoryBuilder().getConfigurableCacheFactory(CONFIGURATION, null);
        factory.activate();
        return factory.ensureCache(CACHE, null);
    }
}

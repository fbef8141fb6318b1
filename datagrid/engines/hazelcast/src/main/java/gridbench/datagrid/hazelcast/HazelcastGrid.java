package gridbench.datagrid.hazelcast;

import com.hazelcast.client.HazelcastClient;
import com.hazelcast.client.config.ClientConfig;
import com.hazelcast.client.properties.ClientProperty;
import com.hazelcast.config.Config;
import com.hazelcast.config.MapConfig;
import com.hazelcast.core.Hazelcast;
import com.hazelcast.instance.BuildInfoProvider;
import com.hazelcast.spi.properties.ClusterProperty;
import gridbench.datagrid.Cluster;
import gridbench.datagrid.DataGrid;
import gridbench.datagrid.Member;
import gridbench.datagrid.Store;

/** Hazelcast: one distributed map, its partitions spread over the members. */
public final class HazelcastGrid implements DataGrid {
    static final String MAP = "objects";

    private static final int CONNECT_MILLISECONDS = 20_000;

    /** For so long what failed with a member is repeated on others, where it may be. */
    private static final int REPEAT_SECONDS = 10;

    /** After so long members give up an operation that others do not answer. */
    private static final int OPERATION_SECONDS = 20;

    /** After so long without a sign of life a member is taken for lost whose connections did not end. */
    private static final int HEARTBEAT_SECONDS = 20;

    @Override
    public Member join(Cluster cluster, int index, long memory) throws InterruptedException {
        var member = new HazelcastMember(Hazelcast.newHazelcastInstance(memberConfig(cluster, index)));
        member.awaitBalance(cluster.members().size());
        return member;
    }

    @Override
    public Store connect(Cluster cluster, String address) {
        return new HazelcastStore(HazelcastClient.newHazelcastClient(clientConfig(cluster)));
    }

    @Override
    public String version() {
        return BuildInfoProvider.getBuildInfo().getVersion();
    }

    private static Config memberConfig(Cluster cluster, int index) {
        var config = new Config();
        config.setClusterName(cluster.name());
        config.getMetricsConfig().setEnabled(false);
        config.getJetConfig().setEnabled(false);
        config.addMapConfig(new MapConfig(MAP).setBackupCount(cluster.backups()).setAsyncBackupCount(0));

        var place = cluster.members().get(index);
        var network = config.getNetworkConfig();
        network.setPort(place.ports().get(0)).setPortAutoIncrement(false);
        // Unlike a list of interfaces, this one also takes addresses that are an interface's by its net mask alone.
        config.setProperty("hazelcast.local.localAddress", place.address());
        var join = network.getJoin();
        join.getAutoDetectionConfig().setEnabled(false);
        join.getMulticastConfig().setEnabled(false);
        join.getTcpIpConfig().setEnabled(true);
        for (var other : cluster.members()) {
            join.getTcpIpConfig().addMember(endpoint(other));
        }

        set(config, ClusterProperty.SOCKET_BIND_ANY, false);
        set(config, ClusterProperty.PHONE_HOME_ENABLED, false);
        set(config, ClusterProperty.SHUTDOWNHOOK_ENABLED, false);
        set(config, ClusterProperty.INITIAL_MIN_CLUSTER_SIZE, cluster.members().size());
        set(config, ClusterProperty.WAIT_SECONDS_BEFORE_JOIN, 1);
        set(config, ClusterProperty.MAX_NO_HEARTBEAT_SECONDS, HEARTBEAT_SECONDS);
        set(config, ClusterProperty.HEARTBEAT_INTERVAL_SECONDS, 2);
        // Else a write without a known copy counts as done: lost, if its member was killed then.
        set(config, ClusterProperty.FAIL_ON_INDETERMINATE_OPERATION_STATE, true);
        set(config, ClusterProperty.OPERATION_CALL_TIMEOUT_MILLIS, OPERATION_SECONDS * 1000);
        return config;
    }

    private static ClientConfig clientConfig(Cluster cluster) {
        var config = new ClientConfig();
        config.setClusterName(cluster.name());
        config.getMetricsConfig().setEnabled(false);
        for (var member : cluster.members()) {
            config.getNetworkConfig().addAddress(endpoint(member));
        }
        var retry = config.getConnectionStrategyConfig().getConnectionRetryConfig();
        retry.setClusterConnectTimeoutMillis(CONNECT_MILLISECONDS);
        config.setProperty(ClientProperty.INVOCATION_TIMEOUT_SECONDS.getName(), String.valueOf(REPEAT_SECONDS));
        config.setProperty(ClientProperty.FAIL_ON_INDETERMINATE_OPERATION_STATE.getName(), "true");
        config.setProperty(ClientProperty.HEARTBEAT_TIMEOUT.getName(), String.valueOf(HEARTBEAT_SECONDS * 1000));
        config.setProperty(ClientProperty.HEARTBEAT_INTERVAL.getName(), "2000");
        return config;
    }

    private static void set(Config config, com.hazelcast.spi.properties.HazelcastProperty property, Object value) {
        config.setProperty(property.getName(), String.valueOf(value));
    }

    private static String endpoint(Cluster.Place place) {
        return place.address() + ":" + place.ports().get(0);
    }
}

package gridbench.datagrid.ignite;

import gridbench.datagrid.Cluster;
import gridbench.datagrid.DataGrid;
import gridbench.datagrid.Member;
import gridbench.datagrid.Store;
import java.net.BindException;
import org.apache.ignite.Ignite;
import org.apache.ignite.IgniteException;
import org.apache.ignite.Ignition;
import org.apache.ignite.cache.CacheAtomicityMode;
import org.apache.ignite.cache.CacheMode;
import org.apache.ignite.cache.CacheWriteSynchronizationMode;
import org.apache.ignite.client.ClientOperationType;
import org.apache.ignite.configuration.CacheConfiguration;
import org.apache.ignite.configuration.ClientConfiguration;
import org.apache.ignite.configuration.ClientConnectorConfiguration;
import org.apache.ignite.configuration.DataRegionConfiguration;
import org.apache.ignite.configuration.DataStorageConfiguration;
import org.apache.ignite.configuration.IgniteConfiguration;
import org.apache.ignite.internal.IgniteVersionUtils;
import org.apache.ignite.logger.java.JavaLogger;
import org.apache.ignite.spi.communication.tcp.TcpCommunicationSpi;
import org.apache.ignite.spi.discovery.tcp.TcpDiscoverySpi;
import org.apache.ignite.spi.discovery.tcp.ipfinder.vm.TcpDiscoveryVmIpFinder;

/** Apache Ignite: one partitioned cache in memory off the heap, used by thin clients. */
public final class IgniteGrid implements DataGrid {
    static final String CACHE = "objects";
    static final String REGION = "data";

    private static final int JOIN_MILLISECONDS = 180_000;

    /** After so long an operation without an answer fails. */
    private static final int OPERATION_MILLISECONDS = 10_000;

    private static final int CONNECT_MILLISECONDS = 5_000;

    private static final long LEAST_REGION = 10L << 20;

    /** The ports of a member, in their order. */
    private enum Port {
        DISCOVERY,
        COMMUNICATION,
        CLIENTS;

        int of(Cluster.Place place) {
            return place.ports().get(ordinal());
        }

        String at(Cluster.Place place) {
            return place.address() + ":" + of(place);
        }
    }

    @Override
    public Member join(Cluster cluster, int index, long memory) throws Exception {
        var member = new IgniteMember(start(memberConfig(cluster, index, memory)));
        member.awaitBalance(cluster.members().size(), JOIN_MILLISECONDS);
        return member;
    }

    /** Ignite tells that a port is taken in words alone. */
    private static Ignite start(IgniteConfiguration config) throws BindException {
        try {
            return Ignition.start(config);
        } catch (IgniteException failure) {
            for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
                if (cause.getMessage() != null && cause.getMessage().startsWith("Failed to bind")) {
                    var taken = new BindException(cause.getMessage());
                    taken.initCause(failure);
                    throw taken;
                }
            }
            throw failure;
        }
    }

    @Override
    public Store connect(Cluster cluster, String address) {
        return new IgniteStore(Ignition.startClient(clientConfig(cluster)));
    }

    @Override
    public String version() {
        return IgniteVersionUtils.VER_STR;
    }

    private static IgniteConfiguration memberConfig(Cluster cluster, int index, long memory) {
        var place = cluster.members().get(index);
        var folder = cluster.folder().resolve("ignite-" + index);
        return new IgniteConfiguration()
                .setIgniteInstanceName(cluster.name())
                .setConsistentId("member-" + index)
                .setLocalHost(place.address())
                .setWorkDirectory(folder.toString())
                .setIgniteHome(folder.toString())
                .setGridLogger(new JavaLogger())
                .setMetricsLogFrequency(0)
                // No server for the protocol of its REST interface.
                .setConnectorConfiguration(null)
                .setDiscoverySpi(discovery(cluster, place))
                .setCommunicationSpi(communication(place))
                .setClientConnectorConfiguration(clientConnector(place))
                .setDataStorageConfiguration(storage(memory))
                .setCacheConfiguration(cache(cluster.backups()));
    }

    private static TcpDiscoverySpi discovery(Cluster cluster, Cluster.Place place) {
        var finder = new TcpDiscoveryVmIpFinder();
        finder.setAddresses(cluster.members().stream().map(Port.DISCOVERY::at).toList());
        var discovery = new TcpDiscoverySpi();
        discovery.setIpFinder(finder);
        discovery.setLocalAddress(place.address());
        discovery.setLocalPort(Port.DISCOVERY.of(place));
        discovery.setLocalPortRange(0);
        discovery.setJoinTimeout(JOIN_MILLISECONDS);
        return discovery;
    }

    private static TcpCommunicationSpi communication(Cluster.Place place) {
        var communication = new TcpCommunicationSpi();
        communication.setLocalAddress(place.address());
        communication.setLocalPort(Port.COMMUNICATION.of(place));
        communication.setLocalPortRange(0);
        return communication;
    }

    private static ClientConnectorConfiguration clientConnector(Cluster.Place place) {
        return new ClientConnectorConfiguration()
                .setHost(place.address())
                .setPort(Port.CLIENTS.of(place))
                .setPortRange(0)
                .setJdbcEnabled(false)
                .setOdbcEnabled(false);
    }

    private static DataStorageConfiguration storage(long memory) {
        var region = new DataRegionConfiguration()
                .setName(REGION)
                .setInitialSize(LEAST_REGION)
                .setMaxSize(Math.max(memory, LEAST_REGION))
                .setMetricsEnabled(true);
        return new DataStorageConfiguration().setDefaultDataRegionConfiguration(region);
    }

    private static CacheConfiguration<Long, byte[]> cache(int backups) {
        return new CacheConfiguration<Long, byte[]>(CACHE)
                .setCacheMode(CacheMode.PARTITIONED)
                .setAtomicityMode(CacheAtomicityMode.ATOMIC)
                .setBackups(backups)
                // By default members read what they have a copy of, as several objects at once.
                .setReadFromBackup(false)
                // By default a write returns when the first copy is there.
                .setWriteSynchronizationMode(CacheWriteSynchronizationMode.FULL_SYNC);
    }

    private static ClientConfiguration clientConfig(Cluster cluster) {
        return new ClientConfiguration()
                .setAddresses(cluster.members().stream().map(Port.CLIENTS::at).toArray(String[]::new))
                .setPartitionAwarenessEnabled(true)
                .setHandshakeTimeout(CONNECT_MILLISECONDS)
                .setRequestTimeout(OPERATION_MILLISECONDS)
                // A replacement whose answer was lost would find its own object there, and say that it was not done.
                .setRetryPolicy(lost -> lost.operation() != ClientOperationType.CACHE_REPLACE);
    }
}

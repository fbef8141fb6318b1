package gridbench.datagrid.redis;

import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;

/**
 * Where a server listens.
 *
 * @param port for clients
 * @param bus port for the other servers of the cluster
 */
record Endpoint(String address, int port, int bus) {
    private static final int ANSWER_MILLISECONDS = 5_000;

    /** A connection for the cluster's upkeep, not for the data. */
    Jedis connect() {
        var config = DefaultJedisClientConfig.builder().timeoutMillis(ANSWER_MILLISECONDS).build();
        return new Jedis(node(), config);
    }

    HostAndPort node() {
        return new HostAndPort(address, port);
    }

    @Override
    public String toString() {
        return address + ":" + port;
    }
}

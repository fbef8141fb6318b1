package gridbench.datagrid.redis;

import gridbench.datagrid.Store;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.Connection;
import redis.clients.jedis.ConnectionPoolConfig;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.RedisClusterClient;
import redis.clients.jedis.Response;
import redis.clients.jedis.exceptions.JedisException;
import redis.clients.jedis.exceptions.JedisMovedDataException;
import redis.clients.jedis.util.JedisClusterCRC16;

/** Objects by their keys in decimal digits. */
final class RedisStore implements Store {
    private static final int ANSWER_MILLISECONDS = 5_000;
    private static final int ATTEMPTS = 10;
    private static final Duration ALL_ATTEMPTS = Duration.ofSeconds(10);
    private static final Duration REFRESH = Duration.ofSeconds(1);
    private static final int CONNECTIONS_PER_SERVER = 256;

    private static final byte[] REPLACE = bytes("""
            if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
            redis.call('SET', KEYS[1], ARGV[2])
            return 1""");

    private final Layout layout;
    private final RedisClusterClient client;

    RedisStore(Layout layout) {
        this.layout = layout;
        var pool = new ConnectionPoolConfig();
        pool.setMaxTotal(CONNECTIONS_PER_SERVER);
        pool.setMaxIdle(CONNECTIONS_PER_SERVER);
        pool.setJmxEnabled(false);
        client = RedisClusterClient.builder()
                .nodes(layout.endpoints().stream().map(Endpoint::node).collect(Collectors.toSet()))
                .clientConfig(DefaultJedisClientConfig.builder().timeoutMillis(ANSWER_MILLISECONDS).build())
                .poolConfig(pool)
                .maxAttempts(ATTEMPTS)
                .maxTotalRetriesDuration(ALL_ATTEMPTS)
                .topologyRefreshPeriod(REFRESH)
                .build();
    }

    @Override
    public byte[] get(long key) {
        return client.get(name(key));
    }

    @Override
    public void put(long key, byte[] value) {
        client.set(name(key), value);
    }

    /** Not by the client itself: that repeats what has no answer, and would then find its own object there. */
    @Override
    public boolean replace(long key, byte[] expected, byte[] value) {
        var command = new CommandArguments(Protocol.Command.EVAL)
                .addObjects(REPLACE, 1, name(key), expected, value);
        JedisMovedDataException last = null;
        for (var attempt = 0; attempt < ATTEMPTS; attempt++) {
            try (Connection server = client.getConnectionFromSlot(JedisClusterCRC16.getSlot(name(key)))) {
                return server.executeCommand(command).equals(1L);
            } catch (JedisMovedDataException moved) {
                last = moved;
                // It follows the object to its new place, and so learns where that is.
                client.exists(name(key));
            }
        }
        throw last;
    }

    @Override
    public void remove(Collection<Long> keys) {
        for (var key : keys) {
            client.del(name(key));
        }
    }

    @Override
    public Map<Long, byte[]> getAll(Collection<Long> keys) {
        var answers = new HashMap<Long, Response<byte[]>>();
        try (var pipeline = client.pipelined()) {
            for (var key : keys) {
                answers.put(key, pipeline.get(name(key)));
            }
        }
        var found = new HashMap<Long, byte[]>();
        for (var answer : answers.entrySet()) {
            var value = answered(answer.getValue()) ? answer.getValue().get() : get(answer.getKey());
            if (value != null) {
                found.put(answer.getKey(), value);
            }
        }
        return found;
    }

    @Override
    public void putAll(Map<Long, byte[]> values) {
        var answers = new HashMap<Long, Response<String>>();
        try (var pipeline = client.pipelined()) {
            values.forEach((key, value) -> answers.put(key, pipeline.set(name(key), value)));
        }
        answers.forEach((key, answer) -> {
            if (!answered(answer)) {
                put(key, values.get(key));
            }
        });
    }

    /** Whether a command of a pipeline was answered; the pipeline repeats none, and follows none to another server. */
    private static boolean answered(Response<?> response) {
        try {
            response.get();
            return true;
        } catch (JedisException | IllegalStateException failure) {
            return false;
        }
    }

    @Override
    public void clear() {
        for (var master : masters()) {
            try (Jedis server = master.connect()) {
                server.flushAll();
            }
        }
    }

    @Override
    public long size() {
        var sum = 0L;
        for (var master : masters()) {
            try (Jedis server = master.connect()) {
                sum += server.dbSize();
            }
        }
        return sum;
    }

    /** Those in service: one that failed for good, without a copy, is not among them. */
    private List<Endpoint> masters() {
        return layout.nodes().stream()
                .filter(node -> node.master() && !node.failed())
                .map(ClusterNode::endpoint)
                .toList();
    }

    private static byte[] name(long key) {
        return bytes(Long.toString(key));
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    @Override
    public void close() {
        client.close();
    }
}

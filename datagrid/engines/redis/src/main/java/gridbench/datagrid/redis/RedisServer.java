package gridbench.datagrid.redis;

import java.io.IOException;
import java.net.BindException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;

/** A redis-server that this process has started and that ends with it, however that ends. */
final class RedisServer implements AutoCloseable {
    private static final int NODE_TIMEOUT_MILLISECONDS = 2_000;
    private static final int POLL_MILLISECONDS = 20;

    private final Endpoint endpoint;
    private final Process process;
    private final Path log;

    private RedisServer(Endpoint endpoint, Process process, Path log) {
        this.endpoint = endpoint;
        this.process = process;
        this.log = log;
    }

    static RedisServer start(Endpoint endpoint, Path folder, long memory) throws IOException, InterruptedException {
        var own = Files.createDirectories(folder.resolve("redis-" + endpoint.address() + "-" + endpoint.port()));
        var log = own.resolve("redis-server.log");
        var command = new ArrayList<>(List.of("setpriv", "--pdeathsig", "KILL", "redis-server"));
        settings(endpoint, own, memory).forEach((name, value) -> command.addAll(List.of("--" + name, value)));
        var builder = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile());
        return new RedisServer(endpoint, launch(builder), log);
    }

    private static Map<String, String> settings(Endpoint endpoint, Path folder, long memory) {
        var settings = new TreeMap<String, String>();
        settings.put("bind", endpoint.address());
        settings.put("port", String.valueOf(endpoint.port()));
        // Protected mode would refuse the other hosts, whose network is the one that is bound to.
        settings.put("protected-mode", "no");
        settings.put("dir", folder.toString());
        settings.put("save", "");
        settings.put("appendonly", "no");
        settings.put("maxmemory", String.valueOf(memory));
        settings.put("maxmemory-policy", "noeviction");
        settings.put("cluster-enabled", "yes");
        settings.put("cluster-port", String.valueOf(endpoint.bus()));
        settings.put("cluster-announce-ip", endpoint.address());
        settings.put("cluster-node-timeout", String.valueOf(NODE_TIMEOUT_MILLISECONDS));
        settings.put("cluster-require-full-coverage", "no");
        settings.put("cluster-allow-replica-migration", "no");
        // Copies begin at once instead of waiting for more replicas that might share the transfer.
        settings.put("repl-diskless-sync-delay", "0");
        return settings;
    }

    private static Process launch(ProcessBuilder builder) throws IOException, InterruptedException {
        var started = new CompletableFuture<Process>();
        // The signal of setpriv comes as soon as the thread is gone that started the process.
        var thread = new Thread(() -> {
            try {
                var process = builder.start();
                started.complete(process);
                process.waitFor();
            } catch (IOException failure) {
                started.completeExceptionally(failure);
            } catch (InterruptedException interrupt) {
                Thread.currentThread().interrupt();
            }
        }, "parent of redis-server");
        thread.setDaemon(true);
        thread.start();
        try {
            return started.get();
        } catch (ExecutionException failure) {
            throw new IOException("redis-server does not start", failure.getCause());
        }
    }

    /** Waits until it is this server that answers at its port. */
    void awaitAnswer() throws IOException, InterruptedException {
        do {
            if (process.waitFor(POLL_MILLISECONDS, TimeUnit.MILLISECONDS)) {
                var told = "redis-server at " + endpoint + " (bus " + endpoint.bus() + ") ended:\n" + Files.readString(log);
                throw told.contains("Address already in use") ? new BindException(told) : new IOException(told);
            }
        } while (!answers());
    }

    private boolean answers() {
        try (var server = endpoint.connect()) {
            return information(server, "server").get("process_id").equals(String.valueOf(process.pid()));
        } catch (JedisConnectionException | JedisDataException notYet) {
            return false;
        }
    }

    Map<String, String> information(String section) {
        try (var server = endpoint.connect()) {
            return information(server, section);
        }
    }

    static Map<String, String> information(Jedis server, String section) {
        var found = new TreeMap<String, String>();
        for (var line : server.info(section).split("\r\n")) {
            var parts = line.split(":", 2);
            if (parts.length == 2) {
                found.put(parts[0], parts[1]);
            }
        }
        return found;
    }

    long objects() {
        try (var server = endpoint.connect()) {
            return server.dbSize();
        }
    }

    boolean master() {
        return information("replication").get("role").equals("master");
    }

    @Override
    public void close() {
        // There is nothing to be saved.
        process.destroyForcibly();
        process.onExit().join();
    }
}

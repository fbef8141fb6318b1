package gridbench.datagrid.redis;

import gridbench.datagrid.Cluster;
import gridbench.datagrid.DataGrid;
import gridbench.datagrid.Member;
import gridbench.datagrid.Store;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;

/**
 * Redis Cluster. A member starts a server with its share of the slots, and one for each copy, which
 * replicates a member's before it.
 */
public final class RedisGrid implements DataGrid {
    @Override
    public Member join(Cluster cluster, int index, long memory) throws Exception {
        var layout = new Layout(cluster);
        var servers = new ArrayList<RedisServer>();
        try {
            for (var server = 0; server < layout.serversOfMember(); server++) {
                servers.add(RedisServer.start(
                        layout.endpoint(index, server), cluster.folder(), memory / layout.serversOfMember()));
            }
            for (var server : servers) {
                server.awaitAnswer();
            }
            var formation = new Formation(layout);
            if (index == 0) {
                formation.form();
            }
            formation.await(index);
            return new RedisMember(layout, servers);
        } catch (Exception failure) {
            servers.forEach(RedisServer::close);
            throw failure;
        }
    }

    @Override
    public Store connect(Cluster cluster, String address) {
        return new RedisStore(new Layout(cluster));
    }

    /** Of the server that is installed: "Redis server v=7.0.15 sha=...". */
    @Override
    public String version() {
        try {
            var program = new ProcessBuilder("redis-server", "--version").start();
            var told = new String(program.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            return told.replaceFirst("(?s).*v=(\\S+).*", "$1");
        } catch (IOException failure) {
            throw new IllegalStateException("redis-server does not run; install it (package redis-server)", failure);
        }
    }
}

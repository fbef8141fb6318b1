package gridbench.datagrid.redis;

import gridbench.datagrid.Member;
import java.util.List;
import java.util.function.Predicate;

final class RedisMember implements Member {
    private final Layout layout;
    private final List<RedisServer> servers;

    RedisMember(Layout layout, List<RedisServer> servers) {
        this.layout = layout;
        this.servers = servers;
    }

    @Override
    public int members() {
        return (int) layout.nodes().stream()
                .filter(ClusterNode::settled)
                .map(layout::memberOf)
                .distinct()
                .count();
    }

    @Override
    public long entries() {
        return objects(RedisServer::master);
    }

    @Override
    public long backups() {
        return objects(server -> !server.master());
    }

    private long objects(Predicate<RedisServer> which) {
        return servers.stream().filter(which).mapToLong(RedisServer::objects).sum();
    }

    /** Of the servers, which hold the data. */
    @Override
    public long used() {
        return servers.stream()
                .mapToLong(server -> Long.parseLong(server.information("memory").get("used_memory")))
                .sum();
    }

    @Override
    public void close() {
        servers.forEach(RedisServer::close);
    }
}

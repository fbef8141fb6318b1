package gridbench.datagrid.redis;

import java.util.Arrays;
import java.util.List;
import java.util.Set;
import redis.clients.jedis.Jedis;

/**
 * A server as another one of its cluster sees it: a line of CLUSTER NODES.
 *
 * @param address with port, without the bus
 * @param flags such as master, slave, fail, fail? and handshake
 * @param connected whether there is a link to it
 * @param slots that it serves, as ranges
 */
record ClusterNode(String id, String address, Set<String> flags, boolean connected, List<String> slots) {
    private static final int SLOTS = 8;

    static List<ClusterNode> all(Jedis server) {
        return server.clusterNodes().lines().map(ClusterNode::parse).toList();
    }

    private static ClusterNode parse(String line) {
        var fields = Arrays.asList(line.split(" "));
        return new ClusterNode(
                fields.get(0),
                fields.get(1).replaceFirst("@.*", ""),
                Set.of(fields.get(2).split(",")),
                fields.get(7).equals("connected"),
                List.copyOf(fields.subList(SLOTS, fields.size())));
    }

    boolean isAt(Endpoint endpoint) {
        return address.equals(endpoint.toString());
    }

    boolean failed() {
        return flags.contains("fail");
    }

    /** Whether the cluster works with it, with nothing in doubt. */
    boolean settled() {
        return connected && flags.stream().noneMatch(Set.of("fail", "fail?", "handshake", "noaddr")::contains);
    }

    boolean master() {
        return flags.contains("master");
    }

    Endpoint endpoint() {
        var colon = address.lastIndexOf(':');
        return new Endpoint(address.substring(0, colon), Integer.parseInt(address.substring(colon + 1)), 0);
    }
}

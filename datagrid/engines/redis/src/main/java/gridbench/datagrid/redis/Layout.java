package gridbench.datagrid.redis;

import gridbench.datagrid.Cluster;
import java.util.ArrayList;
import java.util.List;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.exceptions.JedisException;

/** Which servers a cluster has: server 0 of a member is a master, server n has the copies of the n-th member before. */
final class Layout {
    static final int SLOTS = 16_384;

    private final List<Cluster.Place> places;
    private final int servers;

    Layout(Cluster cluster) {
        places = cluster.members();
        // A copy on the member itself would be lost with it: fewer members hold fewer copies.
        servers = 1 + Math.min(cluster.backups(), places.size() - 1);
        for (var place : places) {
            if (place.ports().size() < 2 * servers) {
                throw new IllegalArgumentException(
                        "a member with " + (servers - 1) + " copies of others' objects needs " + 2 * servers
                                + " ports, and " + place.address() + " has " + place.ports().size());
            }
        }
    }

    int members() {
        return places.size();
    }

    int serversOfMember() {
        return servers;
    }

    Endpoint endpoint(int member, int server) {
        var place = places.get(member);
        return new Endpoint(place.address(), place.ports().get(server), place.ports().get(servers + server));
    }

    List<Endpoint> endpoints() {
        var all = new ArrayList<Endpoint>();
        for (var member = 0; member < members(); member++) {
            for (var server = 0; server < servers; server++) {
                all.add(endpoint(member, server));
            }
        }
        return all;
    }

    int memberOf(ClusterNode node) {
        for (var member = 0; member < members(); member++) {
            for (var server = 0; server < servers; server++) {
                if (node.isAt(endpoint(member, server))) {
                    return member;
                }
            }
        }
        throw new IllegalStateException(node + " is no server of this cluster");
    }

    /** What member's objects a server holds copies of. */
    int masterOf(int member, int server) {
        return Math.floorMod(member - server, members());
    }

    int firstSlot(int member) {
        return (int) ((long) SLOTS * member / members());
    }

    /** The servers, as the first of them sees them that answers. */
    List<ClusterNode> nodes() {
        JedisException last = null;
        for (var endpoint : endpoints()) {
            try (Jedis server = endpoint.connect()) {
                return ClusterNode.all(server);
            } catch (JedisException failure) {
                last = failure;
            }
        }
        throw new IllegalStateException("no server of the cluster answers", last);
    }
}

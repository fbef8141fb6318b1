package gridbench.datagrid.redis;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;
import redis.clients.jedis.Protocol;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisDataException;

/** How servers become a cluster, as redis-cli --cluster create does it. */
final class Formation {
    private static final int PATIENCE_SECONDS = 180;
    private static final int POLL_MILLISECONDS = 20;

    private final Layout layout;
    private final long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS);

    Formation(Layout layout) {
        this.layout = layout;
    }

    /** Assigns the slots, has the servers know each other, and has each copy follow its master. */
    void form() throws InterruptedException, TimeoutException {
        var epoch = 1L;
        for (var endpoint : layout.endpoints()) {
            until("an answer of " + endpoint, () -> answers(endpoint));
            try (var server = endpoint.connect()) {
                server.clusterSetConfigEpoch(epoch++);
            }
        }
        for (var member = 0; member < layout.members(); member++) {
            try (var server = layout.endpoint(member, 0).connect()) {
                server.clusterAddSlotsRange(layout.firstSlot(member), layout.firstSlot(member + 1) - 1);
            }
        }
        try (var first = layout.endpoint(0, 0).connect()) {
            for (var endpoint : layout.endpoints()) {
                first.sendCommand(
                        Protocol.Command.CLUSTER, "MEET", endpoint.address(),
                        String.valueOf(endpoint.port()), String.valueOf(endpoint.bus()));
            }
        }
        for (var member = 0; member < layout.members(); member++) {
            for (var copy = 1; copy < layout.serversOfMember(); copy++) {
                replicate(layout.endpoint(member, copy), layout.endpoint(layout.masterOf(member, copy), 0));
            }
        }
    }

    private void replicate(Endpoint copy, Endpoint master) throws InterruptedException, TimeoutException {
        try (var server = copy.connect(); var followed = master.connect()) {
            var id = followed.clusterMyId();
            until(copy + " knowing " + master, () -> ClusterNode.all(server).stream()
                    .anyMatch(node -> node.id().equals(id) && node.settled()));
            server.clusterReplicate(id);
        }
    }

    /** Waits until the servers of a member work together with all others, and the copies are in step. */
    void await(int member) throws InterruptedException, TimeoutException {
        for (var server = 0; server < layout.serversOfMember(); server++) {
            var endpoint = layout.endpoint(member, server);
            until("the cluster of " + endpoint, () -> formed(endpoint));
        }
    }

    private boolean formed(Endpoint endpoint) {
        try (var server = endpoint.connect()) {
            var nodes = ClusterNode.all(server);
            var masters = nodes.stream().filter(ClusterNode::master).toList();
            var replication = RedisServer.information(server, "replication");
            return nodes.size() == layout.endpoints().size()
                    && nodes.stream().allMatch(ClusterNode::settled)
                    && masters.size() == layout.members()
                    && masters.stream().noneMatch(master -> master.slots().isEmpty())
                    && server.clusterInfo().contains("cluster_state:ok")
                    && inStep(replication.get("role"), replication.get("master_link_status"), endpoint);
        }
    }

    private boolean inStep(String role, String link, Endpoint endpoint) {
        var isMaster = false;
        for (var member = 0; member < layout.members(); member++) {
            isMaster |= layout.endpoint(member, 0).equals(endpoint);
        }
        return isMaster ? role.equals("master") : role.equals("slave") && "up".equals(link);
    }

    private static boolean answers(Endpoint endpoint) {
        try (var server = endpoint.connect()) {
            return server.ping().equals("PONG");
        } catch (JedisConnectionException | JedisDataException notYet) {
            return false;
        }
    }

    private void until(String what, BooleanSupplier holds) throws InterruptedException, TimeoutException {
        while (!holds.getAsBoolean()) {
            if (System.nanoTime() > until) {
                throw new TimeoutException(what + " did not come within " + PATIENCE_SECONDS + " s");
            }
            Thread.sleep(POLL_MILLISECONDS);
        }
    }
}

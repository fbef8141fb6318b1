package gridbench.datagrid.geode;

import gridbench.datagrid.Cluster;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;

/**
 * What a member listens at.
 *
 * @param server for clients
 * @param peers for other members
 * @param locator for members that join, at the first member
 * @param membership where others ask whether it lives. Geode takes any port of a range of three or more from here on
 */
record Ports(int server, int peers, int locator, int membership) {
    /** How many ports a range has to have. */
    private static final int RANGE = 3;

    static Ports of(Cluster cluster, int index) {
        var all = new HashSet<Integer>();
        cluster.members().forEach(member -> all.addAll(member.ports()));
        var mine = cluster.members().get(index).ports();
        for (var first : mine) {
            var rest = new ArrayList<>(mine);
            var others = new HashSet<>(all);
            others.removeAll(mine);
            var isFree = true;
            for (var port = first; port < first + RANGE; port++) {
                rest.remove(port);
                isFree &= !others.contains(port);
            }
            if (isFree && rest.size() >= 3) {
                return new Ports(rest.get(0), rest.get(1), rest.get(2), first);
            }
        }
        throw new IllegalArgumentException("no port of " + mine + " is followed by two that no other member has");
    }

    String membershipRange() {
        return membership + "-" + (membership + RANGE - 1);
    }

    /** Takes the other ports of the range, if they are free, so that the first one alone is left for Geode. */
    List<ServerSocket> takeOthers(InetAddress address) throws IOException {
        var taken = new ArrayList<ServerSocket>();
        for (var port = membership + 1; port < membership + RANGE; port++) {
            try {
                taken.add(new ServerSocket(port, 1, address));
            } catch (java.net.BindException others) {
                // As good: Geode cannot have it either.
            }
        }
        return taken;
    }
}

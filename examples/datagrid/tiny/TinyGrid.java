package tiny;

import gridbench.datagrid.Cluster;
import gridbench.datagrid.DataGrid;
import gridbench.datagrid.Member;
import gridbench.datagrid.Store;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;

/** A data grid as small as can be: each member has a map, and each key has a member. */
public final class TinyGrid implements DataGrid {
    @Override
    public Member join(Cluster cluster, int index, long memory) throws IOException {
        var place = cluster.members().get(index);
        var port = place.ports().get(0);
        return new TinyMember(
                new ServerSocket(port, 100, InetAddress.getByName(place.address())),
                cluster.members().size());
    }

    @Override
    public Store connect(Cluster cluster, String address) {
        return new TinyStore(cluster.members());
    }

    @Override
    public String version() {
        return "1";
    }
}

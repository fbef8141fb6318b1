package gridbench.datagrid.embedded;

import gridbench.datagrid.Cluster;
import gridbench.datagrid.DataGrid;
import gridbench.datagrid.Member;
import gridbench.datagrid.Store;

/** A map in the client's own process: no cluster, no network, but real copies of values. */
public final class EmbeddedGrid implements DataGrid {
    @Override
    public Member join(Cluster cluster, int index, long memory) {
        throw new UnsupportedOperationException("the embedded map has no members: its client holds the data");
    }

    @Override
    public Store connect(Cluster cluster, String address) {
        return new EmbeddedStore();
    }

    @Override
    public String version() {
        return System.getProperty("java.version");
    }
}

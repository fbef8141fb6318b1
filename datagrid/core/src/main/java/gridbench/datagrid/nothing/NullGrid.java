package gridbench.datagrid.nothing;

import gridbench.datagrid.Cluster;
import gridbench.datagrid.DataGrid;
import gridbench.datagrid.Member;
import gridbench.datagrid.Store;

/** No data grid at all: it answers at once. What is measured with it, the driver takes itself. */
public final class NullGrid implements DataGrid {
    @Override
    public Member join(Cluster cluster, int index, long memory) {
        throw new UnsupportedOperationException("the null grid has no members: it holds no data");
    }

    @Override
    public Store connect(Cluster cluster, String address) {
        return new NullStore();
    }

    @Override
    public String version() {
        return System.getProperty("java.version");
    }
}

package gridbench.datagrid.process;

import gridbench.datagrid.DataGrid;

/**
 * What a process answers when it has joined or is connected.
 *
 * @param seconds that it took
 * @param version of the product
 */
record Started(double seconds, String version, long pid) {
    static Started since(long began, DataGrid grid) {
        return new Started(
                (System.nanoTime() - began) / 1e9, grid.version(), ProcessHandle.current().pid());
    }
}

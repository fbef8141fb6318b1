package gridbench.datagrid;

/**
 * A data grid that can be measured: how its storage members and its clients are started.
 *
 * <p>There is one class for each product, with a public constructor without parameters. Members and
 * clients are in processes of their own; each process makes one object of the class.
 */
public interface DataGrid {
    /**
     * Starts a storage member in this process. It holds its part of the data, partitioned over all
     * members, with {@link Cluster#backups} copies of each object on other members.
     *
     * @param index which member of the cluster this one is, from 0
     * @param memory bytes that it may take for data and all else; where engine.toml divides them,
     *     for what is neither in Java's heap nor the process's own
     * @return when this member works together with all others of the cluster
     */
    Member join(Cluster cluster, int index, long memory) throws Exception;

    /**
     * Connects a client, which stores nothing itself and keeps no copies nearby.
     *
     * @param address of the interface that this process is to use
     */
    Store connect(Cluster cluster, String address) throws Exception;

    /** The version of the product. */
    String version();
}

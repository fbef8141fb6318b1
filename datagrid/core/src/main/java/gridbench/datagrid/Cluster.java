package gridbench.datagrid;

import java.nio.file.Path;
import java.util.List;

/**
 * Where the members of a cluster are.
 *
 * @param name tells it from other clusters in the same network
 * @param backups copies of each object beside the first one
 * @param members in the order of their indices
 * @param folder of this host, for files of this cluster's processes; it is removed afterwards
 */
public record Cluster(String name, int backups, List<Place> members, Path folder) {
    /**
     * The place of a member.
     *
     * @param address of the interface that it binds to
     * @param ports that it may listen at, as many as the engine's file asks for
     */
    public record Place(String address, List<Integer> ports) {}
}

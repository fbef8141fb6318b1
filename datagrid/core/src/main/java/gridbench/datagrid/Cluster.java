package gridbench.datagrid;

import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.ServerSocket;
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
    public record Place(String address, List<Integer> ports) {
        /** Throws BindException, with the port in its text, if another process has it: products tell that in many ways. */
        public void requireFree(int port) throws IOException {
            try (var socket = new ServerSocket(port, 1, InetAddress.getByName(address))) {
                socket.getLocalPort();
            } catch (BindException taken) {
                var told = new BindException("port " + port + " of " + address + " is in use by another process");
                told.initCause(taken);
                throw told;
            }
        }
    }
}

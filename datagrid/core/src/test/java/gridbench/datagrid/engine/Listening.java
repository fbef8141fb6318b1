package gridbench.datagrid.engine;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;

/** The TCP sockets that a process and its children listen at, as Linux tells them. */
final class Listening {
    private static final String LISTEN = "0A";

    private Listening() {}

    static List<InetSocketAddress> of(ProcessHandle process) throws IOException {
        var inodes = new HashSet<String>();
        for (var one : Stream.concat(Stream.of(process), process.descendants()).toList()) {
            inodes.addAll(sockets(one.pid()));
        }
        var found = new ArrayList<InetSocketAddress>();
        for (var table : List.of("/proc/net/tcp", "/proc/net/tcp6")) {
            var file = Path.of(table);
            if (!Files.exists(file)) {
                continue;
            }
            for (var line : Files.readAllLines(file)) {
                var fields = line.strip().split("\\s+");
                if (fields[3].equals(LISTEN) && inodes.contains("socket:[" + fields[9] + "]")) {
                    found.add(address(fields[1]));
                }
            }
        }
        return found;
    }

    private static Set<String> sockets(long pid) throws IOException {
        var found = new HashSet<String>();
        try (var descriptors = Files.list(Path.of("/proc/" + pid + "/fd"))) {
            for (var descriptor : descriptors.toList()) {
                try {
                    found.add(Files.readSymbolicLink(descriptor).toString());
                } catch (IOException closed) {
                    // It was closed since it was listed, so it is none that listens.
                }
            }
        }
        return found;
    }

    /** From {@code 0100007F:1F90}: words of 4 bytes, each in the order of this machine, then the port. */
    private static InetSocketAddress address(String text) throws IOException {
        var parts = text.split(":");
        var bytes = new byte[parts[0].length() / 2];
        for (var at = 0; at < bytes.length; at++) {
            var hex = parts[0].substring(2 * at, 2 * at + 2);
            bytes[at / 4 * 4 + 3 - at % 4] = (byte) Integer.parseInt(hex, 16);
        }
        return new InetSocketAddress(InetAddress.getByAddress(bytes), Integer.parseInt(parts[1], 16));
    }
}

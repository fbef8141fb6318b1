package tiny;

import gridbench.datagrid.Cluster;
import gridbench.datagrid.Store;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.Socket;
import java.util.Collection;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/** Asks the member that a key belongs to. */
final class TinyStore implements Store {
    private final List<Cluster.Place> members;
    private final ThreadLocal<Connection[]> mine;
    private final Queue<Connection> all = new ConcurrentLinkedQueue<>();

    TinyStore(List<Cluster.Place> members) {
        this.members = members;
        mine = ThreadLocal.withInitial(() -> new Connection[members.size()]);
    }

    @Override
    public byte[] get(long key) throws IOException {
        return ask(key, 'g', null, null);
    }

    @Override
    public void put(long key, byte[] value) throws IOException {
        ask(key, 'p', value, null);
    }

    @Override
    public boolean replace(long key, byte[] expected, byte[] value) throws IOException {
        return ask(key, 'c', value, expected) != null;
    }

    @Override
    public void remove(Collection<Long> keys) throws IOException {
        for (var key : keys) {
            ask(key, 'r', null, null);
        }
    }

    @Override
    public void clear() throws IOException {
        for (var member = 0; member < members.size(); member++) {
            ask(member, 'a', null, null);
        }
    }

    @Override
    public long size() throws IOException {
        long size = 0;
        for (var member = 0; member < members.size(); member++) {
            size += Long.parseLong(new String(ask(member, 's', null, null)));
        }
        return size;
    }

    @Override
    public void close() {
        all.forEach(Connection::close);
    }

    private byte[] ask(long key, char request, byte[] value, byte[] expected) throws IOException {
        var member = (int) Math.floorMod(key, (long) members.size());
        var connections = mine.get();
        try {
            if (connections[member] == null) {
                connections[member] = new Connection(members.get(member));
                all.add(connections[member]);
            }
            return connections[member].ask(key, request, value, expected);
        } catch (IOException lost) {
            connections[member] = null;
            throw lost;
        }
    }

    /** Of one thread to one member. */
    private static final class Connection {
        private final Socket socket;
        private final DataOutputStream out;
        private final DataInputStream in;

        Connection(Cluster.Place member) throws IOException {
            socket = new Socket(member.address(), member.ports().get(0));
            socket.setTcpNoDelay(true);
            out = new DataOutputStream(new BufferedOutputStream(socket.getOutputStream()));
            in = new DataInputStream(new BufferedInputStream(socket.getInputStream()));
        }

        byte[] ask(long key, char request, byte[] value, byte[] expected) throws IOException {
            out.writeByte(request);
            out.writeLong(key);
            Bytes.write(out, value);
            Bytes.write(out, expected);
            out.flush();
            return Bytes.read(in);
        }

        void close() {
            try {
                socket.close();
            } catch (IOException alreadyClosed) {
                // As good.
            }
        }
    }
}

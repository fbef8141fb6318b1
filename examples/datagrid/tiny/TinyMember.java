package tiny;

import gridbench.datagrid.Member;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Arrays;
import java.util.concurrent.ConcurrentHashMap;

/** A map, and a thread for each connection that asks for what is in it. */
final class TinyMember implements Member {
    private final ConcurrentHashMap<Long, byte[]> objects = new ConcurrentHashMap<>();
    private final ServerSocket listener;
    private final int members;

    TinyMember(ServerSocket listener, int members) {
        this.listener = listener;
        this.members = members;
        inBackground(this::accept);
    }

    private void accept() {
        try {
            while (true) {
                var socket = listener.accept();
                socket.setTcpNoDelay(true);
                inBackground(() -> serve(socket));
            }
        } catch (IOException closed) {
            // This member is being closed.
        }
    }

    private void serve(Socket socket) {
        try (socket) {
            var in = new DataInputStream(new BufferedInputStream(socket.getInputStream()));
            var out = new DataOutputStream(new BufferedOutputStream(socket.getOutputStream()));
            while (true) {
                var request = in.readByte();
                Bytes.write(out, answer(request, in.readLong(), Bytes.read(in), Bytes.read(in)));
                out.flush();
            }
        } catch (IOException gone) {
            // So is this connection.
        }
    }

    private byte[] answer(byte request, long key, byte[] value, byte[] expected) {
        switch (request) {
            case 'g':
                return objects.get(key);
            case 'p':
                objects.put(key, value);
                return null;
            case 'c':
                var now = objects.computeIfPresent(key, (k, old) -> Arrays.equals(old, expected) ? value : old);
                return now == value ? new byte[0] : null;
            case 'r':
                objects.remove(key);
                return null;
            case 'a':
                objects.clear();
                return null;
            default:
                return Long.toString(objects.size()).getBytes();
        }
    }

    private static void inBackground(Runnable work) {
        var thread = new Thread(work);
        thread.setDaemon(true);
        thread.start();
    }

    @Override
    public int members() {
        return members;
    }

    @Override
    public long entries() {
        return objects.size();
    }

    @Override
    public long backups() {
        return 0;
    }

    @Override
    public void close() {
        try {
            listener.close();
        } catch (IOException alreadyClosed) {
            // As good.
        }
    }
}

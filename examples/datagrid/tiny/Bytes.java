package tiny;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;

/** How bytes are sent: their number, then they themselves; -1 stands for none. */
final class Bytes {
    private Bytes() {}

    static void write(DataOutputStream out, byte[] bytes) throws IOException {
        out.writeInt(bytes == null ? -1 : bytes.length);
        if (bytes != null) {
            out.write(bytes);
        }
    }

    static byte[] read(DataInputStream in) throws IOException {
        var length = in.readInt();
        return length < 0 ? null : in.readNBytes(length);
    }
}

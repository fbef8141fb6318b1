package gridbench.datagrid.coherence;

import com.tangosol.io.ExternalizableLite;
import com.tangosol.util.ExternalizableHelper;
import com.tangosol.util.InvocableMap;
import java.io.DataInput;
import java.io.DataOutput;
import java.io.IOException;
import java.util.Arrays;

/** Replaces an object where it lies, if it has the same bytes: Coherence's own compares arrays by identity. */
public final class ReplaceProcessor implements InvocableMap.EntryProcessor<Long, byte[], Boolean>, ExternalizableLite {
    private static final long serialVersionUID = 1L;

    private byte[] expected;
    private byte[] value;

    /** For what has been sent. */
    public ReplaceProcessor() {}

    ReplaceProcessor(byte[] expected, byte[] value) {
        this.expected = expected;
        this.value = value;
    }

    @Override
    public Boolean process(InvocableMap.Entry<Long, byte[]> entry) {
        if (!entry.isPresent() || !Arrays.equals(entry.getValue(), expected)) {
            return false;
        }
        entry.setValue(value, true);
        return true;
    }

    @Override
    public void readExternal(DataInput in) throws IOException {
        expected = ExternalizableHelper.readByteArray(in);
        value = ExternalizableHelper.readByteArray(in);
    }

    @Override
    public void writeExternal(DataOutput out) throws IOException {
        ExternalizableHelper.writeByteArray(out, expected);
        ExternalizableHelper.writeByteArray(out, value);
    }
}

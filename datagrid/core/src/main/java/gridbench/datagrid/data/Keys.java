package gridbench.datagrid.data;

import java.util.List;
import java.util.stream.LongStream;

/** Keys that follow each other, several at once. */
final class Keys {
    /** What is done with some keys. */
    interface Use {
        void accept(List<Long> keys) throws Exception;
    }

    private Keys() {}

    /**
     * Goes through keys.
     *
     * @param first key
     * @param last key + 1
     * @param most at once
     */
    static void forEach(long first, long last, long most, Use use) throws Exception {
        for (var key = first; key < last; key += most) {
            use.accept(LongStream.range(key, Math.min(last, key + most)).boxed().toList());
        }
    }
}

package gridrpc;

/**
 * A parameter of a function, as its interface declares it.
 *
 * @param name its name
 * @param mode its direction
 * @param type its type, or that of its elements
 * @param isArray whether it is an array
 * @param isCallback whether it is a function of the caller; {@code type} is then {@link Type#NONE}
 */
public record Parameter(String name, Mode mode, Type type, boolean isArray, boolean isCallback) {
    /** Direction of a parameter. */
    public enum Mode {
        /** To the function. */
        IN,
        /** From the function. */
        OUT,
        /** Both ways. */
        INOUT,
        /** Memory that the function works with, and that does not travel. */
        WORK
    }

    /** Types of the interface description language. */
    public enum Type {
        /** A callback has none. */
        NONE(0, Kind.NONE),
        /** {@code char}. */
        CHAR(1, Kind.SIGNED),
        /** {@code unsigned char}. */
        UNSIGNED_CHAR(1, Kind.UNSIGNED),
        /** {@code short}. */
        SHORT(2, Kind.SIGNED),
        /** {@code unsigned short}. */
        UNSIGNED_SHORT(2, Kind.UNSIGNED),
        /** {@code int}. */
        INT(4, Kind.SIGNED),
        /** {@code unsigned int}. */
        UNSIGNED_INT(4, Kind.UNSIGNED),
        /** {@code long}. */
        LONG(8, Kind.SIGNED),
        /** {@code unsigned long}. */
        UNSIGNED_LONG(8, Kind.UNSIGNED),
        /** {@code long long}. */
        LONG_LONG(8, Kind.SIGNED),
        /** {@code unsigned long long}. */
        UNSIGNED_LONG_LONG(8, Kind.UNSIGNED),
        /** {@code float}. */
        FLOAT(4, Kind.REAL),
        /** {@code double}. */
        DOUBLE(8, Kind.REAL),
        /** A complex number of two {@code float}. */
        SCOMPLEX(8, Kind.COMPLEX),
        /** A complex number of two {@code double}. */
        DCOMPLEX(16, Kind.COMPLEX),
        /** {@code int8}. */
        INT8(1, Kind.SIGNED),
        /** {@code uint8}. */
        UINT8(1, Kind.UNSIGNED),
        /** {@code int16}. */
        INT16(2, Kind.SIGNED),
        /** {@code uint16}. */
        UINT16(2, Kind.UNSIGNED),
        /** {@code int32}. */
        INT32(4, Kind.SIGNED),
        /** {@code uint32}. */
        UINT32(4, Kind.UNSIGNED),
        /** {@code int64}. */
        INT64(8, Kind.SIGNED),
        /** {@code uint64}. */
        UINT64(8, Kind.UNSIGNED),
        /** Text. */
        STRING(0, Kind.TEXT),
        /** Name of a file that travels with the call. */
        FILENAME(0, Kind.TEXT);

        /** Bytes of a number; 0 for texts and callbacks. */
        final int size;

        final Kind kind;

        Type(int size, Kind kind) {
            this.size = size;
            this.kind = kind;
        }
    }

    enum Kind {
        NONE,
        SIGNED,
        UNSIGNED,
        REAL,
        COMPLEX,
        TEXT
    }

    boolean isOutput() {
        return mode == Mode.OUT || mode == Mode.INOUT;
    }
}

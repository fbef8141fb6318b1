package gridrpc;

import com.sun.jna.Pointer;
import com.sun.jna.ptr.IntByReference;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URLConnection;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;

/** Functions of libgridrpc, see grpc.h, and where the library comes from. */
final class Native {
    private static final String VERSION = "0.1.0";
    private static final String LIBRARY = "libgridrpc.so." + VERSION;

    static final int NO_SESSION = -1;
    static final int HANDLE_SIZE = 32;

    static {
        com.sun.jna.Native.register(Native.class, com.sun.jna.NativeLibrary.getInstance(library()));
    }

    private Native() {}

    static native int grpc_initialize(String config);

    static native int grpc_finalize();

    static native int grpc_function_handle_default(Pointer handle, String name);

    static native int grpc_function_handle_init(Pointer handle, String server, String name);

    static native int grpc_function_handle_destruct(Pointer handle);

    static native int grpc_function_parameters_np(Pointer handle, Pointer parameters, long capacity, Pointer count);

    static native int grpc_object_handle_default_np(Pointer handle, String name);

    static native int grpc_object_handle_init_np(Pointer handle, String server, String name);

    static native int grpc_object_handle_destruct_np(Pointer handle);

    static native int grpc_method_parameters_np(
            Pointer handle, String method, Pointer parameters, long capacity, Pointer count);

    static native Pointer grpc_arg_stack_new(int room);

    static native int grpc_arg_stack_push_arg(Pointer stack, Pointer argument);

    static native int grpc_arg_stack_push_array_np(Pointer stack, Pointer array, long bytes);

    static native int grpc_arg_stack_destruct(Pointer stack);

    static native int grpc_call_arg_stack(Pointer handle, Pointer stack);

    static native int grpc_call_argstack_async(Pointer handle, IntByReference session, Pointer stack);

    static native int grpc_invoke_arg_stack_np(Pointer handle, String method, Pointer stack);

    static native int grpc_invoke_argstack_async_np(
            Pointer handle, String method, IntByReference session, Pointer stack);

    static native int grpc_cancel(int session);

    static native int grpc_cancel_all();

    static native int grpc_wait_any(IntByReference session);

    static native int grpc_get_error(int session);

    static native String grpc_error_detail_np(int session);

    static native int grpc_session_info_remove_np(int session);

    static native Pointer grpc_malloc_np(long bytes);

    static native int grpc_free_np(Pointer memory);

    /** Throws the error of a function that has just returned it in this thread. */
    static void check(int error) {
        if (error != 0) {
            throw new GridRpcException(GridRpcException.Code.of(error), grpc_error_detail_np(NO_SESSION));
        }
    }

    /**
     * The library below the prefix that the system property {@code gridrpc.prefix} names, that of the jar, or that of
     * the system.
     */
    private static String library() {
        String prefix = System.getProperty("gridrpc.prefix");
        if (prefix != null) {
            return Path.of(prefix, "lib", "libgridrpc.so.0").toString();
        }
        try {
            String packed = unpacked();
            return packed == null ? "gridrpc" : packed;
        } catch (IOException error) {
            throw new UncheckedIOException("cannot unpack libgridrpc of the jar", error);
        }
    }

    /**
     * Unpacks the library, and beside it the program that workers run, into the user's cache. Each build of
     * the jar has a folder of its own there.
     */
    private static String unpacked() throws IOException {
        String architecture = System.getProperty("os.arch");
        if (!System.getProperty("os.name").equals("Linux") || !architecture.equals("amd64")) {
            return null;
        }
        String[] names = {LIBRARY, "gridrpc"};
        if (Native.class.getResource("linux-x86-64/" + LIBRARY) == null) {
            return null;
        }
        String cache = System.getenv("XDG_CACHE_HOME");
        Path base = cache == null || cache.isEmpty() ? Path.of(System.getProperty("user.home"), ".cache") : Path.of(cache);
        Path folder = base.resolve("gridrpc").resolve("java-" + version(names));
        Files.createDirectories(
                folder, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
        for (String name : names) {
            Path file = folder.resolve(name);
            if (Files.exists(file)) {
                continue;
            }
            // Another process may do the same: a file appears under its name when it is complete.
            Path written = Files.createTempFile(folder, name, ".new");
            try (InputStream packed = Native.class.getResourceAsStream("linux-x86-64/" + name)) {
                Files.copy(packed, written, StandardCopyOption.REPLACE_EXISTING);
            }
            Files.setPosixFilePermissions(written, PosixFilePermissions.fromString("rwx------"));
            Files.move(written, file, StandardCopyOption.ATOMIC_MOVE);
        }
        return folder.resolve(LIBRARY).toString();
    }

    /** What tells the files of one jar from those of another, without reading them. */
    private static String version(String... names) throws IOException {
        StringBuilder version = new StringBuilder(VERSION);
        for (String name : names) {
            URLConnection file = Native.class.getResource("linux-x86-64/" + name).openConnection();
            file.setUseCaches(false);
            version.append('-').append(Long.toHexString(file.getContentLengthLong()));
            version.append('-').append(Long.toHexString(file.getLastModified()));
            file.getInputStream().close();
        }
        return version.toString();
    }
}

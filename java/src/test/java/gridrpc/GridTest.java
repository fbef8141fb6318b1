package gridrpc;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;

/** Calls of the functions that the tests of the C library call, tests/capi/modules/cases.idl. */
@Timeout(120)
class GridTest {
    private static Grid grid;

    @BeforeAll
    static void open() throws IOException, InterruptedException {
        Path modules = Files.createDirectories(Path.of(System.getenv("GRIDRPC_MODULE_PATH")));
        Path idl = Path.of("../tests/capi/modules/cases.idl").toAbsolutePath();
        if (!Files.exists(modules.resolve("cases.so"))) {
            Process compiler = new ProcessBuilder(System.getProperty("gridrpc.prefix") + "/bin/gridrpc", "compile", idl.toString())
                    .directory(modules.toFile())
                    .inheritIO()
                    .start();
            assertEquals(0, compiler.waitFor());
        }
        grid = Grid.open();
    }

    @AfterAll
    static void close() {
        grid.close();
        // Once more has no effect.
        grid.close();
    }

    private static int add(int a, int b) {
        int[] sum = new int[1];
        try (Function add = grid.function("cases/add")) {
            add.call(a, b, sum);
        }
        return sum[0];
    }

    // ---- Arguments

    @Test
    void parametersAreThoseOfTheInterface() {
        try (Function scale = grid.function("cases/scale")) {
            assertEquals("cases/scale", scale.toString());
            assertEquals(
                    List.of(
                            new Parameter("n", Parameter.Mode.IN, Parameter.Type.LONG, false, false),
                            new Parameter("by", Parameter.Mode.IN, Parameter.Type.DOUBLE, false, false),
                            new Parameter("x", Parameter.Mode.INOUT, Parameter.Type.DOUBLE, true, false)),
                    scale.parameters());
        }
    }

    @Test
    void arraysGoInAndComeBack() {
        double[] a = {1, 2, 3, 4};
        double[] b = {0, 1, 1, 0};
        double[] c = new double[4];
        try (Function mmul = grid.function("cases/mmul")) {
            mmul.call(2, a, b, c);
        }
        assertArrayEquals(new double[] {2, 1, 4, 3}, c);
        assertArrayEquals(new double[] {1, 2, 3, 4}, a);
    }

    @Test
    void largeArraysTravelInSharedMemory() {
        double[] x = IntStream.range(0, 100_000).asDoubleStream().toArray();
        try (Function scale = grid.function("cases/scale")) {
            scale.call((long) x.length, 2.0, x);
        }
        assertEquals(0, x[0]);
        assertEquals(2.0 * 99_999, x[99_999]);
    }

    @Test
    void directBuffersArePassedFromPositionToLimit() {
        for (DoubleBuffer x : List.of(
                grid.allocateDoubles(5),
                ByteBuffer.allocateDirect(40).order(ByteOrder.nativeOrder()).asDoubleBuffer())) {
            x.put(new double[] {1, 2, 3, 4, 5}).position(1).limit(4);
            try (Function scale = grid.function("cases/scale")) {
                scale.call(3, 10, x);
            }
            assertEquals(1, x.position());
            double[] all = new double[5];
            x.clear().get(all);
            assertArrayEquals(new double[] {1, 20, 30, 40, 5}, all);
        }
    }

    @Test
    void buffersThatCannotBePassedAreRefused() {
        try (Function scale = grid.function("cases/scale")) {
            for (DoubleBuffer wrong : List.of(
                    DoubleBuffer.allocate(3),
                    ByteBuffer.allocateDirect(24).order(ByteOrder.BIG_ENDIAN).asDoubleBuffer(),
                    grid.allocateDoubles(3).asReadOnlyBuffer(),
                    grid.allocateDoubles(4))) {
                assertThrows(RuntimeException.class, () -> scale.call(3, 1, wrong));
            }
        }
    }

    @Test
    void lengthsAreCompared() {
        double[] x = {1, 2, 3};
        try (Function scale = grid.function("cases/scale")) {
            GridRpcException error = assertThrows(GridRpcException.class, () -> scale.call(4, 2, x));
            assertEquals(GridRpcException.Code.OTHER, error.code());
            assertTrue(error.detail().contains("has 3 elements, but has to have 4"), error.detail());
            assertThrows(GridRpcException.class, () -> scale.submit(2, 2, x));
        }
        try (Function join = grid.function("cases/join")) {
            GridRpcException error = assertThrows(
                    GridRpcException.class, () -> join.call(3, new String[] {"a", "b"}, new String[1]));
            assertTrue(error.detail().contains("has 2 elements, but has to have 3"), error.detail());
        }
        assertArrayEquals(new double[] {1, 2, 3}, x);
    }

    @Test
    void argumentsThatDoNotFitAreNamed() {
        try (Function scale = grid.function("cases/scale");
                Function numbers = grid.function("cases/numbers");
                Function greet = grid.function("cases/greet")) {
            List<Object[]> wrong = List.of(
                    new Object[] {1, 2},
                    new Object[] {1.5, 2, new double[1]},
                    new Object[] {null, 2, new double[1]},
                    new Object[] {1, "2", new double[1]},
                    new Object[] {1, 2, new float[1]},
                    new Object[] {1, 2, new long[1]},
                    new Object[] {1, 2, new double[1][1]},
                    new Object[] {1, 2, 3.0},
                    new Object[] {1, 2, null});
            for (Object[] arguments : wrong) {
                IllegalArgumentException error =
                        assertThrows(IllegalArgumentException.class, () -> scale.call(arguments));
                assertTrue(error.getMessage().contains("cases/scale"), error.getMessage());
            }
            assertThrows(IllegalArgumentException.class, () -> greet.call("you", "an output is a String[1]"));
            assertThrows(IllegalArgumentException.class, () -> greet.call("you", new String[2]));
            Object[] tooLarge = new Object[numbers.parameters().size()];
            java.util.Arrays.fill(tooLarge, 300);
            IllegalArgumentException error =
                    assertThrows(IllegalArgumentException.class, () -> numbers.call(tooLarge));
            assertTrue(error.getMessage().contains("does not fit in a char"), error.getMessage());
        }
    }

    @Test
    void textsGoInAndComeBack() {
        String[] text = new String[1];
        try (Function greet = grid.function("cases/greet");
                Function turn = grid.function("cases/turn");
                Function join = grid.function("cases/join")) {
            greet.call("Jürgen", text);
            assertTrue(text[0].contains("Jürgen"), text[0]);
            text[0] = "abc";
            turn.call((Object) text);
            assertEquals("cba", text[0]);
            join.call(3, new String[] {"x", "", "yz"}, text);
            assertTrue(text[0].contains("x") && text[0].contains("yz"), text[0]);
        }
    }

    @Test
    void filesTravel(@TempDir Path folder) throws IOException {
        Path from = Files.writeString(folder.resolve("from"), "some text");
        Path to = folder.resolve("to");
        try (Function upper = grid.function("cases/upper")) {
            upper.call(from.toString(), to.toString());
        }
        assertEquals("SOME TEXT", Files.readString(to));
    }

    // ---- Calls

    @Test
    void callsCompleteAsFutures() {
        List<int[]> sums = new ArrayList<>();
        try (Function add = grid.function("cases/add")) {
            List<Call> calls = new ArrayList<>();
            for (int number = 0; number < 200; number++) {
                int[] sum = new int[1];
                sums.add(sum);
                calls.add(add.submit(number, 1, sum));
            }
            CompletableFuture.allOf(calls.toArray(Call[]::new)).join();
        }
        for (int number = 0; number < 200; number++) {
            assertEquals(number + 1, sums.get(number)[0]);
        }
    }

    @Test
    void callsCanBeComposed() {
        int[] sum = new int[1];
        try (Function add = grid.function("cases/add")) {
            assertEquals(7, add.submit(3, 4, sum).thenApplyAsync(ended -> sum[0]).join());
        }
    }

    @Test
    void threadsCallAtOnce() throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(8);
        try {
            List<Future<Integer>> sums = new ArrayList<>();
            for (int number = 0; number < 64; number++) {
                int a = number;
                sums.add(threads.submit(() -> add(a, a)));
            }
            for (int number = 0; number < 64; number++) {
                assertEquals(2 * number, sums.get(number).get());
            }
        } finally {
            threads.shutdown();
        }
    }

    @Test
    void aCallCanBeCancelled() {
        try (Function nap = grid.function("cases/nap")) {
            Call call = nap.submit(60);
            assertFalse(call.isDone());
            assertTrue(call.cancel(true));
            assertThrows(CancellationException.class, call::join);
        }
        assertEquals(3, add(1, 2));
    }

    @Test
    void allCallsCanBeCancelled() {
        try (Function nap = grid.function("cases/nap")) {
            Call call = nap.submit(60);
            grid.cancelAll();
            GridRpcException error = failure(call);
            assertEquals(GridRpcException.Code.CANCELED, error.code());
        }
    }

    private static GridRpcException failure(Call call) {
        return (GridRpcException) assertThrows(CompletionException.class, call::join).getCause();
    }

    // ---- Errors

    @Test
    void lossesAreReportedWithTheirCause() {
        try (Function segfault = grid.function("cases/segfault")) {
            GridRpcException error = assertThrows(GridRpcException.class, segfault::call);
            assertEquals(GridRpcException.Code.COMMUNICATION_FAILED, error.code());
            assertTrue(error.detail().contains("SIGSEGV"), error.detail());
            assertEquals(error.code(), failure(segfault.submit()).code());
        }
    }

    @Test
    void unknownNamesAreErrors() {
        GridRpcException error = assertThrows(GridRpcException.class, () -> grid.function("cases/nothing_like_it"));
        assertEquals(GridRpcException.Code.FUNCTION_NOT_FOUND, error.code());
        error = assertThrows(GridRpcException.class, () -> grid.object("cases/Nothing"));
        assertEquals(GridRpcException.Code.CLASS_NOT_FOUND, error.code());
        error = assertThrows(GridRpcException.class, () -> grid.function("cases/add", "no-such-server.invalid"));
        assertEquals(GridRpcException.Code.SERVER_NOT_FOUND, error.code());
    }

    @Test
    void aSecondGridIsRefused() {
        GridRpcException error = assertThrows(GridRpcException.class, Grid::open);
        assertEquals(GridRpcException.Code.ALREADY_INITIALIZED, error.code());
        assertEquals(3, add(1, 2));
    }

    @Test
    void aClosedFunctionIsAnError() {
        Function add = grid.function("cases/add");
        add.close();
        GridRpcException error = assertThrows(GridRpcException.class, () -> add.call(1, 2, new int[1]));
        assertEquals(GridRpcException.Code.INVALID_FUNCTION_HANDLE, error.code());
    }

    // ---- Objects

    @Test
    void objectsKeepTheirState() {
        int[] now = new int[1];
        try (RemoteObject counter = grid.object("cases/Counter")) {
            counter.call("add", 5, now);
            List<Call> calls = new ArrayList<>();
            for (int number = 0; number < 10; number++) {
                calls.add(counter.submit("add", 1, new int[1]));
            }
            calls.forEach(Call::join);
            counter.call("get", (Object) now);
            assertEquals(115, now[0]);
            assertEquals(2, counter.parameters("add").size());
            GridRpcException error = assertThrows(GridRpcException.class, () -> counter.call("subtract", 1));
            assertEquals(GridRpcException.Code.FUNCTION_NOT_FOUND, error.code());
            assertThrows(GridRpcException.class, () -> counter.call("die"));
            assertThrows(GridRpcException.class, () -> counter.call("get", (Object) now));
        }
    }

    // ---- Callbacks

    @Test
    void functionsCallBack() {
        Callback square = Callback.of(
                arguments -> {
                    double x = arguments.doubles(0, 1).get(0);
                    arguments.doubles(1, 1).put(0, x * x);
                },
                double[].class,
                double[].class);
        double[] sum = new double[1];
        try (Function integrate = grid.function("cases/integrate")) {
            integrate.call(100, sum, square);
            assertEquals(1.0 / 3, sum[0], 1e-4);
            sum[0] = 0;
            integrate.submit(100, sum, square).join();
            assertEquals(1.0 / 3, sum[0], 1e-4);
        }
    }

    @Test
    void callbacksTakeNumbersByValue() {
        List<Object> seen = new ArrayList<>();
        Callback body = Callback.of(
                arguments -> {
                    for (int index = 0; index < 3; index++) {
                        seen.add(arguments.number(index));
                    }
                    arguments.doubles(3, 2).put(0, 1.5);
                },
                int.class,
                double.class,
                float.class,
                double[].class);
        double[] sum = new double[1];
        try (Function mixed = grid.function("cases/mixed")) {
            mixed.call(sum, body);
        }
        assertEquals(List.of(7, 0.5, 0.25f), seen);
        assertEquals(21.5, sum[0]);
    }

    @Test
    void whatACallbackThrowsEndsTheCall() {
        IllegalStateException thrown = new IllegalStateException("on purpose");
        Callback body = Callback.of(arguments -> {
            throw thrown;
        });
        try (Function tick = grid.function("cases/tick")) {
            GridRpcException error = assertThrows(GridRpcException.class, () -> tick.call(2, body));
            assertSame(thrown, error.getCause());
            assertSame(thrown, failure(tick.submit(2, body)).getCause());
        }
        assertThrows(IllegalArgumentException.class, () -> Callback.of(arguments -> {}, Object.class));
    }

    // ---- Memory

    @Test
    void memoryOfManyCallsIsFreed() throws IOException {
        double[] x = new double[20_000];
        try (Function scale = grid.function("cases/scale"); Function greet = grid.function("cases/greet")) {
            long before = 0;
            for (int number = 0; number < 1_200; number++) {
                if (number == 200) {
                    before = resident();
                }
                scale.call((long) x.length, 1.0, x);
                scale.submit((long) x.length, 1.0, x).join();
                greet.call("you", new String[1]);
            }
            // What a thousand calls would have left behind: 300 MB.
            assertTrue(resident() - before < 100_000_000, before + " bytes, then " + resident());
        }
    }

    private static long resident() throws IOException {
        System.gc();
        return Long.parseLong(Files.readString(Path.of("/proc/self/statm")).split(" ")[1]) * 4096;
    }

    @Test
    void workersRunInOtherProcesses() {
        int[] pid = new int[1];
        try (Function whoami = grid.function("cases/whoami")) {
            whoami.call((Object) pid);
        }
        assertNotEquals(ProcessHandle.current().pid(), pid[0]);
    }
}

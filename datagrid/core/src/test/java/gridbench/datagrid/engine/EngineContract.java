package gridbench.datagrid.engine;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import gridbench.datagrid.Cluster;
import gridbench.datagrid.DataGrid;
import gridbench.datagrid.Store;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestMethodOrder;

/**
 * What each data grid has to keep to, tried with three members in JVMs of their own and a client in
 * this one. A module tests its engine by a class that extends this one; its engine.toml tells the rest.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
public abstract class EngineContract {
    private static final String ADDRESS = "127.0.0.1";
    private static final int MEMBERS = 3;
    private static final int OBJECTS = 1000;
    private static final int SIZE = 1024;
    private static final long MEMORY = 160L << 20;
    private static final long SETTLE_SECONDS = 30;

    private final List<MemberUnderTest> members = new ArrayList<>();
    private EngineFile engine;
    private Cluster cluster;
    private Store store;

    @BeforeAll
    void start() throws Exception {
        engine = new EngineFile(Path.of("engine.toml"));
        cluster = cluster(MEMBERS);
        for (var index = 0; index < MEMBERS; index++) {
            members.add(new MemberUnderTest(engine, cluster, index, MEMORY));
            if (index == 0 && engine.firstAlone()) {
                members.get(0).joined();
            }
        }
        for (var member : members.subList(engine.firstAlone() ? 1 : 0, MEMBERS)) {
            member.joined();
        }
        store = grid().connect(cluster, ADDRESS);
    }

    @AfterAll
    void end() throws Exception {
        if (store != null) {
            store.close();
        }
        members.forEach(MemberUnderTest::close);
        remove(cluster.folder());
    }

    @BeforeEach
    void load() throws Exception {
        store.clear();
        var objects = new HashMap<Long, byte[]>();
        for (var key : keys()) {
            objects.put(key, value(key, 0));
        }
        store.putAll(objects);
    }

    @Test
    @Order(1)
    void objectsAreReadAsTheyWereStored() throws Exception {
        assertEquals(OBJECTS, store.size());
        var all = store.getAll(keys());
        assertEquals(OBJECTS, all.size());
        for (var key : keys()) {
            assertArrayEquals(value(key, 0), store.get(key));
            assertArrayEquals(value(key, 0), all.get(key));
        }
        assertNull(store.get(OBJECTS));
        assertEquals(Map.of(), store.getAll(List.of((long) OBJECTS, -1L)));
    }

    @Test
    @Order(1)
    void whatIsReadIsTheCallersOwn() throws Exception {
        var first = store.get(7);
        assertNotSame(first, store.get(7));
        first[0]++;
        assertArrayEquals(value(7, 0), store.get(7));
    }

    @Test
    @Order(1)
    void whatWasPutMayBeChangedAfterwards() throws Exception {
        var mine = value(7, 1);
        store.put(7, mine);
        mine[0]++;
        assertArrayEquals(value(7, 1), store.get(7));
    }

    @Test
    @Order(1)
    void anObjectIsReplacedOnlyIfItIsAsExpected() throws Exception {
        assertTrue(store.replace(7, value(7, 0), value(7, 1)));
        assertArrayEquals(value(7, 1), store.get(7));
        assertFalse(store.replace(7, value(7, 0), value(7, 2)));
        assertArrayEquals(value(7, 1), store.get(7));
        assertFalse(store.replace(OBJECTS, value(OBJECTS, 0), value(OBJECTS, 1)));
        assertNull(store.get(OBJECTS));
    }

    @Test
    @Order(1)
    void objectsAreOverwrittenInsertedAndRemoved() throws Exception {
        store.put(7, value(7, 1));
        store.put(-1, value(-1, 0));
        store.put(Long.MAX_VALUE, new byte[0]);
        assertEquals(OBJECTS + 2, store.size());
        assertArrayEquals(value(7, 1), store.get(7));
        assertArrayEquals(value(-1, 0), store.get(-1));
        assertArrayEquals(new byte[0], store.get(Long.MAX_VALUE));
        store.remove(List.of(-1L, Long.MAX_VALUE, 7L, -2L));
        assertEquals(OBJECTS - 1, store.size());
        assertNull(store.get(7));
        store.clear();
        assertEquals(0, store.size());
    }

    @Test
    @Order(1)
    void aLargeObjectIsStored() throws Exception {
        var large = new byte[10_000_000];
        new Random(1).nextBytes(large);
        store.put(OBJECTS, large);
        assertArrayEquals(large, store.get(OBJECTS));
    }

    @Test
    @Order(1)
    void membersShareTheObjectsAndTheirCopies() throws Exception {
        settled("copies of all objects", () -> {
            long entries = 0;
            long backups = 0;
            for (var member : members) {
                var state = member.state();
                assertEquals(MEMBERS, state.get("members").getAsInt());
                assertTrue(state.get("used").getAsLong() > OBJECTS * SIZE / MEMBERS);
                assertTrue(state.get("entries").getAsLong() > OBJECTS / MEMBERS / 3, state::toString);
                entries += state.get("entries").getAsLong();
                backups += state.get("backups").getAsLong();
            }
            assertEquals(OBJECTS, entries);
            return backups == OBJECTS || backups == -MEMBERS;
        });
    }

    @Test
    @Order(1)
    void membersListenAtTheirOwnPortsOnly() throws Exception {
        for (var index = 0; index < MEMBERS; index++) {
            var place = cluster.members().get(index);
            var allowed = new ArrayList<InetSocketAddress>();
            for (var port : place.ports()) {
                allowed.add(new InetSocketAddress(InetAddress.getByName(place.address()), port));
            }
            var listening = Listening.of(members.get(index).process());
            assertFalse(listening.isEmpty());
            assertTrue(allowed.containsAll(listening), () -> "listens at " + listening + ", may at " + allowed);
        }
    }

    @Test
    @Order(2)
    void aPortThatIsTakenIsToldAsSuch() throws Exception {
        var started = new ArrayList<AutoCloseable>();
        var alone = new ArrayList<MemberUnderTest>();
        try {
            for (var port = 0; port < engine.ports(); port++) {
                var other = cluster(MEMBERS);
                var place = other.members().get(0);
                var taken = new ServerSocket();
                taken.bind(new InetSocketAddress(place.address(), place.ports().get(port)));
                var member = new MemberUnderTest(engine, other, 0, MEMORY);
                started.addAll(0, List.of(member, taken, () -> remove(other.folder())));
                alone.add(member);
            }
            for (var member : alone) {
                var failure = member.failed();
                assertTrue(failure.get("port").getAsBoolean(), failure::toString);
            }
        } finally {
            for (var one : started) {
                one.close();
            }
        }
    }

    @Test
    @Order(3)
    void nothingIsLostWithOneMember() throws Exception {
        // Copies may be written behind the answer where a product works so, and says so.
        settled("copies of all objects", () -> {
            long backups = 0;
            for (var member : members) {
                backups += member.state().get("backups").getAsLong();
            }
            return backups == OBJECTS || backups == -MEMBERS;
        });
        var children = members.remove(1).kill();
        for (var child : children) {
            child.onExit().get(SETTLE_SECONDS, TimeUnit.SECONDS);
        }
        for (var key : keys()) {
            var found = new byte[1][];
            settled("object " + key, () -> {
                found[0] = store.get(key);
                return true;
            });
            assertArrayEquals(value(key, 0), found[0], "object " + key);
        }
        settled("the number of objects", () -> store.size() == OBJECTS);
        settled("objects on the other members", () -> {
            long entries = 0;
            for (var member : members) {
                entries += member.state().get("entries").getAsLong();
            }
            return entries == OBJECTS;
        });
        for (var key : keys()) {
            assertTrue(store.replace(key, value(key, 0), value(key, 1)));
        }
        store.put(OBJECTS, value(OBJECTS, 0));
        assertEquals(OBJECTS + 1, store.size());
        assertArrayEquals(value(1, 1), store.get(1));
    }

    /** Tries again, as long as it fails or is not so, until the cluster has had time to settle. */
    private static void settled(String what, Callable<Boolean> holds) throws Exception {
        var until = System.nanoTime() + TimeUnit.SECONDS.toNanos(SETTLE_SECONDS);
        Exception last = null;
        while (System.nanoTime() < until) {
            try {
                if (holds.call()) {
                    return;
                }
            } catch (Exception failure) {
                last = failure;
            }
            Thread.sleep(20);
        }
        throw new AssertionError(what + ": not so within " + SETTLE_SECONDS + " s", last);
    }

    private DataGrid grid() throws ReflectiveOperationException {
        return (DataGrid) Class.forName(engine.type()).getConstructor().newInstance();
    }

    private Cluster cluster(int size) throws Exception {
        var folder = Files.createTempDirectory("datagrid-test-");
        var ports = freePorts(size * engine.ports());
        var places = new ArrayList<Cluster.Place>();
        for (var index = 0; index < size; index++) {
            var mine = ports.subList(index * engine.ports(), (index + 1) * engine.ports());
            places.add(new Cluster.Place(ADDRESS, List.copyOf(mine)));
        }
        return new Cluster(folder.getFileName().toString(), 1, places, folder);
    }

    /** Ports below those that Linux gives to connections, so that none is taken before its member binds to it. */
    private static List<Integer> freePorts(int count) throws Exception {
        var random = new Random();
        var held = new ArrayList<ServerSocket>();
        try {
            while (held.size() < count) {
                var socket = new ServerSocket();
                try {
                    socket.bind(new InetSocketAddress(ADDRESS, 16_000 + random.nextInt(16_000)));
                    held.add(socket);
                } catch (java.net.BindException taken) {
                    socket.close();
                }
            }
            return held.stream().map(ServerSocket::getLocalPort).toList();
        } finally {
            for (var socket : held) {
                socket.close();
            }
        }
    }

    private static List<Long> keys() {
        return LongStream.range(0, OBJECTS).boxed().toList();
    }

    private static byte[] value(long key, int version) {
        var bytes = new byte[SIZE];
        new Random(key * 31 + version).nextBytes(bytes);
        return bytes;
    }

    private static void remove(Path folder) throws Exception {
        try (var files = Files.walk(folder)) {
            for (var file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        }
    }
}

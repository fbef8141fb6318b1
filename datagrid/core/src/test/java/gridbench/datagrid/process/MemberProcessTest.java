package gridbench.datagrid.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class MemberProcessTest {
    @TempDir
    private Path folder;

    private String settings(String name, int index) {
        return "{'engine': '" + TestGrid.class.getName() + "', 'cluster': {'name': '" + name
                + "', 'backups': 1, 'folder': '" + folder + "', 'members': [{'address': '127.0.0.1',"
                + " 'ports': [4000, 4001]}, {'address': '127.0.0.1', 'ports': [4002, 4003]}]},"
                + " 'index': " + index + ", 'memory': 1000000}";
    }

    private Talk joined() throws Exception {
        var talk = new Talk(MemberProcess.class);
        var joined = talk.ask(settings("c", 1)).getAsJsonObject("joined");
        assertEquals(talk.process.pid(), joined.get("pid").getAsLong());
        assertEquals("1.2.3", joined.get("version").getAsString());
        return talk;
    }

    /** The program that the member has started. */
    private static ProcessHandle program(Talk talk) throws Exception {
        var state = talk.ask("{'do': 'state'}").getAsJsonObject("state");
        assertEquals(2, state.get("members").getAsInt());
        assertEquals(-1, state.get("backups").getAsInt());
        assertTrue(state.get("used").getAsLong() > 0);
        return ProcessHandle.of(state.get("entries").getAsLong()).orElseThrow();
    }

    @Test
    void anOrderlyEndClosesTheMember() throws Exception {
        try (var talk = joined()) {
            var program = program(talk);
            assertTrue(talk.failure("{'do': 'load'}").contains("a member cannot do `load`"));
            assertTrue(talk.failure("nothing").contains("not"));
            talk.send("{'do': 'end'}");
            assertEquals(0, talk.exitCode());
            program.onExit().get(60, TimeUnit.SECONDS);
            assertTrue(Files.exists(folder.resolve("closed")));
        }
    }

    @Test
    void theEndOfInputLeavesNothingBehind() throws Exception {
        try (var talk = joined()) {
            var program = program(talk);
            talk.endInput();
            assertEquals(0, talk.exitCode());
            program.onExit().get(60, TimeUnit.SECONDS);
            assertFalse(Files.exists(folder.resolve("closed")));
        }
    }

    @Test
    void aPortThatIsTakenIsTold() throws Exception {
        try (var talk = new Talk(MemberProcess.class)) {
            assertEquals(
                    "{\"failed\":{\"what\":\"IOException: cannot listen, caused by BindException: Address"
                            + " already in use\",\"port\":true}}",
                    talk.ask(settings("taken", 0)).toString());
            assertEquals(1, talk.exitCode());
        }
    }

    @Test
    void aMemberThatIsNotInTheClusterIsRefused() throws Exception {
        try (var talk = new Talk(MemberProcess.class)) {
            assertTrue(talk.failure(settings("c", 2)).contains("the cluster has 2 members"));
            assertEquals(1, talk.exitCode());
        }
    }
}

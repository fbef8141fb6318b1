package gridbench.datagrid.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonParser;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ClientProcessTest {
    private static final String SETTINGS = "{'engine': '" + TestGrid.class.getName() + "', 'cluster':"
            + " {'name': 'c', 'backups': 0, 'folder': '/tmp', 'members': []}, 'address': '127.0.0.1',"
            + " 'clients': 2}";

    private static final String PLAN = "{'parameters': {'NNodes': 2, 'MNodes': 0, 'NTasks': 10,"
            + " 'NRepeats': 2, 'ReadDataSize': 3, 'UpdateDataSize': 1, 'WriteDataSize': 2,"
            + " 'NObjects': 100, 'size': 64, 'SharedDataSize': 2, 'ProcessTime': 10, 'SleepTime': 0},"
            + " 'clients': {'all': 2, 'first': 0, 'count': 2}, 'loop': 'closed', 'updates': 'atomic',"
            + " 'mix': null, 'warm': {'least': 0, 'most': 0.1, 'window': 0.01, 'within': 0.1},"
            + " 'window': 0.1}";

    /** A request for a run, in which some fields of the plan, or of its parameters, are others. */
    private static String plan(String others) {
        var plan = JsonParser.parseString(PLAN).getAsJsonObject();
        var parameters = plan.getAsJsonObject("parameters");
        JsonParser.parseString("{" + others + "}").getAsJsonObject().entrySet().forEach(other ->
                (parameters.has(other.getKey()) ? parameters : plan).add(other.getKey(), other.getValue()));
        return "{'do': 'run', 'plan': " + plan + "}";
    }

    private static Talk connected() throws Exception {
        var talk = new Talk(ClientProcess.class);
        var connected = talk.ask(SETTINGS).getAsJsonObject("connected");
        assertEquals(talk.process.pid(), connected.get("pid").getAsLong());
        assertEquals("1.2.3", connected.get("version").getAsString());
        assertTrue(connected.get("seconds").getAsDouble() >= 0);
        return talk;
    }

    private static void load(Talk talk, long last) throws Exception {
        var loaded = talk.ask("{'do': 'load', 'first': 0, 'last': " + last
                + ", 'size': 64, 'batch': 6400}").getAsJsonObject("loaded");
        assertEquals(last, loaded.get("objects").getAsLong());
        assertEquals(64 * last, loaded.get("bytes").getAsLong());
    }

    private static long size(Talk talk) throws Exception {
        return talk.ask("{'do': 'size'}").get("size").getAsLong();
    }

    @Test
    void aRunFromLoadingToTheEnd() throws Exception {
        try (var talk = connected()) {
            load(talk, 102);
            var warm = talk.ask(plan("")).getAsJsonObject("warm");
            assertEquals(
                    Set.of("cold", "seconds", "steady", "operations", "rates", "errors"), warm.keySet());
            var at = talk.ask("{'do': 'clock'}").get("clock").getAsLong();
            var ran = talk.ask("{'do': 'go', 'at': " + at + "}").getAsJsonObject("ran");
            assertEquals(
                    Set.of("tasks", "latencies", "windows", "counts", "wrong", "missing", "errors",
                            "in_doubt", "doubtful", "conflicts", "process", "ended"),
                    ran.keySet());
            assertEquals(
                    "{\"reads\":60,\"updates\":20,\"inserts\":40,\"overwrites\":0,\"scans\":0,\"shared\":20}",
                    ran.get("counts").toString());
            for (var field : new String[] {"id", "client", "began", "ended", "operations", "why"}) {
                assertEquals(10, ran.getAsJsonObject("tasks").getAsJsonArray(field).size());
            }
            assertEquals(142, size(talk));
            assertEquals(
                    "{\"checked\":{\"read\":142,\"missing\":0,\"wrong\":0,\"updates\":20}}",
                    talk.ask("{'do': 'check', 'first': 0, 'last': 142, 'size': 64}").toString());
            assertEquals("{\"removed\":true}", talk.ask("{'do': 'remove', 'first': 102, 'last': 142}").toString());
            assertEquals(102, size(talk));

            var open = talk.ask(plan("'loop': 'open', 'rate': 10000"));
            assertTrue(open.has("warm"), open.toString());
            assertTrue(talk.ask("{'do': 'go', 'at': " + at + "}").toString().contains("\"from\":\"intended\""));

            var bare = talk.ask("{'do': 'bare', 'operations': 1000, 'size': 64, 'first': 0,"
                    + " 'last': 100, 'warm': 100}").getAsJsonObject("bare");
            var measured = 0L;
            for (var count : bare.getAsJsonArray("counts")) {
                measured += count.getAsLong();
            }
            assertEquals(1000, measured);
            assertEquals(bare.getAsJsonArray("counts").size(), bare.getAsJsonArray("values").size());

            assertEquals("{\"cleared\":true}", talk.ask("{'do': 'clear'}").toString());
            assertEquals(0, size(talk));
            talk.send("{'do': 'end'}");
            assertEquals(0, talk.exitCode());
        }
    }

    @Test
    void aMixIsRun() throws Exception {
        try (var talk = connected()) {
            load(talk, 102);
            var mix = "'mix': {'read': 0.5, 'overwrite': 0, 'update': 0.25,"
                    + " 'insert': 0.25, 'scan': 0, 'keys': 'latest', 'scan_length': 10, 'seed': -1}";
            assertTrue(talk.ask(plan(mix)).has("warm"));
            var counts = talk.ask("{'do': 'go', 'at': 0}").getAsJsonObject("ran").getAsJsonObject("counts");
            assertEquals(102 + counts.get("inserts").getAsLong(), size(talk));
            assertEquals(
                    120,
                    counts.get("reads").getAsLong()
                            + counts.get("updates").getAsLong()
                            + counts.get("inserts").getAsLong());
        }
    }

    @Test
    void theEndOfInputEndsARunAtOnce() throws Exception {
        try (var talk = connected()) {
            load(talk, 102);
            talk.ask(plan("'SleepTime': 1000, 'warm': {'least': 0, 'most': 0, 'window': 1, 'within': 1}"));
            talk.send("{'do': 'go', 'at': 0}");
            var progress = talk.read();
            assertEquals(0, progress.get("done").getAsLong());
            assertTrue(progress.has("operations"));
            talk.endInput();
            // It may still be about to tell its progress.
            talk.readToEnd();
            assertEquals(0, talk.exitCode());
        }
    }

    @Test
    void badRequestsAreAnsweredAndTheProcessGoesOn() throws Exception {
        try (var talk = connected()) {
            assertEquals(
                    "BadRequest: a line is not JSON: `{\"do\": `",
                    talk.failure("{'do': ").replaceFirst(", caused by .*", ""));
            assertTrue(talk.failure("[1]").contains("is not a JSON object"));
            assertTrue(talk.failure("{'do': 'dance'}").contains("cannot do `dance`"));
            assertTrue(talk.failure("{}").contains("`do` is missing"));
            assertTrue(talk.failure("{'do': 'load', 'first': 3, 'last': 2, 'size': 64, 'batch': 1}")
                    .contains("`last` has to be a whole number of at least 3, and is 2"));
            assertTrue(talk.failure("{'do': 'check', 'first': 0, 'last': 2, 'size': 8}")
                    .contains("`size` has to be a whole number of at least 32"));
            assertTrue(talk.failure("{'do': 'bare', 'first': 0, 'last': 2, 'size': 64, 'operations': 1, 'warm': 0}")
                    .contains("the object with key 0 is missing"));
            assertEquals(0, size(talk));
        }
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            'loop': 'round'               | `plan.loop` has to be one of closed, open, and is "round"
            'loop': 'open'                | `plan.rate` is missing
            'loop': 'open', 'rate': 0     | `plan.rate` has to be a number above 0
            'window': 0 | `plan.window` has to be a number of at least 0.001
            'clients': {'all': 3, 'first': 0, 'count': 3} | started for 2 clients
            'clients': {'all': 3, 'first': 2, 'count': 2} | are not among 3
            'NObjects': 0 | NObjects has to be at least 1
            'NTasks': 1.5 | `plan.parameters.NTasks` has to be a whole number of at least 0, and is 1.5
            """, quoteCharacter = '~')
    void badPlansAreRefused(String more, String wanted) throws Exception {
        try (var talk = connected()) {
            var failure = talk.failure(plan(more));
            assertTrue(failure.contains(wanted), failure);
        }
    }

    @Test
    void whatIsNotGoGivesTheRunUp() throws Exception {
        try (var talk = connected()) {
            load(talk, 102);
            talk.ask(plan(""));
            assertTrue(talk.failure("{'do': 'size'}").contains("`do` has to be one of go, clock, end"));
            assertEquals(102, size(talk));
            talk.ask(plan(""));
            talk.send("{'do': 'end'}");
            assertEquals(0, talk.exitCode());
        }
    }

    @Test
    void badSettingsEndTheProcess() throws Exception {
        for (var settings : new String[] {
            SETTINGS.replace("TestGrid", "NoGrid"), SETTINGS.replace("TestGrid", "Talk"), "{}", "{"
        }) {
            try (var talk = new Talk(ClientProcess.class)) {
                var failure = talk.failure(settings);
                assertFalse(failure.isBlank());
                assertEquals(!settings.contains("engine"), !failure.contains("the engine's class"), failure);
                assertEquals(1, talk.exitCode());
            }
        }
    }
}

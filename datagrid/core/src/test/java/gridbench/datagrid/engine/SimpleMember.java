package gridbench.datagrid.engine;

import com.google.gson.Gson;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import gridbench.datagrid.Cluster;
import gridbench.datagrid.DataGrid;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.BindException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** A member's process as the tests start it: lines of JSON in, lines of JSON out. */
final class SimpleMember {
    private SimpleMember() {}

    public static void main(String[] arguments) throws Exception {
        var answers = System.out;
        System.setOut(System.err);
        var requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var settings = JsonParser.parseString(requests.readLine()).getAsJsonObject();
        try {
            serve(settings, requests, answers);
        } catch (Exception failure) {
            failure.printStackTrace();
            answer(answers, "failed", Map.of("what", failure.toString(), "port", portTaken(failure)));
        }
        Runtime.getRuntime().halt(0);
    }

    private static void serve(JsonObject settings, BufferedReader requests, PrintStream answers) throws Exception {
        var cluster = cluster(settings.getAsJsonObject("cluster"));
        var grid = (DataGrid) Class.forName(settings.get("engine").getAsString()).getConstructor().newInstance();
        var began = System.nanoTime();
        try (var member = grid.join(cluster, settings.get("index").getAsInt(), settings.get("memory").getAsLong())) {
            var seconds = (System.nanoTime() - began) / 1e9;
            answer(answers, "joined", Map.of("seconds", seconds, "version", grid.version()));
            for (var line = requests.readLine(); line != null; line = requests.readLine()) {
                if (line.contains("\"end\"")) {
                    return;
                }
                answer(answers, "state", Map.of(
                        "members", member.members(), "entries", member.entries(),
                        "backups", member.backups(), "used", member.used()));
            }
            Runtime.getRuntime().halt(0);
        }
    }

    private static Cluster cluster(JsonObject from) {
        var members = new ArrayList<Cluster.Place>();
        for (var one : from.getAsJsonArray("members")) {
            var ports = new ArrayList<Integer>();
            one.getAsJsonObject().getAsJsonArray("ports").forEach(port -> ports.add(port.getAsInt()));
            members.add(new Cluster.Place(one.getAsJsonObject().get("address").getAsString(), ports));
        }
        return new Cluster(
                from.get("name").getAsString(), from.get("backups").getAsInt(),
                List.copyOf(members), Path.of(from.get("folder").getAsString()));
    }

    private static boolean portTaken(Throwable failure) {
        for (var cause = failure; cause != null; cause = cause.getCause()) {
            var message = String.valueOf(cause.getMessage()).toLowerCase();
            if (cause instanceof BindException || message.contains("address already in use")) {
                return true;
            }
        }
        return false;
    }

    private static void answer(PrintStream to, String what, Object value) {
        to.println(new Gson().toJson(Map.of(what, value)));
        to.flush();
    }
}

package gridbench.datagrid.engine;

import com.google.gson.Gson;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import gridbench.datagrid.Cluster;
import gridbench.datagrid.process.MemberProcess;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** A member in a JVM of its own. */
final class MemberUnderTest implements AutoCloseable {
    private static final long ANSWER_SECONDS = 60;

    private final Process process;
    private final PrintStream requests;
    private final BufferedReader answers;
    private final Path log;

    MemberUnderTest(EngineFile engine, Cluster cluster, int index, long memory) throws IOException {
        log = cluster.folder().resolve("member-" + index + ".log");
        var command = new ArrayList<String>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(List.of("-Xmx" + memory, "-XX:+DisplayVMOutputToStderr", "-XX:-UsePerfData"));
        // They run for seconds: the optimizing compiler would take most of that time.
        command.add("-XX:TieredStopAtLevel=1");
        command.addAll(engine.jvm());
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), MemberProcess.class.getName()));
        process = new ProcessBuilder(command)
                .directory(cluster.folder().toFile())
                .redirectError(log.toFile())
                .start();
        requests = new PrintStream(process.getOutputStream(), true, StandardCharsets.UTF_8);
        answers = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
        ask(Map.of(
                "engine", engine.type(),
                "index", index,
                "memory", memory,
                "cluster", Map.of(
                        "name", cluster.name(),
                        "backups", cluster.backups(),
                        "folder", cluster.folder().toString(),
                        "members", cluster.members())));
    }

    /** Waits until the member has joined. */
    void joined() throws Exception {
        answer("joined");
    }

    /** Waits for the answer of a member that cannot join. */
    JsonObject failed() throws Exception {
        return answer("failed");
    }

    JsonObject state() throws Exception {
        ask(Map.of("do", "state"));
        return answer("state");
    }

    /** Ends the process as the loss of its host would, by SIGKILL; its children are to die with it. */
    List<ProcessHandle> kill() throws InterruptedException {
        var children = process.descendants().toList();
        process.destroyForcibly().waitFor();
        return children;
    }

    ProcessHandle process() {
        return process.toHandle();
    }

    private void ask(Object request) {
        requests.println(new Gson().toJson(request));
    }

    private JsonObject answer(String what) throws Exception {
        String line;
        try {
            line = CompletableFuture.supplyAsync(this::line).get(ANSWER_SECONDS, TimeUnit.SECONDS);
        } catch (ExecutionException | TimeoutException failure) {
            throw new IllegalStateException("no answer \"" + what + "\"; the member's log:\n" + log(), failure);
        }
        var answer = line == null ? null : JsonParser.parseString(line).getAsJsonObject();
        if (answer == null || !answer.has(what)) {
            throw new IllegalStateException("instead of \"" + what + "\": " + line + "; the member's log:\n" + log());
        }
        return answer.getAsJsonObject(what);
    }

    private String line() {
        try {
            return answers.readLine();
        } catch (IOException failure) {
            throw new java.io.UncheckedIOException(failure);
        }
    }

    private String log() throws IOException {
        return Files.readString(log);
    }

    /** Asks the process to end, and ends it if it does not. */
    @Override
    public void close() {
        ask(Map.of("do", "end"));
        try {
            if (!process.waitFor(20, TimeUnit.SECONDS)) {
                process.destroyForcibly().waitFor();
            }
        } catch (InterruptedException interrupt) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }
}

package gridbench.datagrid.process;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.Writer;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

/** The other side of a conversation with a real process. */
final class Talk implements AutoCloseable {
    final Process process;
    private final Writer out;
    private final BufferedReader in;

    Talk(Class<?> main) throws IOException {
        process = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-XX:+DisplayVMOutputToStderr",
                        "-Xmx256m",
                        "-cp",
                        System.getProperty("java.class.path"),
                        main.getName())
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        // One that does not answer is not waited for forever.
        CompletableFuture.delayedExecutor(120, TimeUnit.SECONDS).execute(process::destroyForcibly);
        out = process.outputWriter();
        in = process.inputReader();
    }

    void send(String line) throws IOException {
        out.append(line.replace('\'', '"')).append('\n').flush();
    }

    JsonObject read() throws IOException {
        var line = in.readLine();
        assertTrue(line != null, "the process has ended");
        return JsonParser.parseString(line).getAsJsonObject();
    }

    /** Reads what there still is. */
    void readToEnd() throws IOException {
        while (in.readLine() != null) {
            continue;
        }
    }

    /** What a request is answered with at last. */
    JsonObject ask(String line) throws IOException {
        send(line);
        while (true) {
            var answer = read();
            if (!answer.has("done")) {
                return answer;
            }
        }
    }

    /** What went wrong with a request. */
    String failure(String line) throws IOException {
        var answer = ask(line);
        assertTrue(answer.has("failed"), answer.toString());
        return answer.getAsJsonObject("failed").get("what").getAsString();
    }

    void endInput() throws IOException {
        out.close();
    }

    /** The exit code, when the process has ended and its output with it. */
    int exitCode() throws IOException, InterruptedException {
        assertTrue(in.readLine() == null, "something is left in standard output");
        return process.waitFor();
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }
}

package gridbench.datagrid.process;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import gridbench.datagrid.run.Failure;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/**
 * Lines of JSON that come through standard input, and those that go out through standard output. When
 * the input ends, so does the process, whatever it does.
 */
final class Conversation {
    private record Failed(String what, boolean port) {}

    private record Done(long done, long operations) {}

    private final Gson gson = new GsonBuilder().disableHtmlEscaping().create();
    private final BlockingQueue<String> lines = new LinkedBlockingQueue<>();
    private final PrintStream out;

    private Conversation(PrintStream out) {
        this.out = out;
    }

    /**
     * Takes standard input and output of this process. What anything else prints goes to standard
     * error from now on.
     */
    static Conversation begin() {
        var out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        var conversation = new Conversation(out);
        var input = System.in;
        var reader = new Thread(() -> conversation.read(input), "conversation");
        reader.setDaemon(true);
        reader.start();
        return conversation;
    }

    /** The next line, when there is one. */
    Fields next() throws InterruptedException {
        return Fields.of(lines.take());
    }

    /** Sends a line with one field. */
    void answer(String name, Object what) {
        send(Map.of(name, what));
    }

    /** Sends how far the tasks of a run are. */
    void progress(long tasks, long operations) {
        send(new Done(tasks, operations));
    }

    /** Sends what went wrong. */
    void failed(Throwable failure) {
        answer("failed", new Failed(Failure.text(failure), Failure.isPortTaken(failure)));
    }

    private synchronized void send(Object line) {
        out.append(gson.toJson(line)).append('\n').flush();
    }

    private void read(InputStream input) {
        var reader = new BufferedReader(new InputStreamReader(input, StandardCharsets.UTF_8));
        try {
            for (var line = reader.readLine(); line != null; line = reader.readLine()) {
                lines.add(line);
            }
        } catch (IOException e) {
            // A connection that broke has ended, too.
        } finally {
            Exit.now(0);
        }
    }
}

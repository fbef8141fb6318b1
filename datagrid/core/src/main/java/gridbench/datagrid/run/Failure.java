package gridbench.datagrid.run;

import java.net.BindException;
import java.util.ArrayList;
import java.util.Locale;
import java.util.concurrent.ExecutionException;

/** Description of an exception. */
public final class Failure {
    // Causes can be caused by each other.
    private static final int MOST_CAUSES = 8;

    private Failure() {}

    /** Class and message of an exception and of its causes, in one line. */
    public static String text(Throwable failure) {
        var texts = new ArrayList<String>();
        var depth = 0;
        for (var one = failure; one != null && depth < MOST_CAUSES; one = one.getCause(), depth++) {
            if (one instanceof ExecutionException && one.getCause() != null) {
                // Says nothing but that it happened in another thread.
                continue;
            }
            var message = one.getMessage();
            var name = one.getClass().getSimpleName();
            texts.add(message == null ? name : name + ": " + message);
        }
        return String.join(", caused by ", texts).replaceAll("\\s+", " ").strip();
    }

    /** Whether it failed as something else listens at a port. */
    public static boolean isPortTaken(Throwable failure) {
        var depth = 0;
        for (var one = failure; one != null && depth < MOST_CAUSES; one = one.getCause(), depth++) {
            var message = String.valueOf(one.getMessage()).toLowerCase(Locale.ROOT);
            if (one instanceof BindException || message.contains("address already in use")) {
                return true;
            }
        }
        return false;
    }
}

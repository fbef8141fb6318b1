package gridbench.datagrid.engine;

import com.google.gson.JsonElement;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** What of an engine.toml a test needs: its values are written as in JSON, lists on one line or on several. */
final class EngineFile {
    private final Map<String, JsonElement> values = new HashMap<>();

    EngineFile(Path file) throws IOException {
        var statement = new StringBuilder();
        for (var line : Files.readAllLines(file)) {
            if (line.isBlank() || line.startsWith("#")) {
                continue;
            }
            statement.append(line).append('\n');
            var text = statement.toString().strip();
            if (!text.contains("= [") || text.endsWith("]")) {
                var parts = text.split("\\s*=\\s*", 2);
                // TOML allows a comma after the last of a list, where JSON sees one more.
                values.put(parts[0], JsonParser.parseString(parts[1].replaceAll(",\\s*]", "]")));
                statement.setLength(0);
            }
        }
    }

    String type() {
        return values.get("class").getAsString();
    }

    int ports() {
        return values.get("ports").getAsInt();
    }

    boolean firstAlone() {
        return values.containsKey("alone") && values.get("alone").getAsBoolean();
    }

    List<String> jvm() {
        var options = new ArrayList<String>();
        if (values.containsKey("jvm")) {
            values.get("jvm").getAsJsonArray().forEach(option -> options.add(option.getAsString()));
        }
        return options;
    }
}

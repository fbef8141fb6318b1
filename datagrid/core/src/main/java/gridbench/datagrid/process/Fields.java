package gridbench.datagrid.process;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import java.util.ArrayList;
import java.util.List;

/** The fields of a JSON object, checked as they are taken; errors say which field it is. */
final class Fields {
    private final String path;
    private final JsonObject object;

    private Fields(String path, JsonObject object) {
        this.path = path;
        this.object = object;
    }

    /** Those of a line. */
    static Fields of(String line) {
        JsonElement element;
        try {
            element = JsonParser.parseString(line);
        } catch (JsonParseException e) {
            throw new BadRequest("a line is not JSON: `" + shortened(line) + "`", e);
        }
        if (!element.isJsonObject()) {
            throw new BadRequest("a line is not a JSON object: `" + shortened(line) + "`");
        }
        return new Fields("", element.getAsJsonObject());
    }

    String text(String name) {
        var element = get(name);
        if (!element.isJsonPrimitive() || !element.getAsJsonPrimitive().isString()) {
            throw wrong(name, "a text");
        }
        return element.getAsString();
    }

    long whole(String name, long least) {
        return whole(name, get(name), least);
    }

    int wholeInt(String name, int least) {
        var number = whole(name, least);
        if (number > Integer.MAX_VALUE) {
            throw wrong(name, "at most " + Integer.MAX_VALUE);
        }
        return (int) number;
    }

    double number(String name, double least) {
        var element = get(name);
        if (!isNumber(element) || !(element.getAsDouble() >= least)) {
            throw wrong(name, "a number of at least " + least);
        }
        return element.getAsDouble();
    }

    double positive(String name) {
        var element = get(name);
        if (!isNumber(element) || !(element.getAsDouble() > 0)) {
            throw wrong(name, "a number above 0");
        }
        return element.getAsDouble();
    }

    /** One of several words. */
    String word(String name, List<String> words) {
        var word = text(name);
        if (!words.contains(word)) {
            throw wrong(name, "one of " + String.join(", ", words));
        }
        return word;
    }

    /** Whether there is such a field, and it is not null. */
    boolean has(String name) {
        return object.has(name) && !object.get(name).isJsonNull();
    }

    Fields object(String name) {
        var element = get(name);
        if (!element.isJsonObject()) {
            throw wrong(name, "an object");
        }
        return new Fields(path + name + ".", element.getAsJsonObject());
    }

    List<Fields> objects(String name) {
        var objects = new ArrayList<Fields>();
        for (var element : array(name)) {
            if (!element.isJsonObject()) {
                throw wrong(name, "an array of objects");
            }
            objects.add(new Fields(path + name + "[" + objects.size() + "].", element.getAsJsonObject()));
        }
        return objects;
    }

    /** Port numbers. */
    List<Integer> ports(String name) {
        var ports = new ArrayList<Integer>();
        for (var element : array(name)) {
            var port = whole(name, element, 1);
            if (port > 65_535) {
                throw wrong(name, "an array of port numbers");
            }
            ports.add((int) port);
        }
        return ports;
    }

    private Iterable<JsonElement> array(String name) {
        var element = get(name);
        if (!element.isJsonArray()) {
            throw wrong(name, "an array");
        }
        return element.getAsJsonArray();
    }

    private JsonElement get(String name) {
        if (!has(name)) {
            throw new BadRequest("`" + path + name + "` is missing");
        }
        return object.get(name);
    }

    private long whole(String name, JsonElement element, long least) {
        long number;
        try {
            number = isNumber(element) ? element.getAsBigDecimal().longValueExact() : Long.MIN_VALUE;
        } catch (ArithmeticException | NumberFormatException e) {
            number = Long.MIN_VALUE;
        }
        if (number < least || number == Long.MIN_VALUE) {
            throw wrong(
                    name,
                    least == Long.MIN_VALUE ? "a whole number" : "a whole number of at least " + least);
        }
        return number;
    }

    private BadRequest wrong(String name, String wanted) {
        return new BadRequest("`" + path + name + "` has to be " + wanted + ", and is "
                + shortened(object.get(name).toString()));
    }

    private static boolean isNumber(JsonElement element) {
        return element.isJsonPrimitive() && element.getAsJsonPrimitive().isNumber();
    }

    private static String shortened(String text) {
        return text.length() <= 100 ? text : text.substring(0, 100) + "...";
    }
}

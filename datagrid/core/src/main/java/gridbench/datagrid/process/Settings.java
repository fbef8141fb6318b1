package gridbench.datagrid.process;

import gridbench.datagrid.Cluster;
import gridbench.datagrid.DataGrid;
import java.lang.reflect.InvocationTargetException;
import java.nio.file.Path;

/** What the first line says to members and clients. */
record Settings(DataGrid grid, Cluster cluster) {
    static Settings of(Fields line) {
        var cluster = line.object("cluster");
        var members = cluster.objects("members").stream()
                .map(member -> new Cluster.Place(member.text("address"), member.ports("ports")))
                .toList();
        return new Settings(
                grid(line.text("engine")),
                new Cluster(
                        cluster.text("name"),
                        cluster.wholeInt("backups", 0),
                        members,
                        Path.of(cluster.text("folder"))));
    }

    private static DataGrid grid(String name) {
        try {
            var type = Class.forName(name).asSubclass(DataGrid.class);
            return type.getConstructor().newInstance();
        } catch (ClassNotFoundException | LinkageError e) {
            throw new BadRequest("the engine's class `" + name + "` cannot be loaded; is it, and what"
                    + " it needs, in the class path?", e);
        } catch (ClassCastException e) {
            throw new BadRequest("the engine's class `" + name + "` is no " + DataGrid.class.getName(), e);
        } catch (InvocationTargetException e) {
            throw new BadRequest("the engine's class `" + name + "` failed", e.getCause());
        } catch (ReflectiveOperationException e) {
            throw new BadRequest("the engine's class `" + name + "` needs a public constructor without"
                    + " parameters", e);
        }
    }
}

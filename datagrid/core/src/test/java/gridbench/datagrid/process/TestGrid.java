package gridbench.datagrid.process;

import gridbench.datagrid.Cluster;
import gridbench.datagrid.DataGrid;
import gridbench.datagrid.Member;
import gridbench.datagrid.Store;
import gridbench.datagrid.embedded.EmbeddedGrid;
import java.io.IOException;
import java.net.BindException;
import java.nio.file.Files;

/** A data grid whose member is a program that it has started, and whose port can be taken. */
public final class TestGrid implements DataGrid {
    @Override
    public Member join(Cluster cluster, int index, long memory) throws Exception {
        System.out.println("a product prints to standard output");
        if (cluster.name().equals("taken")) {
            throw new IOException("cannot listen", new BindException("Address already in use"));
        }
        var program = new ProcessBuilder("sleep", "1000").start();
        return new Member() {
            @Override
            public int members() {
                return cluster.members().size();
            }

            @Override
            public long entries() {
                return program.pid();
            }

            @Override
            public long backups() {
                return -1;
            }

            @Override
            public void close() {
                try {
                    Files.createFile(cluster.folder().resolve("closed"));
                } catch (IOException e) {
                    throw new IllegalStateException(e);
                }
            }
        };
    }

    @Override
    public Store connect(Cluster cluster, String address) throws Exception {
        System.out.println("a product prints to standard output");
        return new EmbeddedGrid().connect(cluster, address);
    }

    @Override
    public String version() {
        return "1.2.3";
    }
}

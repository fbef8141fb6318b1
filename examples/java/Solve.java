import gridrpc.Function;
import gridrpc.Grid;
import gridrpc.GridRpcException;

import java.nio.DoubleBuffer;
import java.util.Random;

/** Solves a dense linear system with LAPACK's dgesv: java Solve.java [N [SERVER]]. */
public final class Solve {
    private Solve() {}

    public static void main(String[] arguments) {
        int n = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 500;
        String server = arguments.length > 1 ? arguments[1] : null;
        Random random = new Random(1);
        double[] matrix = random.doubles((long) n * n, -1, 1).toArray();
        try (Grid grid = Grid.open()) {
            // Workers on this machine see these without a copy.
            DoubleBuffer a = grid.allocateDoubles(n * n).put(matrix).rewind();
            DoubleBuffer x = grid.allocateDoubles(n);
            for (int row = 0; row < n; row++) {
                // By columns, as in Fortran. The solution is a vector of ones.
                double sum = 0;
                for (int column = 0; column < n; column++) {
                    sum += matrix[column * n + row];
                }
                x.put(row, sum);
            }
            int[] pivots = new int[n];
            int[] info = new int[1];
            try (Function dgesv = server == null
                    ? grid.function("lapack/dgesv")
                    : grid.function("lapack/dgesv", server)) {
                dgesv.call(n, 1, a, n, pivots, x, n, info);
            }
            double error = 0;
            for (int row = 0; row < n; row++) {
                error = Math.max(error, Math.abs(x.get(row) - 1));
            }
            System.out.println(info[0] != 0 ? "the matrix is singular" : error < 1e-8 ? "solved" : "off by " + error);
        } catch (GridRpcException error) {
            System.err.println("Solve: " + error.detail());
            System.exit(1);
        }
    }
}

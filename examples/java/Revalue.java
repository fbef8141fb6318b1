import gridrpc.Function;
import gridrpc.Grid;

import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

/** Revalues a portfolio of options in scenarios of the market, from several threads: java Revalue.java [SCENARIOS]. */
public final class Revalue {
    private static final int OPTIONS = 40;
    private static final int UNDERLYINGS = 3;
    private static final int PATHS = 500;
    private static final int STEPS = 12;
    private static final int THREADS = 4;

    private Revalue() {}

    public static void main(String[] arguments) throws InterruptedException {
        int scenarios = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 100;
        Random random = new Random(1);
        int[] asian = IntStream.range(0, OPTIONS).map(option -> option % 4 == 0 ? 1 : 0).toArray();
        int[] underlying = IntStream.range(0, OPTIONS).map(option -> option % UNDERLYINGS).toArray();
        double[] strike = random.doubles(OPTIONS, 80, 120).toArray();
        double[] maturity = random.doubles(OPTIONS, 0.25, 2).toArray();
        double[] spot = {95, 100, 105};
        double[] volatility = {0.2, 0.25, 0.3};
        double[] normals = random.doubles((long) PATHS * STEPS).map(any -> random.nextGaussian()).toArray();
        double[] totals = new double[scenarios];

        ExecutorService threads = Executors.newFixedThreadPool(THREADS);
        try (Grid grid = Grid.open(); Function revalue = grid.function("portfolio/revalue")) {
            for (int number = 0; number < scenarios; number++) {
                int scenario = number;
                threads.submit(() -> {
                    double[] value = new double[OPTIONS];
                    double spotFactor = 0.8 + 0.4 * scenario / scenarios;
                    revalue.call(
                            OPTIONS, UNDERLYINGS, PATHS, STEPS, asian, underlying, strike, maturity, spot, volatility,
                            0.02, normals, spotFactor, 0.0, 0.0, value);
                    totals[scenario] = Arrays.stream(value).sum();
                });
            }
            threads.shutdown();
            threads.awaitTermination(10, TimeUnit.MINUTES);
        }
        // Calls gain when the market rises.
        boolean rises = IntStream.range(1, scenarios).allMatch(number -> totals[number] > totals[number - 1]);
        System.out.printf("%d scenarios, %s%n", scenarios, rises ? "values rise with the market" : "values do not rise");
    }
}

/**
 * Calls functions in C, C++, Fortran and Python on this machine, on servers and on clusters.
 *
 * <pre>{@code
 * double[] a = {1, 2, 3, 4}, b = {1, 0, 0, 1}, c = new double[4];
 * try (Grid grid = Grid.open(); Function mmul = grid.function("sample/mmul")) {
 *     mmul.call(2, a, b, c);
 * }
 * }</pre>
 *
 * <p>A {@link gridrpc.Grid} finds functions, a {@link gridrpc.Function} calls one, a {@link gridrpc.Call} is a call
 * that nobody waits for yet, and a {@link gridrpc.RemoteObject} keeps state in a worker of its own. All of them may be
 * used by any number of threads at once.
 *
 * <h2>Arguments</h2>
 *
 * <p>A call has one argument for each parameter of the interface, in its order. Types and lengths are compared with the
 * interface before anything is sent.
 *
 * <table>
 * <caption>What to pass</caption>
 * <tr><th>parameter</th><th>argument</th></tr>
 * <tr><td>integer</td><td>{@code Byte}, {@code Short}, {@code Integer}, {@code Long} or {@code Character} whose value
 *     fits</td></tr>
 * <tr><td>{@code float}, {@code double}</td><td>any {@link java.lang.Number}</td></tr>
 * <tr><td>array</td><td>an array or a direct buffer whose elements have the size of the parameter's:
 *     {@code double[]} or {@link java.nio.DoubleBuffer} for {@code double}. A matrix is one array, row by row. Complex
 *     numbers are pairs of {@code float} or {@code double}. Unsigned integers have the bits of signed ones</td></tr>
 * <tr><td>string, file name</td><td>{@link java.lang.String}; a {@code String[1]} where it is an output</td></tr>
 * <tr><td>array of strings</td><td>{@code String[]}</td></tr>
 * <tr><td>WORK</td><td>{@code null}</td></tr>
 * <tr><td>callback</td><td>{@link gridrpc.Callback}</td></tr>
 * </table>
 *
 * <p>A direct buffer is passed as it is, from its position to its limit, and must have the native byte order. An array
 * is copied once in each direction. {@link gridrpc.Grid#allocate} makes buffers that workers on this machine see without
 * any copy.
 */
package gridrpc;

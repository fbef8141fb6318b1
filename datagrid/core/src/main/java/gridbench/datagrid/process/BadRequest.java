package gridbench.datagrid.process;

/** A line of the conversation that does not say what it has to. */
final class BadRequest extends IllegalArgumentException {
    private static final long serialVersionUID = 1;

    BadRequest(String message) {
        super(message);
    }

    BadRequest(String message, Throwable cause) {
        super(message, cause);
    }
}

package gridbench.datagrid.process;

/** The end of this process and of those that it has started. */
final class Exit {
    private Exit() {}

    /** Ends them at once; nothing is closed. */
    static void now(int code) {
        try {
            ProcessHandle.current().descendants().forEach(ProcessHandle::destroyForcibly);
        } finally {
            Runtime.getRuntime().halt(code);
        }
    }
}

package gridbench.datagrid.process;

import gridbench.datagrid.Store;

/**
 * A process with clients. The first line it gets are its settings, further ones are requests, which it
 * carries out one after the other.
 */
public final class ClientProcess {
    private ClientProcess() {}

    /** Runs until its parent requests its end or has ended itself. */
    public static void main(String[] arguments) throws InterruptedException {
        var conversation = Conversation.begin();
        Requests requests = null;
        try {
            requests = connect(conversation);
        } catch (Throwable e) {
            conversation.failed(e);
            Exit.now(1);
        }
        while (true) {
            try {
                requests.carryOut(conversation.next());
            } catch (Throwable e) {
                // Whatever it was, somebody waits for an answer.
                conversation.failed(e);
            }
        }
    }

    private static Requests connect(Conversation conversation) throws Exception {
        var line = conversation.next();
        var began = System.nanoTime();
        var settings = Settings.of(line);
        var clients = line.wholeInt("clients", 1);
        Store store = settings.grid().connect(settings.cluster(), line.text("address"));
        conversation.answer("connected", Started.since(began, settings.grid()));
        return new Requests(conversation, store, clients);
    }
}

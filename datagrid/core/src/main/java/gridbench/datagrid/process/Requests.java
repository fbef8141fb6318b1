package gridbench.datagrid.process;

import gridbench.datagrid.Store;
import gridbench.datagrid.data.Checking;
import gridbench.datagrid.data.Loading;
import gridbench.datagrid.data.Removal;
import gridbench.datagrid.run.BareLoop;
import gridbench.datagrid.run.Clock;
import gridbench.datagrid.run.Run;
import gridbench.datagrid.value.Values;
import java.util.List;

/** Requests that clients answer. */
final class Requests {
    private final Conversation conversation;
    private final Store store;
    private final int clients;

    /**
     * @param clients most threads of a run
     */
    Requests(Conversation conversation, Store store, int clients) {
        this.conversation = conversation;
        this.store = store;
        this.clients = clients;
    }

    /** Does what is requested, and answers. */
    void carryOut(Fields request) throws Exception {
        switch (request.text("do")) {
            case "load" -> load(request);
            case "run" -> run(request);
            case "check" -> check(request);
            case "bare" -> bare(request);
            case "remove" -> {
                Removal.remove(store, first(request), last(request));
                conversation.answer("removed", true);
            }
            case "clear" -> {
                store.clear();
                conversation.answer("cleared", true);
            }
            case "size" -> conversation.answer("size", store.size());
            case "clock" -> clock();
            case "end" -> end();
            default -> throw new BadRequest("a client cannot do `" + request.text("do")
                    + "`, but load, run, check, bare, remove, clear, size, clock and end");
        }
    }

    private void load(Fields request) throws Exception {
        var loaded = Loading.load(
                store,
                first(request),
                last(request),
                request.wholeInt("size", Values.HEADER),
                request.whole("batch", 1),
                this::tell);
        conversation.answer("loaded", loaded);
    }

    private void check(Fields request) throws Exception {
        var size = request.wholeInt("size", Values.HEADER);
        var checked = Checking.check(store, first(request), last(request), size, this::tell);
        conversation.answer("checked", checked);
    }

    private void tell(long done) {
        conversation.answer("done", done);
    }

    private void bare(Fields request) throws Exception {
        // The values are not looked at, but their size is part of the request as of the others.
        request.wholeInt("size", Values.HEADER);
        var first = first(request);
        var last = last(request);
        if (first == last) {
            throw new BadRequest("`last` has to be above `first`: there is nothing to read");
        }
        var latencies = BareLoop.run(
                store, request.whole("operations", 1), request.whole("warm", 0), first, last);
        conversation.answer("bare", latencies);
    }

    private void run(Fields request) throws Exception {
        var plan = PlanFields.plan(request.object("plan"));
        if (plan.clients().count() > clients) {
            throw new BadRequest("`plan.clients.count` is " + plan.clients().count()
                    + ", but this process was started for " + clients + " clients");
        }
        var run = new Run(store, plan, Clock.SYSTEM);
        conversation.answer("warm", run.warm());
        long at;
        try {
            at = awaitGo();
        } catch (BadRequest e) {
            run.giveUp();
            throw e;
        }
        var ran = run.go(at, conversation::progress);
        conversation.answer("ran", ran);
    }

    /** When the clients of all processes begin. */
    private long awaitGo() throws InterruptedException {
        while (true) {
            var request = conversation.next();
            switch (request.word("do", List.of("go", "clock", "end"))) {
                case "clock" -> clock();
                case "end" -> end();
                default -> {
                    return request.whole("at", Long.MIN_VALUE + 1);
                }
            }
        }
    }

    private void clock() {
        conversation.answer("clock", System.nanoTime());
    }

    private void end() {
        store.close();
        Exit.now(0);
    }

    private static long first(Fields request) {
        return request.whole("first", Long.MIN_VALUE + 1);
    }

    private static long last(Fields request) {
        return request.whole("last", first(request));
    }
}

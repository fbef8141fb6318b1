package gridbench.datagrid.process;

import gridbench.datagrid.Member;

/**
 * A process with a storage member. The first line it gets are its settings, further ones ask for its
 * state or its end.
 */
public final class MemberProcess {
    private record State(int members, long entries, long backups, long used) {
        static State of(Member member) {
            // First, as counting may leave garbage.
            var used = member.used();
            return new State(member.members(), member.entries(), member.backups(), used);
        }
    }

    private MemberProcess() {}

    /** Runs until its parent requests its end or has ended itself. */
    public static void main(String[] arguments) throws InterruptedException {
        var conversation = Conversation.begin();
        Member member = null;
        try {
            member = join(conversation);
        } catch (Throwable e) {
            conversation.failed(e);
            Exit.now(1);
        }
        while (true) {
            try {
                var request = conversation.next();
                switch (request.text("do")) {
                    case "state" -> conversation.answer("state", State.of(member));
                    case "end" -> {
                        member.close();
                        Exit.now(0);
                    }
                    default -> throw new BadRequest(
                            "a member cannot do `" + request.text("do") + "`, but state and end");
                }
            } catch (Throwable e) {
                // Whatever it was, somebody waits for an answer.
                conversation.failed(e);
            }
        }
    }

    private static Member join(Conversation conversation) throws Exception {
        var line = conversation.next();
        var began = System.nanoTime();
        var settings = Settings.of(line);
        var index = line.wholeInt("index", 0);
        var members = settings.cluster().members().size();
        if (index >= members) {
            throw new BadRequest("`index` is " + index + ", but the cluster has " + members + " members");
        }
        var member = settings.grid().join(settings.cluster(), index, line.whole("memory", 1));
        conversation.answer("joined", Started.since(began, settings.grid()));
        return member;
    }
}

"""What users of a server may do, their limits, and how calls of a module run."""

from __future__ import annotations

import re
import struct
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridrpc
from grids import CompileIdl
from processes import LONG, until
from servers import (
    ENDED,
    FAILURE,
    REPLY,
    WORK,
    Authority,
    Server,
    Wire,
    arguments,
    began,
    hold,
    named,
    offering,
    serving,
)

pytestmark = pytest.mark.usefixtures("no_modules_here")


@pytest.fixture
def work(compile_idl: CompileIdl) -> Path:
    return compile_idl(WORK)


def gated(folder: Path, number: int) -> list[bytes]:
    """Arguments of `gated` for a connection made by hand."""
    return arguments(str(folder / "log"), str(folder / "gate"), number, None)


def opened_by_hand(server: Server, credentials: Path | None, function: str) -> Wire:
    """A client by hand that knows a function, as its function 1."""
    wire = server.connect(credentials)
    wire.serve()
    wire.name(1, function)
    return wire


def answers(wire: Wire, count: int) -> list[int]:
    """The results of so many calls with one integer as result, in the order of their ends."""
    got = []
    for _ in range(count):
        kind, body = wire.receive(REPLY, FAILURE, 0)
        assert kind == REPLY, body
        got.append(struct.unpack("<q", body[-8:])[0])
    return got


def test_modules_for_some_users(compile_idl: CompileIdl, work: Path, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    ann, bob = authority.user("ann", "staff"), authority.user("bob")
    config = (
        offering(work, compile_idl(named("secret")), compile_idl(named("own")))
        + "[modules.secret]\ngroups = 'staff'\n[users.bob]\nmodules = ['work', 'secret']\n"
    )
    with serving(tmp_path, config, authority) as server:
        with server.client(ann) as grid:
            for module in ("work", "secret", "own"):
                assert grid.function(f"{module}/add")(1, 2) == [3]
        with server.client(bob) as grid:
            assert grid.function("work/add")(1, 2) == [3]
            # What users may not call, they do not see.
            for module in ("secret", "own", "missing"):
                with pytest.raises(gridrpc.FunctionNotFound, match=f"no function `{module}/add`"):
                    grid.function(f"{module}/add")
        # A client that does not ask before it calls.
        with opened_by_hand(server, bob, "secret/add") as wire:
            wire.call(7, 1, *arguments(1, 2, None))
            error, message = wire.failure()
            assert error == "gridrpc.FunctionNotFound"
            assert "that user `bob` may call; there is `work`" in message
        assert until(lambda: "bob" in {record["user"] for record in server.audit("refuse")})


@pytest.mark.parametrize("limit", ["calls", "workers"])
def test_limit_of_calls_at_a_time(work: Path, tmp_path: Path, limit: str) -> None:
    config = offering(work, workers=3) + f"[everyone]\n{limit} = 1\n"
    with serving(tmp_path, config) as server, server.client() as grid:
        calls = [
            grid.submit("work/gated", str(tmp_path / "log"), str(tmp_path / "gate"), number)
            for number in range(3)
        ]
        assert until(lambda: began(tmp_path / "log") == [0])
        with opened_by_hand(server, None, "work/add") as wire:
            # The limit is the user's, whatever the connection.
            wire.call(7, 1, *arguments(1, 2, None))
            assert until(lambda: server.module("work")["alive"] >= 2)
            assert began(tmp_path / "log") == [0]
            (tmp_path / "gate").touch()
            assert answers(wire, 1) == [3]
        assert [int(call.result(LONG)[0]) for call in calls] == [0, 1, 2]
        assert began(tmp_path / "log") == [0, 1, 2]


def test_limit_of_queued_calls(work: Path, tmp_path: Path) -> None:
    config = offering(work) + "[everyone]\ncalls = 1\nqueued = 2\n"
    with serving(tmp_path, config) as server:
        with opened_by_hand(server, None, "work/gated") as wire:
            wire.call(0, 1, *gated(tmp_path, 0))
            assert until(lambda: began(tmp_path / "log") == [0])
            for number in range(1, 5):
                wire.call(number, 1, *gated(tmp_path, number))
            reported = [wire.failure() for _ in range(2)]
            for error, message in reported:
                assert error == "gridrpc.LimitReached"
                assert (
                    'the limit `queued` of user "root" is reached: 3 calls would wait, and 2 may'
                    in message
                )
                assert "1 running, 2 waiting" in message
            (tmp_path / "gate").touch()
            assert answers(wire, 3) == [0, 1, 2]
            # There is room again.
            wire.call(9, 1, *gated(tmp_path, 9))
            assert answers(wire, 1) == [9]
        assert until(
            lambda: [record["outcome"] for record in server.audit("limit")] == ["queued"] * 2
        )


def test_limit_of_bytes(work: Path, tmp_path: Path) -> None:
    config = offering(work) + "[everyone]\nbytes = '1 MiB'\n"
    with serving(tmp_path, config) as server, server.client() as grid:
        copy = grid.function("work/copy")
        few = np.ones(900_000, np.uint8)
        assert np.array_equal(copy(few), few)
        running = grid.submit("work/gated", str(tmp_path / "log"), str(tmp_path / "gate"), 1)
        for size in (1_100_000, 20_000_000):
            with pytest.raises(gridrpc.LimitReached, match=r"limit `bytes` .* 1048576 may be held"):
                copy(np.ones(size, np.uint8))
        # It costs nothing but the call.
        (tmp_path / "gate").touch()
        assert running.result(LONG) == [1]
        # One such call after the other is possible.
        assert np.array_equal(copy(few), few)


def received(server: Server) -> int:
    """Bytes that the server has read from sockets."""
    for line in Path(f"/proc/{server.pid}/io").read_text().splitlines():
        name, _, value = line.partition(": ")
        if name == "rchar":
            return int(value)
    raise AssertionError("no rchar")


def test_limits_are_checked_before_sending(work: Path, tmp_path: Path) -> None:
    """By the client, which learns them with the interface and asks again before it refuses."""
    authority = Authority(tmp_path)
    ann, bob = authority.user("ann"), authority.user("bob")
    config = offering(work) + "[users.ann]\nbytes = '512 KiB'\n"
    size = 20_000_000
    with serving(tmp_path, config, authority) as server:
        with server.client(bob) as grid:
            assert grid.function("work/copy")(np.ones(size, np.uint8)).all()
        with server.client(ann) as grid:
            copy = grid.function("work/copy")
            assert copy(np.ones(400_000, np.uint8)).all()
            before = received(server)
            for call in (copy, copy.submit, copy.detach):
                with pytest.raises(gridrpc.LimitReached) as reached:
                    call(np.ones(size, np.uint8))
                assert str(reached.value) == (
                    'work/copy: the limit `bytes` of user "ann" is reached: the arguments would'
                    " have 20000008 bytes, and 524288 may be held; this call alone exceeds it: send"
                    " less in one call, or ask the server's owner for a higher limit; nothing was"
                    f" sent to server `127.0.0.1:{server.port}`"
                )
            assert received(server) - before < 1_000_000
        assert server.audit("limit") == []
        # What the client checks is a help: the server refuses who sends all the same.
        with opened_by_hand(server, ann, "work/copy") as wire:
            wire.call(7, 1, *arguments(600_000, "x" * 600_000, None))
            error, message = wire.failure()
            assert error == "gridrpc.LimitReached"
            assert "524288 may be held" in message
        assert until(lambda: [one["outcome"] for one in server.audit("limit")] == ["bytes"])


def test_a_limit_that_was_raised_counts_at_once(work: Path, tmp_path: Path) -> None:
    config = offering(work) + "[everyone]\nbytes = '1 MiB'\n"
    data = np.ones(2_000_000, np.uint8)
    with serving(tmp_path, config) as server, server.client() as grid:
        copy = grid.function("work/copy")
        with pytest.raises(gridrpc.LimitReached):
            copy(data)
        server.stop()
        server.file.write_text(server.file.read_text().replace("1 MiB", "4 MiB"))
        server.start()

        def is_back() -> bool:
            with suppress(gridrpc.GridError):
                return bool(copy(data).all())
            return False

        assert until(is_back)
        with pytest.raises(gridrpc.LimitReached, match="4194304 may be held"):
            copy(np.ones(5_000_000, np.uint8))


def test_a_call_that_takes_more_workers_than_its_user_may_use(work: Path, tmp_path: Path) -> None:
    config = offering(work, workers=2) + "[modules.work]\ncores = 'all'\n[everyone]\nworkers = 1\n"
    with serving(tmp_path, config) as server, server.client() as grid:
        with pytest.raises(gridrpc.LimitReached, match="each call takes 2 workers, and 1 may be"):
            grid.function("work/add")(1, 2)
        assert server.audit("limit") == []


def test_a_call_whose_work_arrays_exceed_the_memory_of_a_worker(
    compile_idl: CompileIdl, tmp_path: Path
) -> None:
    module = compile_idl(
        "Module solver; Define solve(IN int n, OUT int r[1], WORK double lu[n][n])"
        " { *lu = *r = n; }"
    )
    config = offering(module) + "[modules.solver]\nmemory = '64 MiB'\n"
    with serving(tmp_path, config) as server, server.client() as grid:
        solve = grid.function("solver/solve")
        assert solve(1000) == [1000]
        message = r"limit `memory` of the module .* 80000000000 bytes, .* may have 67108864"
        with pytest.raises(gridrpc.LimitReached, match=message):
            solve(100_000)


def test_limit_of_the_rate(work: Path, tmp_path: Path) -> None:
    # So slow that no test sees a second call.
    config = offering(work) + "[everyone]\nrate = 0.001\n"
    with serving(tmp_path, config) as server, server.client() as grid:
        add = grid.function("work/add")
        assert add(1, 2) == [3]
        with pytest.raises(
            gridrpc.LimitReached, match=r"limit `rate` .* 0\.001 calls per second .*try again in"
        ):
            add(1, 2)


def test_limit_of_processor_time(work: Path, tmp_path: Path) -> None:
    config = offering(work) + "[everyone]\ncpu_seconds_per_day = 0\n"
    reached = pytest.raises(gridrpc.LimitReached, match="limit `cpu_seconds_per_day`")
    with serving(tmp_path, config) as server, server.client() as grid, reached:
        grid.function("work/add")(1, 2)


def test_an_object_takes_one_worker_with_its_calls(work: Path, tmp_path: Path) -> None:
    config = offering(work, workers=2) + "[everyone]\nworkers = 1\ncalls = 1\n"
    with serving(tmp_path, config) as server, server.client() as grid:
        with grid.object("work/counter") as counter:
            assert counter.add.submit(1).result(LONG) == [1]
            # What would take a second worker waits, and calls of the object pass it.
            waiting = grid.submit("work/add", 1, 2)
            assert until(lambda: server.module("work")["alive"] == 1)
            assert counter.add.submit(1).result(LONG) == [2]
            assert not waiting.done()
            with (
                grid.object("work/counter") as other,
                pytest.raises(
                    (gridrpc.ObjectLost, gridrpc.WorkerLost),
                    match=r"limit `workers` .* 2 workers would be in use, and 1 may be",
                ),
            ):
                other.add.submit(1).result(LONG)
        assert waiting.result(LONG) == [3]
        assert until(lambda: [one["outcome"] for one in server.audit("limit")] == ["workers"])


def test_an_object_of_code_that_a_user_sends_takes_one_worker(work: Path, tmp_path: Path) -> None:
    class Sums:
        def __init__(self) -> None:
            self.sum = 0

        def add(self, number: int) -> int:
            self.sum += number
            return self.sum

    config = offering(work, workers=2, python=True) + "[everyone]\nworkers = 1\ncode = true\n"
    with (
        serving(tmp_path, config) as server,
        server.client(trusted=True) as grid,
        grid.object(Sums) as sums,
    ):
        assert [sums.add.submit(n).result(LONG) for n in (1, 2)] == [1, 3]


def test_methods_without_an_object_are_refused(work: Path, tmp_path: Path) -> None:
    with (
        serving(tmp_path, offering(work)) as server,
        opened_by_hand(server, None, "work/counter.add") as wire,
    ):
        wire.call(1, 1, *arguments(1, None))
        kind, body = wire.receive(REPLY, FAILURE, ENDED)
        assert (kind, b"names no object" in body) == (ENDED, True)


def test_limit_of_shared_data(work: Path, tmp_path: Path) -> None:
    config = offering(work, python=True) + "[everyone]\nbytes = '1 MiB'\ncode = true\n"
    with serving(tmp_path, config) as server, server.client(trusted=True) as grid:
        data = grid.share(np.ones(2_000_000, np.uint8))
        with pytest.raises(gridrpc.LimitReached, match=r"limit `bytes` .* 1048576 may be held"):
            grid.submit(len, data).result(LONG)
        assert grid.submit(len, b"four").result(LONG) == 4


def test_code_of_users_who_may_send_it(work: Path, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    ann, bob = authority.user("ann"), authority.user("bob")
    config = offering(work, python=True) + "[users.ann]\ncode = true\n"
    with serving(tmp_path, config, authority) as server:
        with server.client(ann, trusted=True) as grid:
            assert grid.submit(lambda x: x + 1, 2).result(LONG) == 3
            assert list(grid.map(lambda x: x * x, range(50))) == [x * x for x in range(50)]
        refused = pytest.raises(gridrpc.NotPermitted, match="user `bob` to send code")
        with server.client(bob, trusted=True) as grid, refused:
            grid.submit(lambda x: x + 1, 2).result(LONG)


def test_isolation_of_users(compile_idl: CompileIdl, work: Path, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    ann, bob = authority.user("ann"), authority.user("bob")
    mine = compile_idl(named("mine"))
    config = offering(work, mine) + "[modules.mine]\nisolation = 'user'\n"
    with serving(tmp_path, config, authority) as server, ExitStack() as stack:
        grids = [stack.enter_context(server.client(user)) for user in (ann, bob, ann)]
        shared = [{int(grid.function("work/pid")()[0]) for _ in range(5)} for grid in grids]
        assert shared[0] == shared[1] == shared[2]
        pids = [{int(grid.function("mine/pid")()[0]) for _ in range(5)} for grid in grids]
        assert pids[0] == pids[2]
        assert not pids[0] & pids[1]
        assert len(pids[0]) == len(pids[1]) == 1
        assert not pids[0] & shared[0]


def test_isolation_of_calls(compile_idl: CompileIdl, tmp_path: Path) -> None:
    config = (
        offering(compile_idl(named("once")), workers=2) + "[modules.once]\nisolation = 'call'\n"
    )
    with serving(tmp_path, config) as server, server.client() as grid:
        pids = [int(call.result(LONG)[0]) for call in [grid.submit("once/pid") for _ in range(20)]]
        assert len(set(pids)) == 20


def test_most_running_and_most_queued(compile_idl: CompileIdl, work: Path, tmp_path: Path) -> None:
    few = compile_idl(named("few"))
    config = offering(work, few, workers=3) + "[modules.few]\nmost_running = 2\nmost_queued = 3\n"
    with serving(tmp_path, config) as server, opened_by_hand(server, None, "few/gated") as wire:
        for number in range(7):
            wire.call(number, 1, *gated(tmp_path, number))
        for _ in range(2):
            error, message = wire.failure()
            assert error == "gridrpc.LimitReached"
            assert "the queue of module `few` is full: 5 calls run or wait, of at most 3" in message
            assert message.endswith("; try again when calls have ended")
        assert until(lambda: len(began(tmp_path / "log")) == 2)
        # Other modules are not affected.
        with server.client() as grid:
            assert grid.function("work/add")(1, 2) == [3]
        assert sorted(began(tmp_path / "log")) == [0, 1]
        (tmp_path / "gate").touch()
        assert sorted(answers(wire, 5)) == [0, 1, 2, 3, 4]
        # Once calls have ended, it is known when there is room.
        (tmp_path / "gate").unlink()
        for number in range(10, 16):
            wire.call(number, 1, *gated(tmp_path, number))
        assert re.search("; try again in [0-9]+ (ms|s|min)$", wire.failure()[1])
        (tmp_path / "gate").touch()
        assert sorted(answers(wire, 5)) == [10, 11, 12, 13, 14]
    audit = [record["outcome"] for record in server.audit("limit")]
    assert audit == ["most_queued"] * 3


@pytest.mark.parametrize(
    ("policy", "order"),
    [
        ("fifo", [1, 2, 3, 11, 12, 13]),
        ("priority", [11, 12, 13, 1, 2, 3]),
        # Which of both users is first is no matter.
        ("fair", None),
    ],
)
def test_policies_of_the_queue(
    compile_idl: CompileIdl, tmp_path: Path, policy: str, order: list[int] | None
) -> None:
    authority = Authority(tmp_path)
    ann, bob, eve = (authority.user(name) for name in ("ann", "bob", "eve"))
    config = (
        offering(compile_idl(WORK))
        + f"[modules.work]\npolicy = '{policy}'\n[users.bob]\npriority = 5\n"
    )
    with serving(tmp_path, config, authority) as server, ExitStack() as stack:
        first = opened_by_hand(server, eve, "work/gated")
        wires = [
            stack.enter_context(opened_by_hand(server, user, "work/gated")) for user in (ann, bob)
        ]
        with first:
            first.call(0, 1, *gated(tmp_path, 0))
            assert until(lambda: began(tmp_path / "log") == [0])
            for base, wire in zip((0, 10), wires, strict=True):
                for number in range(1, 4):
                    wire.call(number, 1, *gated(tmp_path, base + number))
                count = 4 if base == 0 else 7
                assert until(lambda count=count: server.module("work")["alive"] == count)
            (tmp_path / "gate").touch()
            answers(first, 1)
            for wire in wires:
                answers(wire, 3)
        ran = began(tmp_path / "log")[1:]
        if order is not None:
            assert ran == order
        else:
            # Neither waits for all calls of the other.
            assert {number < 10 for number in ran[:3]} == {True, False}


def test_weights_of_users(compile_idl: CompileIdl, tmp_path: Path) -> None:
    """The shares are of the worker's time, so the test compares times and not numbers of calls."""
    authority = Authority(tmp_path)
    ann, bob, eve = (authority.user(name) for name in ("ann", "bob", "eve"))
    config = offering(compile_idl(WORK)) + "[users.bob]\nweight = 3\n"
    with serving(tmp_path, config, authority) as server, ExitStack() as stack:
        first = stack.enter_context(opened_by_hand(server, eve, "work/gated"))
        first.call(0, 1, *gated(tmp_path, 0))
        assert until(lambda: began(tmp_path / "log") == [0])
        for user, log, alive in ((ann, "of ann", 61), (bob, "of bob", 121)):
            wire = stack.enter_context(opened_by_hand(server, user, "work/nap"))
            for number in range(60):
                wire.call(number, 1, *arguments(str(tmp_path / log), 20, None))
            assert until(lambda alive=alive: server.module("work")["alive"] == alive)
        (tmp_path / "gate").touch()
        naps = {}
        for log in ("of ann", "of bob"):
            assert until(lambda log=log: len(began(tmp_path / log)) == 120)
            times = began(tmp_path / log)
            naps[log] = list(zip(times[::2], times[1::2], strict=True))
        # From the first call of bob to his last one, both have calls that wait.
        begin, end = naps["of bob"][0][0], naps["of bob"][-1][1]
        of_bob = sum(until - since for since, until in naps["of bob"])
        of_ann = sum(
            until - since for since, until in naps["of ann"] if since >= begin and until <= end
        )
        assert 2 < of_bob / of_ann < 4.5


@pytest.mark.parametrize("is_now", [True, False])
def test_calendar_of_a_module(compile_idl: CompileIdl, tmp_path: Path, is_now: bool) -> None:
    """It goes by the clock and the time zone of the server's machine."""
    begin, end = (-3600, 7200) if is_now else (7200, 14400)
    now = time.time()
    hours = "-".join(time.strftime("%H:%M", time.localtime(now + at)) for at in (begin, end))
    config = (
        offering(compile_idl(WORK))
        + f"[modules.work]\nmost_running = 1\ncalendar = [{{ hours = '{hours}', workers = 3 }}]\n"
    )
    workers = 3 if is_now else 1
    with (
        serving(tmp_path, config) as server,
        opened_by_hand(server, None, "work/gated") as wire,
    ):
        for number in range(4):
            wire.call(number, 1, *gated(tmp_path, number))
        assert until(lambda: len(began(tmp_path / "log")) == workers)
        assert until(lambda: server.module("work")["alive"] == 4)
        pools = {pool["module"]: pool["ready"] for pool in server.state_of("pools")}
        assert pools["work"] == workers
        assert len(began(tmp_path / "log")) == workers
        (tmp_path / "gate").touch()
        assert sorted(answers(wire, 4)) == [0, 1, 2, 3]


def test_all_cores_for_one_call(compile_idl: CompileIdl, tmp_path: Path) -> None:
    config = offering(compile_idl(WORK), workers=3) + "[modules.work]\ncores = 'all'\n"
    with serving(tmp_path, config) as server:
        with server.client() as grid:
            assert grid.function("work/threads")() == [3]
        with opened_by_hand(server, None, "work/gated") as wire:
            for number in range(3):
                wire.call(number, 1, *gated(tmp_path, number))
            assert until(lambda: server.module("work")["alive"] == 3)
            assert until(lambda: len(began(tmp_path / "log")) > 0)
            assert began(tmp_path / "log") == [0]
            (tmp_path / "gate").touch()
            assert answers(wire, 3) == [0, 1, 2]


def test_wall_time_of_a_call(compile_idl: CompileIdl, tmp_path: Path) -> None:
    config = offering(compile_idl(WORK)) + "[modules.work]\nwall_seconds = 0.1\n"
    with serving(tmp_path, config) as server, server.client() as grid:
        with pytest.raises(gridrpc.DeadlineExceeded, match="longer than its limit of 100ms"):
            hold(grid, tmp_path, "work").result(LONG)
        assert grid.function("work/add")(1, 2) == [3]


def test_processor_time_of_a_call(compile_idl: CompileIdl, tmp_path: Path) -> None:
    spin = compile_idl("Module spin; Define forever() { for (volatile long n = 0;; n++); }")
    config = offering(spin, compile_idl(WORK)) + "[modules.spin]\ncpu_seconds = 0.1\n"
    with serving(tmp_path, config) as server, server.client() as grid:
        message = "used more processor time than its limit of 100ms"
        with pytest.raises(gridrpc.DeadlineExceeded, match=message):
            grid.submit("spin/forever").result(LONG)
        assert grid.function("work/add")(1, 2) == [3]


def is_gone(pid: int) -> bool:
    """Whether a process ends soon, or has ended."""
    return until(lambda: not Path(f"/proc/{pid}").exists())


@pytest.mark.parametrize("idle", [0.1, 600])
def test_workers_of_a_module_start_with_its_calls_and_end_when_idle(
    compile_idl: CompileIdl, tmp_path: Path, idle: float
) -> None:
    modules = [compile_idl(named(name)) for name in ("one", "other")]
    tables = "".join(f"[modules.{name}]\nisolation = 'user'\n" for name in ("one", "other"))
    # A client has no more calls at a server than that has workers.
    config = offering(*modules, workers=2) + tables
    config = config.replace("[workers]\n", f"[workers]\nidle = {idle}\n")
    with serving(tmp_path, config) as server, server.client() as grid:
        assert [pool["module"] for pool in server.state_of("pools")] == [None]
        call = hold(grid, tmp_path, "one", 7)
        pids = {int(grid.function("other/pid")()[0]) for _ in range(5)}
        if idle < 1:
            # A call that runs is not idle, however long it takes.
            assert all(is_gone(pid) for pid in pids)
            (tmp_path / "gate").touch()
            assert call.result(LONG) == [7]
            assert grid.function("other/pid")()[0] not in pids
            assert until(lambda: [p["module"] for p in server.state_of("pools")] == [None])
        else:
            (tmp_path / "gate").touch()
            assert call.result(LONG) == [7]
            assert len(pids | {int(grid.function("other/pid")()[0]) for _ in range(5)}) <= 2


def test_status_counts_users_and_functions(work: Path, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    ann = authority.user("ann")
    with serving(tmp_path, offering(work), authority) as server:
        with server.client(ann) as grid:
            for _ in range(3):
                grid.function("work/add")(1, 2)
            assert server.state_of("clients") == {"ann": 1}

        def counted() -> Any:
            return server.state_of("users").get("ann", {}).get("returned")

        assert until(lambda: counted() == 3)
        assert server.state_of("functions")["work/add"]["returned"] == 3
        assert until(lambda: server.state_of("clients") == {})
        assert "ann" in server.command("status")

"""Whole programs that use a grid: functions of the main program, and what is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from processes import LONG, alive, descendants, run_script, running, start_script, until

#: Everything that stems from a client is gone so soon after it, seconds. A promise of the package.
SOON = 2.0


@pytest.fixture(autouse=True)
def _nothing_is_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Temporary files go to a folder of the test's own: other programs run meanwhile."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setenv("TMPDIR", str(folder))
    yield
    assert not [name for name in os.listdir(folder) if "gridrpc" in name.lower()]
    # Shared memory has no names at all.
    assert not [name for name in os.listdir("/dev/shm") if "gridrpc" in name.lower()]


def test_things_of_the_main_program(tmp_path: Path) -> None:
    source = """
        import dataclasses, enum, functools
        import gridrpc

        FACTOR = 3

        @dataclasses.dataclass
        class Point:
            x: int
            def scaled(self, n):
                return Point(self.x * n)
            @classmethod
            def origin(cls):
                return cls(0)

        class Colour(enum.Enum):
            RED = 1

        class Trouble(Exception):
            def __init__(self, what, code):
                super().__init__(what, code)
                self.code = code

        class Adder:
            def __init__(self, n):
                self.n = n
            def __call__(self, x):
                return x + self.n

        def scale(x):
            return x * FACTOR

        def make(x):
            return Point(scale(x))

        def trouble():
            raise Trouble("bad", 42)

        if __name__ == "__main__":
            with gridrpc.Grid(workers=2) as grid:
                result = lambda f, *a: grid.submit(f, *a).result(60)
                assert result(scale, 5) == 15
                point = result(make, 5)
                assert type(point) is Point and point == Point(15)
                assert result(Point(2).scaled, 4) == Point(8)
                assert type(result(Point.origin)) is Point
                assert type(result(Point, 3)) is Point
                assert result(lambda p: p.x, Point(9)) == 9
                assert result(functools.partial(scale, 2)) == 6
                assert result(Adder(10), 5) == 15
                assert result(lambda: Colour.RED) is Colour.RED
                assert result(lambda c: c is Colour.RED, Colour.RED)
                assert list(grid.map(make, range(5), chunk=2)) == [Point(3 * n) for n in range(5)]
                error = grid.submit(trouble).exception(60)
                assert type(error) is Trouble and error.code == 42
                assert "in trouble" in str(error.__cause__)
                shared = grid.share([Point(1), Point(2)])
                assert result(lambda points: points[1], shared) == Point(2)
                try:
                    result("__main__/scale", 1)
                except gridrpc.FunctionNotFound:
                    print("all well")
    """
    ended = run_script(tmp_path, source)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "all well\n", "")


def test_a_module_beside_the_script(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("class Thing:\n    pass\ndef make():\n    return Thing()\n")
    source = """
        import beside, gridrpc
        with gridrpc.Grid(workers=1) as grid:
            print(type(grid.submit(beside.make).result(60)) is beside.Thing)
    """
    ended = run_script(tmp_path, source)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "True\n", "")


def test_the_module_of_a_function_is_imported_once_for_all_workers(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text(
        "import os\n"
        "with open('imported', 'a') as file:\n    file.write(f'{os.getpid()}\\n')\n"
        "def meet(barrier, count):\n"
        "    import pathlib, time\n"
        "    pathlib.Path(barrier, str(os.getpid())).touch()\n"
        "    while len(os.listdir(barrier)) < count:\n        time.sleep(0.01)\n"
        "    return os.getpid()\n"
    )
    (tmp_path / "barrier").mkdir()
    source = """
        import os, beside, gridrpc
        with gridrpc.Grid(workers=3, start_method="spawn") as grid:
            calls = [grid.submit(beside.meet, "barrier", 3) for _ in range(3)]
            workers = {str(call.result(60)) for call in calls}
        imported = open("imported").read().split()
        print(len(workers), imported[0] == str(os.getpid()), len(imported))
        print(workers & set(imported))
    """
    ended = run_script(tmp_path, source)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "3 True 2\nset()\n", "")


def test_a_module_that_workers_cannot_import(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text(
        "import os\nif 'CLIENT' not in os.environ:\n    raise RuntimeError('not here')\n"
        "def f():\n    pass\n"
    )
    source = """
        import os
        os.environ["CLIENT"] = "1"
        import beside, gridrpc
        del os.environ["CLIENT"]
        with gridrpc.Grid(workers=2, start_method="spawn") as grid:
            print(repr(grid.submit(beside.f).exception(60)), grid.submit(abs, -1).result(60))
    """
    ended = run_script(tmp_path, source)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == "RuntimeError('not here') 1\n"


def test_code_from_standard_input(tmp_path: Path) -> None:
    code = "import gridrpc\nwith gridrpc.Grid(2) as g: print(g.submit(lambda: 6 * 7).result(60))"
    import sys

    ended = subprocess.run(
        [sys.executable, "-"], input=code, capture_output=True, text=True, timeout=LONG,
        cwd=tmp_path, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "42\n", "")


def test_what_functions_print_is_seen(tmp_path: Path) -> None:
    source = """
        import sys, gridrpc
        def speak():
            print("to stdout")
            print("to stderr", file=sys.stderr)
        with gridrpc.Grid(workers=1) as grid:
            grid.submit(speak).result(60)
    """
    ended = run_script(tmp_path, source)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "to stdout\n", "to stderr\n")


@pytest.fixture(autouse=True)
def modules(monkeypatch: pytest.MonkeyPatch, basics: Path) -> None:
    """Scripts find the module `basics`."""
    monkeypatch.setenv("GRIDRPC_MODULE_PATH", str(basics.parent))


OPEN = """
    import os, subprocess, sys, threading, time
    import gridrpc, remote
    grid = gridrpc.Grid(workers=3{more})
    grid.wait_until_ready(60)
    array = bytes(1_000_000)
    shared = grid.share(array)
    assert grid.submit({function}, shared).result(60) is not None
    calls = [grid.submit({sleep}) for _ in range(6)]
    while sum(call.profile.pid != 0 for call in calls) < 3:
        time.sleep(0.005)
    print("ready", flush=True)
"""

PYTHON = OPEN.format(more="", function="len", sleep="remote.nap, 1000")
NATIVE = OPEN.format(more=", worker='native'", function="'basics/echo'", sleep="'basics/nap', 1000")


def started(folder: Path, source: str) -> tuple[subprocess.Popen[str], set[int]]:
    """A script that has said `ready`, and the processes that stem from it."""
    process = start_script(folder, source)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", process.communicate()[1]
    processes = descendants(process.pid)
    assert len(processes) >= 4
    return process, processes


@pytest.mark.parametrize("source", [PYTHON, NATIVE], ids=["python", "native"])
def test_nothing_is_left_when_the_client_is_killed(tmp_path: Path, source: str) -> None:
    process, processes = started(tmp_path, source + "    time.sleep(1000)\n")
    process.kill()
    assert until(lambda: not running(processes), SOON), running(processes)
    process.communicate(timeout=LONG)


@pytest.mark.parametrize("source", [PYTHON, NATIVE], ids=["python", "native"])
@pytest.mark.parametrize(
    "wait",
    ["calls[0].result()", "list(gridrpc.as_completed(calls))", "time.sleep(1000)",
     "grid.close(cancel=False)"],
)  # fmt: skip
def test_ctrl_c(tmp_path: Path, source: str, wait: str) -> None:
    process, processes = started(tmp_path, source + f"    {wait}\n")
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=SOON + 3)
    assert process.returncode in {130, -signal.SIGINT}
    assert until(lambda: not running(processes), SOON)
    assert errors.count("Traceback") == 1
    assert errors.rstrip().endswith("KeyboardInterrupt")


def test_ctrl_c_in_a_with_block(tmp_path: Path) -> None:
    source = """
        import gridrpc, remote
        with gridrpc.Grid(workers=3) as grid:
            grid.wait_until_ready(60)
            try:
                print("ready", flush=True)
                for result in grid.map(remote.nap, [1000] * 100):
                    pass
            except KeyboardInterrupt:
                print("interrupted", flush=True)
                raise SystemExit(5)
    """
    process, processes = started(tmp_path, source)
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=SOON + 3)
    assert (process.returncode, output, errors) == (5, "interrupted\n", "")
    assert until(lambda: not running(processes), SOON)


ENDINGS = {
    "at the end of the script": ("", 0),
    "sys.exit": ("sys.exit(3)", 3),
    "os._exit": ("os._exit(4)", 4),
    "an error": ("raise ValueError(5)", 1),
    "SIGTERM": ("os.kill(os.getpid(), 15)", -15),
    "an error in a with block": ("exec('with grid: raise ValueError(6)')", 1),
    "deleted": ("del grid, calls, shared; import gc; gc.collect()", 0),
    "abort": ("os.abort()", -6),
}


@pytest.mark.parametrize("how", ENDINGS)
def test_nothing_is_left_however_the_client_ends(tmp_path: Path, how: str) -> None:
    code, status = ENDINGS[how]
    process, processes = started(tmp_path, PYTHON + f"    sys.stdin.read(1)\n    {code}\n")
    process.communicate(timeout=LONG)
    assert process.returncode == status
    assert until(lambda: not running(processes), SOON)


def test_no_process_is_left_after_close(tmp_path: Path) -> None:
    source = PYTHON + (
        "    import psutil\n"
        "    pids = [p.pid for p in psutil.Process().children(recursive=True)]\n"
        "    grid.close()\n"
        "    print(len(pids), [pid for pid in pids if psutil.pid_exists(pid)])\n"
        "    print(os.listdir('/proc/self/task').__len__())\n"
    )
    ended = run_script(tmp_path, source)
    assert ended.stdout == "ready\n4 []\n1\n"


def test_no_descriptor_is_left_after_close(tmp_path: Path) -> None:
    source = """
        import os, gridrpc, numpy
        def use():
            with gridrpc.Grid(workers=2) as grid:
                shared = grid.share(numpy.ones(100_000))
                list(grid.map(len, [numpy.ones(100_000)] * 10))
                grid.submit(len, shared).result(60)
                grid.submit(os._exit, 1).exception(60)
        use()
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            use()
        print(len(os.listdir("/proc/self/fd")) - before)
    """
    ended = run_script(tmp_path, source)
    assert (ended.returncode, ended.stdout) == (0, "0\n")


FORKS = {
    "submit": "grid.submit(abs, -1)",
    "submit a lambda": "grid.submit(lambda: 1)",
    "share": "grid.share(b'abc')",
    "map": "list(grid.map(abs, [1]))",
    "wait": "grid.wait_until_ready(60)",
    "result": "call.result()",
    "as_completed": "list(gridrpc.as_completed([call]))",
}


@pytest.mark.parametrize("use", FORKS)
def test_a_grid_belongs_to_the_process_that_opened_it(tmp_path: Path, use: str) -> None:
    source = f"""
        import os, sys, remote, gridrpc
        grid = gridrpc.Grid(workers=2)
        call = grid.submit(remote.wait_for, {str(tmp_path / "gate")!r}, 1)
        child = os.fork()
        if child == 0:
            try:
                {FORKS[use]}
            except gridrpc.GridClosed:
                sys.exit(7)
            sys.exit(8)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        open({str(tmp_path / "gate")!r}, "w").close()
        print(call.result(60), grid.submit(abs, -5).result(60))
    """
    ended = run_script(tmp_path, source)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "7\n1 5\n", "")


def test_process_pools_beside_a_grid(tmp_path: Path) -> None:
    source = """
        import multiprocessing, concurrent.futures as cf, subprocess
        import gridrpc, remote

        if __name__ == "__main__":
            context = multiprocessing.get_context("fork")
            with gridrpc.Grid(workers=2) as grid:
                calls = [grid.submit(remote.nap, 0.01, n) for n in range(20)]
                with cf.ProcessPoolExecutor(2, mp_context=context) as pool:
                    assert list(pool.map(abs, [-1, -2])) == [1, 2]
                    process = context.Process(target=print, args=("child",))
                    process.start()
                    process.join()
                    assert grid.submit(remote.add, 1, 2).result(60) == 3
                subprocess.run(["true"], check=True)
                assert [call.result(60) for call in calls] == list(range(20))
            print("well")
    """
    ended = run_script(tmp_path, source)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "child\nwell\n", "")


def test_a_forked_child_that_lives_on_does_not_keep_workers_alive(tmp_path: Path) -> None:
    source = PYTHON + (
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        time.sleep(30)\n"
        "        os._exit(0)\n"
        "    print(child, flush=True)\n"
        "    time.sleep(1000)\n"
    )
    process, processes = started(tmp_path, source)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    process.kill()
    gone = until(lambda: not running(processes - {child}), SOON)
    os.kill(child, signal.SIGKILL)
    process.communicate(timeout=LONG)
    assert gone
    assert until(lambda: not alive({child}) or not running({child}))


def test_there_is_room_for_all_files_before_workers_start(tmp_path: Path) -> None:
    # A copy of a process that has next to nothing open has as little room as there can be.
    source = """
        import os, sys
        import gridrpc

        def room():
            with open("/proc/self/status") as status:
                return int(status.read().partition("FDSize:")[2].split()[0])

        if copy := os.fork():
            sys.exit(os.waitpid(copy, 0)[1])
        before = room()
        with gridrpc.Grid(40):
            print(before, room())
    """
    before, behind = map(int, run_script(tmp_path, source).stdout.split())
    files = 64 + 3 * 40
    assert before < files <= behind


def test_two_grids_at_once(tmp_path: Path) -> None:
    source = """
        import gridrpc, remote
        with gridrpc.Grid(workers=1) as one, gridrpc.Grid(workers=1, worker="native") as two:
            with gridrpc.Grid(workers=1, transport="tcp") as three:
                calls = [one.submit(remote.same, 1), two.submit("basics/null"),
                         three.submit(remote.same, 3)]
                print([call.result(60) for call in calls])
            print(one.submit(remote.same, 4).result(60))
    """
    ended = run_script(tmp_path, source)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "[1, None, 3]\n4\n", "")


def test_workers_without_standard_streams(tmp_path: Path) -> None:
    import sys

    (tmp_path / "script.py").write_text(
        "import gridrpc\nwith gridrpc.Grid(1) as g:\n"
        "    open('out', 'w').write(str(g.submit(abs, -1).result(60)))\n"
    )
    command = f"exec {sys.executable} script.py <&- >&- 2>&-"
    ended = subprocess.run(["sh", "-c", command], cwd=tmp_path, timeout=LONG, check=False)
    assert ended.returncode == 0
    assert (tmp_path / "out").read_text() == "1"


def test_random_numbers_differ_between_workers(tmp_path: Path) -> None:
    source = """
        import random, numpy, gridrpc, remote
        def draw():
            remote.nap(0.02)
            return random.random(), numpy.random.random()
        with gridrpc.Grid(workers=4) as grid:
            grid.wait_until_ready(60)
            drawn = [call.result(60) for call in [grid.submit(draw) for _ in range(4)]]
        print(len({a for a, _ in drawn}), len({b for _, b in drawn}))
    """
    ended = run_script(tmp_path, source)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "4 4\n", "")


def test_output_that_nobody_reads_holds_nothing_up(tmp_path: Path) -> None:
    source = """
        import os, gridrpc
        reader, writer = os.pipe()
        error = os.dup(2)
        os.dup2(writer, 2)
        with gridrpc.Grid(workers=1) as grid:
            for _ in range(30):
                grid.submit(lambda: os.write(2, b"x" * 100_000) and None).result(60)
            print(grid.submit(abs, -1).result(60))
        os.dup2(error, 2)
        print("closed")
        os._exit(0)
    """
    ended = run_script(tmp_path, source.replace('print("closed")', 'print("closed", flush=True)'))
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "1\nclosed\n", "")


def test_a_closed_descriptor_is_no_workers_output(tmp_path: Path) -> None:
    source = """
        import os, gridrpc
        os.close(2)
        with gridrpc.Grid(workers=1) as grid:
            opened = open("mine", "w")
            grid.submit(lambda: os.write(2, b"not mine") and None).result(60)
            print(opened.fileno() > 2, grid.submit(abs, -1).result(60))
        print(repr(open("mine").read()))
    """
    ended = run_script(tmp_path, source)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "True 1\n''\n", "")


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_exit_handlers_of_workers_run(tmp_path: Path, method: str) -> None:
    source = f"""
        import atexit, gridrpc
        atexit.register(print, "the client's")
        def work(text):
            atexit.register(print, text, flush=True)
            atexit.register(lambda: 1 / 0)
        with gridrpc.Grid(workers=1, start_method="{method}") as grid:
            grid.submit(work, "closed").result(60)
        with gridrpc.Grid(workers=1, start_method="{method}", max_tasks_per_child=1) as grid:
            grid.submit(work, "replaced").result(60)
            grid.submit(abs, -1).result(60)
    """
    ended = run_script(tmp_path, source)
    assert (ended.returncode, ended.stdout) == (0, "closed\nreplaced\nthe client's\n")
    assert ended.stderr.count("ZeroDivisionError: division by zero") == 2


def test_an_exit_handler_that_hangs_does_not_keep_a_worker(tmp_path: Path) -> None:
    source = """
        import atexit, threading, gridrpc
        def work():
            atexit.register(threading.Event().wait)
        with gridrpc.Grid(workers=1) as grid:
            grid.submit(work).result(60)
        print("closed")
    """
    ended = run_script(tmp_path, source)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "closed\n", "")


def test_a_client_with_processes_of_its_own(tmp_path: Path) -> None:
    """Workers that are forked from it do not wait for them: only a parent can."""
    source = """
        import multiprocessing, gridrpc
        if __name__ == "__main__":
            context = multiprocessing.get_context("fork")
            manager = context.Manager()
            with gridrpc.Grid(workers=1, start_method="fork") as grid:
                print(grid.submit("multiprocessing/active_children").result(60))
            print(len(multiprocessing.active_children()))
            manager.shutdown()
    """
    ended = run_script(tmp_path, source)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "[]\n1\n", "")

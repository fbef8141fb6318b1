"""Functions and classes in Python, and data with names, through a directory."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import gridrpc
from directories import IDL, Site
from grids import CompileIdl
from processes import LONG, until
from servers import Server, began

PACKAGE = """
import os
import time

import numpy as np

def note(log, number):
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(file, f"{number}\\n".encode())
    os.close(file)

def server():
    return os.getppid()

def add(a, b=1):
    return a + b

def total(x):
    return float(np.asarray(x).sum())

def step(log, number):
    note(log, number)
    time.sleep(0.005)
    return number

def hold(log, gate, number):
    note(log, number)
    while not os.path.exists(gate):
        time.sleep(0.001)
    return number

def refuse(log):
    import gridrpc
    note(log, 1)
    raise gridrpc.LimitReached("of its own")

class Counter:
    def __init__(self, start=0):
        if start < 0:
            raise ValueError("start is negative")
        self.value = start

    def add(self, times=1):
        self.value += times
        return self.value

    def server(self):
        return os.getppid()
"""
NAMES = ("server", "add", "total", "step", "hold", "refuse")
#: A class of a compiled module.
CLASSES = (
    IDL
    + r"""
DefClass counter {
    DefState { static long value; }
    DefMethod add(IN long n, OUT long r[1]) { *r = value += n; }
    DefMethod parent(OUT long r[1]) { *r = getppid(); }
}
"""
)

pytestmark = pytest.mark.usefixtures("no_modules_here")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    (tmp_path / "package.py").write_text(PACKAGE)
    made = Site(tmp_path)
    with made.stack:
        yield made


@pytest.fixture
def where(compile_idl: CompileIdl) -> Path:
    return compile_idl(CLASSES)


def serve(site: Site, name: str, module: Path, **options: int) -> Server:
    """A server that offers the package as `calc`."""
    table = (
        f"[python.calc]\nfunctions = {[f'package:{one}' for one in NAMES]}\n"
        f"classes = ['package:Counter']\npath = '{site.folder}'\n"
    )
    return site.serve(name, module, python=table, **options)


def kill(server: Server) -> None:
    os.kill(server.pid, signal.SIGKILL)
    server.process.wait(timeout=LONG)


def test_python_functions_are_listed_and_called(site: Site, where: Path) -> None:
    serve(site, "one", where)
    serve(site, "two", where)
    listed = site.command("list")
    assert {f"calc/{name}" in listed for name in (*NAMES, "Counter")} == {True}
    assert "in Python" in site.command("why", "calc/add")
    grid = site.grid(trusted=True, policy="round-robin")
    assert len({grid.submit("calc/server").result() for _ in range(4)}) == 2
    add = grid.function("calc/add")
    assert (add(1), add(1, b=2), add.submit("a", "b").result()) == (2, 3, "ab")
    assert list(grid.map("calc/add", range(50))) == [*range(1, 51)]
    assert list(grid.starmap("calc/add", [(1, 2), {"a": 3, "b": 4}])) == [3, 7]
    with pytest.raises(TypeError, match="unsupported operand"):
        add(1, "b")
    assert [type(one) for one in grid.map("calc/add", [1, "a"], return_exceptions=True)] == [
        int, TypeError
    ]  # fmt: skip
    x = np.ones(1_000_000)
    assert grid.submit("calc/total", x).result() == 1_000_000
    assert all(one.send > 1e-4 for one in grid.function("calc/total").predictions(x))
    shared = grid.share(x)
    assert [grid.submit("calc/total", shared).result() for _ in range(3)] == [1_000_000] * 3
    early = [grid.submit("calc/total", shared) for _ in range(3)]
    shared.replace(np.full(10, 2.0))
    assert [grid.submit("calc/total", shared).result() for _ in range(3)] == [20.0] * 3
    assert [call.result() for call in early] == [1_000_000] * 3
    with pytest.raises(gridrpc.FunctionNotFound, match="similar names: `calc/add`"):
        grid.submit("calc/adds", 1)
    with pytest.raises(TypeError, match="no `ranks`"):
        grid.function("calc/add", ranks=2)
    with pytest.raises(TypeError, match="only calls of compiled modules"):
        grid.detach("calc/add", 1)
    # Functions of compiled modules beside them.
    assert grid.function("where/parent")(1)[0] > 0


def test_results_in_python_need_trust(site: Site, where: Path) -> None:
    serve(site, "one", where)
    grid = site.grid()
    for name in ("calc/add", "calc/Counter"):
        with pytest.raises(gridrpc.NotTrusted, match="trusted=true to its URL"):
            grid.object(name) if name.endswith("Counter") else grid.submit(name, 1)
    with pytest.raises(gridrpc.ConfigError, match="trusted=true"):
        gridrpc.Grid(directory=f"{site.directory.url}?trusted=perhaps")
    # All directories have to say so, as servers of all are used.
    url = f"{site.directory.url}?credentials={site.user}"
    with (
        gridrpc.Grid(directory=[f"{url}&trusted=true", url]) as mixed,
        pytest.raises(gridrpc.NotTrusted),
    ):
        mixed.submit("calc/add", 1)


def test_python_calls_move_until_they_have_begun(site: Site, where: Path, tmp_path: Path) -> None:
    servers = [serve(site, name, where) for name in ("one", "two", "three")]
    grid = site.grid(trusted=True, policy="round-robin")
    log, found = tmp_path / "log", []
    items = [(str(log), number) for number in range(200)]
    for value in grid.starmap("calc/step", items, return_exceptions=True):
        found.append(value)
        if len(found) == 50:
            kill(servers[0])
    lost = [one for one in found if isinstance(one, Exception)]
    # The one that ran, and those that were sent ahead: more of them if answers come late. Some 50
    # calls had been given to the server.
    assert len(lost) < 20
    assert {type(one) for one in lost} <= {gridrpc.WorkerLost}
    assert [one for one in found if one not in lost] == [
        number for number, one in enumerate(found) if one not in lost
    ]
    assert set(Counter(began(log)).values()) == {1}
    # What a function raises itself is no refusal.
    other = tmp_path / "other"
    with pytest.raises(gridrpc.LimitReached, match="of its own"):
        grid.submit("calc/refuse", str(other)).result(LONG)
    assert began(other) == [1]


def test_an_idempotent_call_runs_again_elsewhere(site: Site, where: Path, tmp_path: Path) -> None:
    servers = [serve(site, name, where) for name in ("one", "two")]
    grid = site.grid(trusted=True)
    log, gate = tmp_path / "log", tmp_path / "gate"
    calls = [
        grid.submit("calc/hold", str(log), str(gate), number, idempotent=number == 1)
        for number in (1, 2)
    ]
    assert until(lambda: sorted(began(log)) == [1, 2])
    kill(servers[0])
    gate.touch()
    ended = [call.exception(LONG) for call in calls]
    assert ended[0] is None
    assert calls[0].result() == 1
    assert ended[1] is None or isinstance(ended[1], gridrpc.WorkerLost)
    assert len(began(log)) == (3 if ended[1] is None else 2)


@pytest.mark.parametrize("name", ["calc/Counter", "where/counter"])
def test_objects_stay_at_their_server(site: Site, where: Path, name: str) -> None:
    first = serve(site, "one", where)
    serve(site, "two", where)
    grid = site.grid(trusted=True)
    is_python = name.startswith("calc")

    def value(result: object) -> int:
        return int(result if is_python else result[0])  # type: ignore[call-overload, index]

    def place(one: gridrpc.RemoteObject) -> int:
        return value(one.server() if is_python else one.parent())

    with grid.object(name) as one, grid.object(name) as other:
        assert [value(one.add(2)) for _ in range(3)] == [2, 4, 6]
        assert value(other.add(1)) == 1
        # Each counts for the next one.
        assert len({place(one), place(other)}) == 2
        kill(first)
        lost = [made for made in (one, other) if _is_lost(made)]
        assert len(lost) == 1
        with pytest.raises(gridrpc.ObjectLost, match=f"127.0.0.1:{first.port}"):
            lost[0].add(1)
        left = one if lost[0] is other else other
        assert value(left.add(1)) == (7 if left is one else 2)
    # A new one goes to the other server.
    with grid.object(name) as made:
        assert value(made.add(1)) == 1
    with pytest.raises(gridrpc.FunctionNotFound, match="no server offers"):
        grid.object("calc/Nothing")


def _is_lost(made: gridrpc.RemoteObject) -> bool:
    try:
        made.add(0)
    except (gridrpc.ObjectLost, gridrpc.WorkerLost):
        return True
    return False


def test_errors_of_constructors_are_those_of_the_class(site: Site, where: Path) -> None:
    serve(site, "one", where, workers=2)
    grid = site.grid(trusted=True)
    with pytest.raises(ValueError, match="start is negative"):
        grid.object("calc/Counter", -1)
    with grid.object("calc/Counter", start=4) as counter:
        assert counter.add() == 5
    function = grid.function("calc/server")
    assert until(lambda: [one.load for one in function.predictions()] == [0])


def test_named_data_is_found_at_its_servers(site: Site, where: Path) -> None:
    first = serve(site, "one", where)
    serve(site, "two", where)
    x = np.arange(12.0).reshape(3, 4)
    with first.client(site.user) as direct:
        direct.share(x, name="table")
        direct.share(b"abc", name="text")
    for policy in ("round-robin", "data-locality"):
        grid = site.grid(trusted=True, policy=policy)
        table = grid.shared("table")
        assert table.nbytes == x.nbytes
        places = {grid.submit("calc/total", table).result() for _ in range(4)}
        assert places == {66.0}
        states = [one.state for one in grid.function("calc/total").predictions(table)]
        assert sorted(states) == ["ready", "without the data"]
    assert grid.submit("calc/total", grid.shared("text")).result() == sum(b"abc")
    with pytest.raises(LookupError, match="none of 2 servers keeps data named `nothing`"):
        grid.shared("nothing")
    with pytest.raises(ValueError, match="is not a name"):
        grid.shared("a table")
    # A client sends what servers lack, and data of the same name is found at each.
    again = grid.share(x, name="again")
    assert {grid.submit("calc/total", again).result() for _ in range(4)} == {66.0}
    again.replace(2 * x)
    assert {grid.submit("calc/total", again).result() for _ in range(4)} == {132.0}
    assert grid.submit("calc/total", grid.shared("again")).result() == 132.0
    with pytest.raises(TypeError, match="found in the directory"):
        table.replace(x)
    kill(first)
    with pytest.raises((gridrpc.LimitReached, gridrpc.WorkerLost)):
        grid.submit("calc/total", table).result(LONG)


def test_different_data_of_one_name_is_an_error(site: Site, where: Path) -> None:
    for name, size in (("one", 3), ("two", 4)):
        with serve(site, name, where).client(site.user) as direct:
            direct.share(np.ones(size), name="table")
    with pytest.raises(ValueError, match="different data named `table`"):
        site.grid().shared("table")

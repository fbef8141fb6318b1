"""Grids on the workers of a session: calls, shared data and objects that end with their program."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import gridrpc
from gridrpc import GridClosed, SessionEnded
from processes import LONG, descendants, run_script
from sessions import command, session


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a session `shared` with two workers, which do not look for modules here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONPATH", raising=False)
        with session("shared", tmp_path_factory.mktemp("shared")) as folder:
            yield folder


@pytest.fixture
def attached() -> Iterator[gridrpc.AttachedGrid]:
    with gridrpc.attach("shared") as attached:
        yield attached


class Counter:
    def __init__(self, count: int) -> None:
        self.count = count

    def add(self, more: int) -> int:
        self.count += more
        return self.count


def test_the_grid_of_a_session(attached: gridrpc.AttachedGrid) -> None:
    grid = attached.grid
    assert attached.grid is grid
    assert grid.submit(pow, 2, 10).result(LONG) == 1024
    assert list(grid.map(abs, range(-50, 0))) == [*range(50, 0, -1)]
    data = grid.share(np.arange(100_000))
    assert grid.submit(np.sum, data).result(LONG) == np.arange(100_000).sum()
    with grid.object(Counter, 5, start_timeout=LONG) as counter:
        assert [counter.add(n) for n in range(3)] == [5, 6, 8]
    # Its calls are not maps of the session.
    assert dict(attached.maps) == {}
    attached.close()
    with pytest.raises(GridClosed):
        grid.submit(abs, 1)
    with pytest.raises(SessionEnded):
        attached.grid  # noqa: B018 - opens a grid


def process(_: object) -> int:
    return os.getpid()


def processes(server: str) -> set[int]:
    return set(gridrpc.current_grid().map(process, range(20), server=server))


def test_functions_of_a_session_make_calls_on_its_workers(attached: gridrpc.AttachedGrid) -> None:
    grid = attached.grid
    for server in ("localhost", "shared"):
        found = grid.submit(processes, server).result(LONG)
        # It has two workers, which are no children of this program.
        assert 1 <= len(found) <= 2
        assert not found & descendants()


def test_functions_elsewhere_cannot_bind_calls_to_a_session() -> None:
    servers = ["session:shared", "local://own?workers=1"]
    with (
        gridrpc.Grid(servers=servers) as grid,
        pytest.raises(gridrpc.ServerNotFound, match="is shared with other programs"),
    ):
        grid.submit(processes, "shared", server="own").result(LONG)


def test_calls_end_with_their_program(tmp_path: Path) -> None:
    source = """
        import gridrpc, os, time

        def sleep(folder):
            open(f"{folder}/begun", "w").close()
            time.sleep(1000)

        with gridrpc.attach("shared") as attached:
            attached.grid.submit(sleep, os.getcwd())
            while not os.path.exists("begun"):
                time.sleep(0.01)
            os._exit(0)
    """
    run_script(tmp_path, source)
    assert (tmp_path / "begun").exists()
    with gridrpc.attach("shared") as attached:
        # Both workers are free for one call.
        assert attached.grid.submit(abs, -1, cores=2).result(LONG) == 1


#: Functions, classes and calls of a module that only this program finds.
MODULE = """
import gridrpc

class Price:
    def __init__(self, value):
        self.value = value

    def doubled(self):
        return 2 * self.value

def double(price):
    return Price(price.doubled())

def nested(price):
    return gridrpc.current_grid().submit(double, price).result()
"""

PROGRAM = """
import sys
sys.path.insert(0, "modules")
import gridrpc
import mine
from mine import Price

def by_value(n):
    return mine.double(Price(n)).value

with gridrpc.attach("shared") as attached:
    grid = attached.grid
    print({call})
"""


@pytest.mark.parametrize(
    ("call", "printed"),
    [
        ("grid.submit(mine.double, Price(4)).result().value", "8"),
        ("grid.submit('mine/double', Price(4)).result().value", "8"),
        ("grid.submit(by_value, 4).result()", "8"),
        ("grid.submit(lambda: mine.Price(4).doubled()).result()", "8"),
        ("grid.submit(str.upper, 'a', server='shared').result()", "A"),
        ("[p.value for p in grid.map(mine.double, map(Price, range(3)))]", "[0, 2, 4]"),
        ("[p.value for p in grid.map('mine/double', map(Price, range(3)))]", "[0, 2, 4]"),
        ("list(grid.map(by_value, range(3)))", "[0, 2, 4]"),
        ("grid.submit(len, [Price(1)]).result()", "1"),
        ("grid.submit(mine.nested, Price(4)).result().value", "8"),
        ("[p.value for p in grid.map(mine.nested, [Price(1)] * 9, chunk=1)][6:]", "[2, 2, 2]"),
        ("grid.object(Price, 4).doubled()", "8"),
    ],
)  # fmt: skip
def test_workers_find_the_modules_of_the_program(
    tmp_path: Path, home: Path, call: str, printed: str
) -> None:
    # Workers that have no module of an earlier program.
    command("stop", "shared", "--forget", cwd=home)
    command("start", "shared", "--workers", "2", cwd=home)
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules/mine.py").write_text(MODULE)
    ended = run_script(tmp_path, PROGRAM.format(call=call))
    assert (ended.stdout, ended.stderr) == (f"{printed}\n", "")

"""Objects of Python classes that a server offers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import gridrpc
from processes import LONG, until
from servers import Authority, Server, offering

CLASSES = """
import os

class Counter:
    "Counts."

    def __init__(self, start=0, *, step=1):
        if start < 0:
            raise ValueError("start is negative")
        self.value, self.step = start, step

    def add(self, times=1):
        "Counts on."
        self.value += times * self.step
        return self.value

    def fail(self):
        raise KeyError("nothing")

    def pid(self):
        return os.getpid()

    def crash(self):
        os._exit(3)

    def _private(self):
        return "secret"

class Closing:
    def __init__(self, file):
        self.file = file

    def close(self):
        open(self.file, "w").close()

class Hidden:
    pass
"""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Server]:
    """A server with classes, in the common pool and in pools of users."""
    (tmp_path / "classes.py").write_text(CLASSES)
    names = "classes = ['classes:Counter', 'classes:Closing']"
    config = (
        offering(workers=2, python=True)
        + f"[python.calc]\n{names}\npath = '{tmp_path}'\n"
        + f"[python.apart]\n{names}\npath = '{tmp_path}'\nisolation = 'user'\n"
        + "[users.eve]\nmodules = []\n"
    )
    server = Server(tmp_path, config, Authority(tmp_path))
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()


@pytest.fixture
def anna(served: Server) -> Path:
    assert served.authority is not None
    return served.authority.user("anna")


def gone(pid: int) -> bool:
    return until(lambda: not Path(f"/proc/{pid}").exists())


@pytest.mark.parametrize("module", ["calc", "apart"])
def test_objects_keep_their_state(served: Server, anna: Path, module: str) -> None:
    with served.client(anna, trusted=True) as grid:
        with (
            grid.object(f"{module}/Counter", 5, step=2) as one,
            grid.object(f"{module}/Counter") as other,
        ):
            assert one.add() == 7
            calls = [one.add.submit(times=2) for _ in range(10)]
            assert [call.result(LONG) for call in calls] == [*range(11, 51, 4)]
            assert other.add() == 1
            assert one.pid() != other.pid()
            assert one.add.__doc__ == "Counts on."
            assert {"add", "fail", "pid", "crash"} <= set(dir(one))
            assert "_private" not in dir(one)
            pid = one.pid()
        assert gone(pid)
        # Workers are free again.
        with grid.object(f"{module}/Counter") as one:
            assert one.add() == 1
            pid = one.pid()
    # The grid is closed, and so is the object.
    assert gone(pid)


def test_errors_of_objects(served: Server, anna: Path) -> None:
    with served.client(anna, trusted=True) as grid:
        with pytest.raises(ValueError, match="start is negative"):
            grid.object("calc/Counter", -1)
        with pytest.raises(TypeError, match="unexpected keyword"):
            grid.object("calc/Counter", nothing=1)
        for name in ("calc/Hidden", "calc/counter", "nothing/Counter"):
            with pytest.raises(gridrpc.FunctionNotFound):
                grid.object(name)
        with grid.object("calc/Counter") as counter:
            with pytest.raises(KeyError, match="nothing"):
                counter.fail()
            with pytest.raises(AttributeError, match="no method `subtract`; it has add"):
                _ = counter.subtract
            with pytest.raises(AttributeError):
                _ = counter._private
            assert counter.add() == 1
            with pytest.raises(gridrpc.WorkerLost, match="exited with status 3"):
                counter.crash()
            with pytest.raises(gridrpc.ObjectLost):
                counter.add()
    with served.client(anna) as grid, pytest.raises(gridrpc.NotTrusted):
        grid.object("calc/Counter")


def test_users_have_objects_of_their_own(served: Server, anna: Path) -> None:
    assert served.authority is not None
    ben, eve = served.authority.user("ben"), served.authority.user("eve")
    with (
        served.client(anna, trusted=True) as of_anna,
        served.client(ben, trusted=True) as of_ben,
        of_anna.object("calc/Counter", 100) as counter,
        of_ben.object("calc/Counter") as other,
    ):
        assert (counter.add(), other.add()) == (101, 1)
        with served.client(eve, trusted=True) as grid, pytest.raises(gridrpc.FunctionNotFound):
            grid.object("calc/Counter")
        # Without an object there is nothing to make or call, in no worker that others use.
        wire = served.connect(ben)
        wire.serve()
        for number, name in enumerate(("calc/Counter.__init__", "calc/Counter.add")):
            wire.name(number, name)
            wire.call(number, number, b"")
            kind, body = wire.receive(6, 7, 52)
            assert (kind, b"names no object" in body) == (52, True)
        wire.name(9, "calc/Counter._private")
        wire.call(9, 9, b"")
        assert wire.failure()[0] == "gridrpc.FunctionNotFound"
        wire.close()
        assert counter.add() == 102


def test_an_object_ends_with_its_client(served: Server, anna: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import gridrpc, sys, time\n"
        f"with gridrpc.Grid(servers=[{served.url(anna, trusted=True)!r}]) as grid:\n"
        "    counter = grid.object('calc/Counter')\n"
        "    print(counter.pid(), flush=True)\n"
        "    time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        pid = int(client.stdout.readline())
        os.kill(pid, 0)
        client.kill()
    assert gone(pid)


def test_an_object_is_closed_by_its_method(served: Server, anna: Path, tmp_path: Path) -> None:
    with served.client(anna, trusted=True) as grid:
        with grid.object("calc/Closing", str(tmp_path / "closed")):
            assert not (tmp_path / "closed").exists()
        assert (tmp_path / "closed").exists()

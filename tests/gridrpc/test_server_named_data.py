"""Shared data with names: a server keeps it for later programs and other users."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import gridrpc
from gridrpc import _native
from grids import PROGRAM, CompileIdl
from processes import LONG, fill, small_disk, until
from servers import Authority, Server, offering

pytestmark = pytest.mark.usefixtures("no_modules_here")

IDL = """
Module stat;
Define sum(IN long n, IN double x[n], OUT double s[1])
{ *s = 0; for (long i = 0; i < n; i++) *s += x[i]; }
Define slow(IN string gate, IN long n, IN double x[n], OUT double s[1])
{ while (access(gate, 0)) usleep(1000); *s = 0; for (long i = 0; i < n; i++) *s += x[i]; }
""".replace("Module stat;", "Module stat;\nGlobals { #include <unistd.h> }")

TOOLS = """
import hashlib

def described(x):
    return type(x).__name__, str(x.dtype), x.shape, x.flags.writeable

def digest(data):
    return type(data).__name__, hashlib.sha256(data).hexdigest()

def total(x):
    return float(x.sum())
"""


class Lab(Server):
    """A server with the users anna, ben of the group `quants`, and eve."""

    def __init__(self, folder: Path, config: str, authority: Authority) -> None:
        self.users = {
            "anna": authority.user("anna"),
            "ben": authority.user("ben", "quants"),
            "eve": authority.user("eve"),
        }
        super().__init__(folder, config, authority)

    @contextmanager
    def of(self, user: str, *, trusted: bool = False) -> Iterator[gridrpc.Grid]:
        with self.client(self.users[user], trusted=trusted) as grid:
            yield grid

    def restart(self, *, kill: bool = False) -> None:
        if kill:
            self.process.kill()
            self.process.wait(timeout=LONG)
        else:
            self.stop()
        self.start()

    def files(self) -> list[str]:
        """Files with data."""
        folder = self.state / "shared"
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@contextmanager
def lab(folder: Path, module: Path, more: str = "", *, python: bool = False) -> Iterator[Lab]:
    config = offering(module, python=python)
    if python:
        (folder / "tools.py").write_text(TOOLS)
        names = ["tools:described", "tools:digest", "tools:total"]
        config += f"[python.tools]\nfunctions = {names}\npath = '{folder}'\n"
    server = Lab(folder, config + more, Authority(folder))
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()


@pytest.fixture
def module(compile_idl: CompileIdl) -> Path:
    return compile_idl(IDL)


def test_data_is_used_by_later_programs_and_other_users(tmp_path: Path, module: Path) -> None:
    x = np.arange(1000.0)
    with lab(tmp_path, module) as served:
        with served.of("anna") as grid:
            prices = grid.share(x, name="prices", readers=["ben"])
            assert prices.nbytes == x.nbytes
            assert grid.function("stat/sum")(prices) == [x.sum()]
            # No bytes of the array travel with a call.
            call = grid.submit("stat/sum", prices)
            assert call.result(LONG) == [x.sum()]
            assert call.profile.bytes_in < 1000
        with served.of("anna") as grid:
            assert grid.submit("stat/sum", grid.shared("prices")).result(LONG) == [x.sum()]
        with served.of("ben") as grid:
            function = grid.function("stat/sum")
            assert function(grid.shared("anna/prices")) == [x.sum()]
            # The same again, after the reference was dropped.
            assert function(grid.shared("anna/prices")) == [x.sum()]
            assert [s[0] for s in grid.map(function, [grid.shared("anna/prices")] * 3)] == (
                [x.sum()] * 3
            )
            (name,) = grid.shared_names()
            assert name[:5] == ("anna/prices", 8000, "float64", (1000,), ("ben",))
            assert 0 < name.until - time.time() <= 7 * 24 * 3600
        served.restart()
        with served.of("ben") as grid:
            assert grid.function("stat/sum")(grid.shared("anna/prices")) == [x.sum()]
        status = served.command("status")
        assert "shared data: 1 names, 8000 bytes" in status
        url = served.url(served.users["ben"])
        shown = subprocess.run(
            [PROGRAM, "list", "--shared", "--server", url],
            capture_output=True, text=True, check=True, timeout=LONG,
        )  # fmt: skip
        assert shown.stdout.split() == ["anna/prices", "8000", "float64[1000]"]

    def recorded(event: str) -> list[tuple[str, str]]:
        return [(one["user"], one["function"]) for one in served.audit(event)]

    assert until(lambda: recorded("share") == [("anna", "anna/prices")])
    assert until(lambda: ("ben", "anna/prices") in recorded("use"))


def test_others_cannot_tell_whether_a_name_exists(tmp_path: Path, module: Path) -> None:
    with lab(tmp_path, module) as served, served.of("anna") as anna:
        anna.share(np.zeros(3), name="prices", readers="@quants")
        anna.share(np.zeros(3), name="own")
        with served.of("ben") as ben, served.of("eve") as eve:
            assert ben.function("stat/sum")(ben.shared("anna/prices")) == [0]
            errors = {}
            for name in ("anna/prices", "anna/own", "anna/nothing", "nobody/prices", "prices"):
                with pytest.raises(LookupError) as caught:
                    eve.shared(name)
                errors[name] = str(caught.value).replace(f"`{name}`", "NAME")
            assert len(set(errors.values())) == 1, errors
            assert eve.shared_names() == []
            with pytest.raises(LookupError):
                eve.unshare("anna/prices")
            with pytest.raises(LookupError):
                ben.unshare("prices")
            # The number of data is of no use to others.
            stolen = ben.shared("anna/prices")
            wire = served.connect(served.users["eve"])
            wire.serve()
            wire.name(0, "stat/sum")
            wire.call(1, 0, blobs=(stolen._version.number,))
            error, message = wire.failure()
            assert error == "gridrpc.DataNotFound", message
            wire.close()
            # Nor can they send their own data under that number.
            wire = served.connect(served.users["eve"])
            wire.serve()
            wire.send(10, stolen._version.number.to_bytes(8, "little") + b"\0\0")
            assert wire.has_ended()
            wire.close()
            # The rights are those of the latest data.
            anna.share(np.ones(3), name="prices", readers="eve")
            assert eve.function("stat/sum")(eve.shared("anna/prices")) == [3]
            with pytest.raises(LookupError):
                ben.shared("anna/prices")


@pytest.mark.parametrize(
    "name", ["", "..", "../x", "a/../b", "/etc/passwd", ".new-1", "a b", "a\n", "ä", "x" * 65]
)
def test_names_that_are_refused(tmp_path: Path, module: Path, name: str) -> None:
    with lab(tmp_path, module) as served, served.of("anna") as grid:
        with pytest.raises(ValueError, match="not a name for shared data"):
            grid.share(np.zeros(3), name=name)
        # A client that does not check.
        description = {"name": name, "keep": 5, "readers": [], "dtype": None, "bytes": 0}
        with pytest.raises(ValueError, match="not a name for shared data"):
            _native.NamedData(grid._native).share(json.dumps(description), b"")
        assert served.files() == []


def test_values_that_are_refused(tmp_path: Path, module: Path) -> None:
    with lab(tmp_path, module) as served, served.of("anna", trusted=True) as grid:
        for value in ({"a": 1}, [1, 2], np.array([{}]), np.array(["a"]), np.ma.zeros(3)):
            with pytest.raises(TypeError, match="cannot be shared by name"):
                grid.share(value, name="x")
        with pytest.raises(ValueError, match="`keep_days = 7`"):
            grid.share(b"x", name="x", keep=8 * 24 * 3600)
        with pytest.raises(ValueError, match="keep is"):
            grid.share(b"x", name="x", keep=0)
        with pytest.raises(TypeError, match="with a `name`"):
            grid.share(b"x", keep=5)
        assert served.files() == []
    with gridrpc.Grid(workers=1) as grid, pytest.raises(TypeError, match="only a server keeps"):
        grid.share(b"x", name="x")


def test_python_functions_get_arrays_and_bytes_and_no_pickles(tmp_path: Path, module: Path) -> None:
    matrix = np.asfortranarray(np.arange(6, dtype="int16").reshape(2, 3))
    code = "[users.ben]\ncode = true\n"
    with lab(tmp_path, module, code, python=True) as served:
        with served.of("anna", trusted=True) as grid:
            grid.share(matrix, name="matrix", readers="all")
            grid.share(b"\x80\x05bytes that look like a pickle", name="bytes", readers="all")
            grid.share(np.array(7, "float32"), name="one", readers="all")
        (file,) = (served.state / "shared" / "anna").glob("matrix")
        assert file.read_bytes().endswith(matrix.tobytes("F"))
        with served.of("ben", trusted=True) as grid:
            shared = grid.shared("anna/matrix")
            assert grid.submit("tools/described", shared).result(LONG) == (
                "ndarray", "int16", (2, 3), False,
            )  # fmt: skip
            assert grid.submit("tools/total", shared).result(LONG) == 15
            kind, digest = grid.submit("tools/digest", grid.shared("anna/bytes")).result(LONG)
            assert kind == "memoryview"
            content = b"\x80\x05bytes that look like a pickle"
            assert digest == hashlib.sha256(content).hexdigest()
            assert grid.submit("tools/total", grid.shared("anna/one")).result(LONG) == 7
            # A function that the client sends.
            assert grid.submit(lambda x: x[1, 2], shared).result(LONG) == 5


def test_data_is_replaced_and_running_calls_keep_theirs(tmp_path: Path, module: Path) -> None:
    gate = tmp_path / "gate"
    with lab(tmp_path, module) as served, served.of("anna") as grid:
        old = grid.share(np.ones(10), name="x")
        running = grid.submit("stat/slow", str(gate), old)
        assert until(lambda: running.profile.sent > 0)
        new = grid.share(np.full(10, 2.0), name="x")
        queued = grid.submit("stat/sum", new)
        gate.touch()
        assert running.result(LONG) == [10]
        assert queued.result(LONG) == [20]
        assert served.files() == ["anna/x"]
        never_used = grid.shared("x")
        grid.unshare("x")
        assert served.files() == []
        with pytest.raises(LookupError):
            grid.shared("x")
        # A program that has used it keeps it, another one does not get it.
        assert grid.submit("stat/sum", new).result(LONG) == [20]
        del never_used
        assert until(lambda: [one["function"] for one in served.audit("unshare")] == ["anna/x"])


def test_a_reference_replaces_data_under_its_name(tmp_path: Path, module: Path) -> None:
    gate = tmp_path / "gate"
    with lab(tmp_path, module) as served, served.of("anna") as grid:
        prices = grid.share(np.full(10, 1.0), name="prices", readers=["ben"])
        call = grid.submit("stat/slow", str(gate), prices)
        prices.replace(np.full(20, 2.0))
        assert prices.nbytes == 160
        # The only worker runs the first call.
        later = grid.submit("stat/sum", prices)
        gate.touch()
        assert call.result(LONG) == [10]
        assert later.result(LONG) == [40]
        with served.of("ben") as ben:
            found = ben.shared("anna/prices")
            assert ben.submit("stat/sum", found).result(LONG) == [40]
            with pytest.raises(TypeError, match="another program has shared"):
                found.replace(np.zeros(3))
        with pytest.raises(TypeError, match="cannot be shared by name"):
            prices.replace({"no": "array"})
        assert grid.submit("stat/sum", prices).result(LONG) == [40]


def test_old_data_is_removed(tmp_path: Path, module: Path) -> None:
    with lab(tmp_path, module) as served:
        with served.client() as grid:
            grid.share(np.ones(10), name="short", keep=0.5)
            grid.share(np.ones(10), name="long", keep=3600)
            assert until(lambda: served.files() == ["root/long"])
            with pytest.raises(LookupError, match="keeps no `short`"):
                grid.shared("short")
            stale = grid.share(np.ones(10), name="stale", keep=0.5)
            assert until(lambda: len(served.audit("unshare")) == 1)
            served.process.kill()
            served.process.wait(timeout=LONG)
            time.sleep(0.5)
            served.start()
            with pytest.raises(LookupError, match=r"grid\.shared"):
                grid.submit("stat/sum", stale).result(LONG)
        assert until(
            lambda: [one.get("outcome") for one in served.audit("unshare")] == ["expired"] * 2
        )


def test_the_limit_names_itself(tmp_path: Path, module: Path) -> None:
    more = "[everyone]\nshared_bytes = '1 MiB'\n"
    with lab(tmp_path, module, more) as served, served.of("anna") as grid:
        grid.share(bytes(600_000), name="one")
        with pytest.raises(gridrpc.LimitReached, match='limit `shared_bytes` of user "anna"'):
            grid.share(bytes(600_000), name="two")
        grid.share(bytes(900_000), name="one")
        with served.of("ben") as other:
            other.share(bytes(900_000), name="one")
        assert served.files() == ["anna/one", "ben/one"]
        grid.unshare("one")
        grid.share(bytes(600_000), name="two")
        assert until(lambda: [one["outcome"] for one in served.audit("limit")] == ["shared_bytes"])


SHARING = """
import sys
import gridrpc
with gridrpc.Grid(servers=[sys.argv[1]]) as grid:
    print("begin", flush=True)
    grid.share(bytes(160 << 20), name="large")
"""


def test_a_client_and_a_server_that_are_killed_while_they_share(
    tmp_path: Path, module: Path
) -> None:
    with lab(tmp_path, module) as served:
        with served.of("anna") as grid:
            grid.share(np.ones(10), name="large")
        for victim in ("client", "server"):
            command = [sys.executable, "-c", SHARING, served.url(served.users["anna"])]
            with subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            ) as one:
                assert until(lambda: any(".new-" in file for file in served.files()))
                if victim == "client":
                    one.kill()
                else:
                    served.process.kill()
                    served.process.wait(timeout=LONG)
                    served.start()
                    one.wait(timeout=LONG)
                    assert one.returncode != 0
            # The data from before is whole.
            with served.of("anna") as grid:
                assert grid.function("stat/sum")(grid.shared("large")) == [10]
        assert served.files() == ["anna/large"]
        with served.of("anna") as grid:
            large = np.arange(6 << 20, dtype=float)
            assert grid.function("stat/sum")(grid.share(large, name="large")) == [large.sum()]


def test_damaged_files(tmp_path: Path, module: Path) -> None:
    with lab(tmp_path, module) as served:
        with served.of("anna") as grid:
            grid.share(np.ones(1000), name="x")
            grid.share(np.ones(1000), name="y")
        served.stop()
        # Before it is in memory, and before a start.
        os.truncate(served.state / "shared" / "anna" / "y", 2000)
        served.start()
        os.truncate(served.state / "shared" / "anna" / "x", 2000)
        with served.of("anna") as grid:
            with pytest.raises(LookupError, match=r"cannot read .* not complete; share it again"):
                grid.shared("x")
            with pytest.raises(LookupError, match="keeps no `y`"):
                grid.shared("y")
            assert grid.function("stat/sum")(grid.share(np.ones(5), name="x")) == [5]
        assert served.says("shared data cannot be read")


def test_a_full_disk_keeps_what_was_there(tmp_path: Path, module: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    with small_disk(state, "16m"):
        state.chmod(0o700)
        with lab(tmp_path, module) as served, served.of("anna") as grid:
            grid.share(np.ones(10), name="x")
            filler = served.state / "filler"
            fill(filler)
            with pytest.raises(gridrpc.RemoteError, match=r"`x` cannot be shared: .*No space left"):
                grid.share(np.zeros(1_000_000), name="x")
            assert served.files() == ["anna/x"]
            assert grid.function("stat/sum")(grid.shared("x")) == [10]
            filler.unlink()
            assert grid.function("stat/sum")(grid.share(np.ones(1000), name="x")) == [1000]

"""Modules of a server: added, replaced and removed while clients call them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import gridrpc
from grids import CompileIdl
from processes import LONG, until
from servers import WORK, Server, hold, named, offering, serving

pytestmark = pytest.mark.usefixtures("no_modules_here")


@pytest.fixture
def work(compile_idl: CompileIdl) -> Path:
    return compile_idl(WORK)


@pytest.fixture
def watching(tmp_path: Path, work: Path) -> Iterator[Server]:
    """A server with two workers and a watched folder, where the module `work` is."""
    (tmp_path / "watched").mkdir()
    shutil.copy(work, tmp_path / "watched" / "work.so")
    with serving(tmp_path, offering(workers=2)) as server:
        yield server


#: A version with the same parameters, and one with others.
REPLACED = WORK.replace("*r = a + b", "*r = a * b")
CHANGED = WORK.replace(
    "IN long b, OUT long r[1]) { *r = a + b",
    "IN long b, IN long c, OUT long r[1]) { *r = a + b + c",
)


def test_modules_are_added_and_removed(tmp_path: Path, compile_idl: CompileIdl) -> None:
    with serving(tmp_path, offering()) as server:
        assert server.command("list") == "the server offers no functions\n"
        with server.client() as grid:
            with pytest.raises(gridrpc.FunctionNotFound, match="other/add"):
                grid.function("other/add")
            assert "module other is published" in server.command("add", compile_idl(named("other")))
            assert "has not changed" in server.command("add", compile_idl(named("other")))
            assert "other/add" in server.command("list")
            assert grid.function("other/add")(1, 2) == [3]
            assert "module other is removed" in server.command("remove", "other")
            with pytest.raises(gridrpc.FunctionNotFound, match="no module `other`"):
                grid.submit("other/add", 1, 2).result(LONG)
            assert "there is no module `other`" in server.command("remove", "other", status=1)
        # One that was added is there after a restart.
        server.command("add", compile_idl(named("other")))
        server.stop()
        server.start()
        assert server.module("other")["functions"] > 5
    changes = ["add", "add", "remove", "remove", "add"]
    assert until(
        lambda: [record["outcome"].split()[0] for record in server.audit("admin")] == changes
    )


def test_calls_finish_with_the_version_that_they_began_with(
    watching: Server, compile_idl: CompileIdl, tmp_path: Path
) -> None:
    with watching.client() as grid:
        running = hold(grid, tmp_path, "work")
        assert grid.submit("work/add", 3, 5).result(LONG) == [8]
        watching.publish(compile_idl(REPLACED), "work")
        assert until(lambda: grid.submit("work/add", 3, 5).result(LONG)[0] == 15)
        (tmp_path / "gate").touch()
        assert running.result(LONG) == [0]


def test_a_changed_interface_is_reported(watching: Server, compile_idl: CompileIdl) -> None:
    with watching.client() as grid:
        add = grid.function("work/add")
        assert add(3, 5) == [8]
        watching.publish(compile_idl(CHANGED), "work")
        assert watching.says("module is published")
        assert until(lambda: "long c" in str(watching.command("list", "--json")))
        with pytest.raises(gridrpc.InterfaceChanged, match=r"IN long c"):
            add(3, 5)
        assert grid.function("work/add")(3, 5, 7) == [15]
        # What has not changed continues.
        assert grid.function("work/pid")()[0] > 0


def test_queued_calls_of_a_module_that_is_removed_end(watching: Server, tmp_path: Path) -> None:
    with watching.client() as grid:
        running = [hold(grid, tmp_path, "work", number) for number in range(2)]
        queued = [grid.submit("work/add", 1, item) for item in range(50)]
        (watching.folder / "watched" / "work.so").unlink()
        assert watching.says("module is withdrawn module=work")
        (tmp_path / "gate").touch()
        assert [call.result(LONG)[0] for call in running] == [0, 1]
        outcomes = [call.exception(LONG) for call in queued]
        # Those that the server had begin with the module, the others find none.
        kinds = {type(error) for error in outcomes}
        assert kinds <= {type(None), gridrpc.FunctionNotFound}
        assert gridrpc.FunctionNotFound in kinds


def test_a_file_that_is_no_module_is_reported_once(watching: Server, tmp_path: Path) -> None:
    (tmp_path / "watched" / "text.so").write_text("no module")
    assert watching.says("module is not published")
    assert watching.says("text.so")
    with watching.client() as grid:
        assert grid.function("work/add")(1, 2) == [3]
    assert sum("text.so" in line for line in watching.lines()) == 1
    assert "no module" not in watching.command("list")
    assert "text.so" in watching.command("add", tmp_path / "watched" / "text.so", status=1)

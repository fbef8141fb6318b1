"""Environment variables and working directories of workers and of calls."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import gridrpc
import remote
from gridrpc import Config, ConfigError, Grid, with_environment
from grids import opened
from hosts import on_hosts, rig_of, server
from processes import run_script

NAME = "GRIDRPC_TEST_VARIABLE"


def seen(name: str = NAME) -> tuple[str | None, str]:
    return os.environ.get(name), os.getcwd()


def seen_by_c(name: str) -> str | None:
    import ctypes

    library = ctypes.CDLL(None)
    library.getenv.restype = ctypes.c_char_p
    value: bytes | None = library.getenv(name.encode())
    return None if value is None else value.decode()


def fail() -> None:
    raise KeyError(os.getcwd())


async def seen_by_a_coroutine() -> tuple[str | None, str]:
    return seen()


@pytest.mark.parametrize(
    "settings", [{"start_method": "spawn"}, {"start_method": "auto"}, {"transport": "tcp"}]
)
def test_of_all_workers(tmp_path: Path, settings: dict[str, Any]) -> None:
    environment = {NAME: "value of all", "GRIDRPC_TEST_NUMBER": 3, "GRIDRPC_TEST_FLAG": True}
    with opened(workers=1, environment=environment, cwd=tmp_path, **settings) as grid:
        assert grid.submit(seen).result() == ("value of all", str(tmp_path))
        assert grid.submit(seen, "GRIDRPC_TEST_NUMBER").result()[0] == "3"
        assert grid.submit(seen_by_c, "GRIDRPC_TEST_FLAG").result() == "true"
        # Modules are found where this program finds them.
        assert grid.submit(remote.add, 1, 2).result() == 3
    assert NAME not in os.environ


def test_a_forked_spawner(tmp_path: Path) -> None:
    script = """
        import os, sys
        import gridrpc
        os.mkdir("below")
        code = "import os\\ndef place(): return os.path.basename(os.getcwd())"
        open("beside.py", "w").write(code)
        sys.path.insert(0, "")
        import beside
        settings = dict(environment={"A": "1", "OMP_NUM_THREADS": 3}, cwd="below")
        with gridrpc.Grid(1, start_method="fork", **settings) as grid:
            print(grid.submit(os.getenv, "A").result(), grid.submit(beside.place).result())
            print(grid.submit(os.getenv, "OMP_NUM_THREADS").result())
        print(os.getenv("A"))
    """
    ended = run_script(tmp_path, script)
    assert (ended.stdout, ended.stderr) == ("1 below\n3\nNone\n", "")


def test_native_workers(tmp_path: Path, basics: Path) -> None:
    settings: dict[str, Any] = {"worker": "native", "modules": [basics]}
    with opened(workers=1, cwd=tmp_path, environment={NAME: "x"}, **settings) as grid:
        call = grid.submit("basics/number", 1)
        call.result(60)
        pid = call.profile.pid
        assert os.readlink(f"/proc/{pid}/cwd") == str(tmp_path)
        assert f"{NAME}=x".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")


def test_hosts(tmp_path: Path) -> None:
    with rig_of(1) as rig:
        table = server(rig, "node1", directory=str(tmp_path))
        with on_hosts(tmp_path, table, environment={NAME: "on hosts"}) as grid:
            assert grid.submit(seen).result() == ("on hosts", str(tmp_path))
            # The server's own, which `server` writes, comes first.
            assert grid.submit(os.getenv, "PYTHONPATH").result() != "on hosts"


def test_a_file(tmp_path: Path) -> None:
    file = tmp_path / "grid.toml"
    file.write_text(f'[grid]\nworkers = 1\ncwd = "{tmp_path}"\nenvironment = {{ {NAME} = 1.5 }}\n')
    with Grid(config=file) as grid:
        assert grid.submit(seen).result() == ("1.5", str(tmp_path))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"environment": "A=1"}, "`environment` is 'A=1': give names and values"),
        ({"environment": {"A=": "1"}}, "`environment` has the name 'A='"),
        ({"environment": {"": "1"}}, "`environment` has the name ''"),
        ({"environment": {1: "1"}}, "`environment` has the name 1"),
        ({"environment": {"A": None}}, "`environment` has None for A"),
        ({"environment": {"A": "\0"}}, "give a text or a number"),
        ({"cwd": 3}, "`cwd` is 3: give a text"),
    ],
)
def test_settings_that_make_no_sense(settings: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Config(**settings)


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="/none`, which is no folder"):
        Grid(1, cwd=tmp_path / "none")


def test_of_a_call(each_grid: Grid, tmp_path: Path) -> None:
    before = each_grid.submit(seen).result()
    within = with_environment(seen, {NAME: "of a call", "PATH": None}, cwd=tmp_path)
    assert each_grid.submit(within).result() == ("of a call", str(tmp_path))
    assert each_grid.submit(within, "PATH").result()[0] is None
    by_c = with_environment(seen_by_c, {NAME: 7})
    assert each_grid.submit(by_c, NAME).result() == "7"
    coroutine = with_environment(seen_by_a_coroutine, {NAME: "x"}, cwd=tmp_path)
    assert each_grid.submit(coroutine).result() == ("x", str(tmp_path))
    assert set(each_grid.map(within, ["PATH"] * 50)) == {(None, str(tmp_path))}
    # Nothing of it is left.
    assert {each_grid.submit(seen).result() for _ in range(4)} == {before}
    assert each_grid.submit(os.getenv, "PATH").result() == os.environ["PATH"]


def test_a_call_that_fails(grid: Grid, tmp_path: Path) -> None:
    before = grid.submit(seen).result()
    with pytest.raises(KeyError, match=str(tmp_path)):
        grid.submit(with_environment(fail, cwd=tmp_path)).result()
    with pytest.raises(FileNotFoundError, match="none"):
        grid.submit(with_environment(seen, {NAME: "x"}, cwd=tmp_path / "none")).result()
    assert {grid.submit(seen).result() for _ in range(4)} == {before}


def test_with_retries_and_executors(tmp_path: Path) -> None:
    within = gridrpc.retrying(with_environment(seen, cwd=tmp_path))
    with gridrpc.Executor(1) as executor:
        assert executor.submit(within).result() == (None, str(tmp_path))


def test_calls_that_make_no_sense() -> None:
    with pytest.raises(TypeError, match="an object of type int cannot be called"):
        with_environment(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="give names and values"):
        with_environment(seen, "A=1")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="has the name ''"):
        with_environment(seen, {"": None})
    with pytest.raises(ValueError, match="give the path of a folder"):
        with_environment(seen, cwd="a\0b")

"""What a grid is to be: files and arguments, good and bad."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gridrpc
from gridrpc import Config, ConfigError, Grid
from grids import PROGRAM
from processes import run_script, until

SLURMS = '[server.lab]\nlauncher = "slurm"\n[server.far]\nlauncher = "slurm"\n'
"""Two servers."""


def write(folder: Path, text: str | bytes) -> Path:
    file = folder / "grid.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


@pytest.mark.parametrize(
    "text",
    ["[grid]\nworkers = 3\ngrace = 1\n", "[grid]\r\nworkers = 3\r\ngrace = 1",
     "\ufeff[grid]\nworkers = 3 # three\ngrace = 1"],
    ids=["plain", "crlf", "byte-order mark"],
)  # fmt: skip
def test_a_file(tmp_path: Path, text: str) -> None:
    with Grid(config=write(tmp_path, text)) as grid:
        assert (grid.config.workers, grid.config.grace) == (3, 1)


def test_arguments_go_above_the_file(tmp_path: Path) -> None:
    file = write(tmp_path, '[grid]\nworkers = 3\npreload = ["json"]\nmax_queued = 7\n')
    with Grid(workers=1, config=str(file), max_queued=8) as grid:
        assert grid.config.workers == 1
        assert grid.config.preload == ("json",)
        assert grid.config.max_queued == 8


def test_an_empty_file_gives_the_defaults(tmp_path: Path) -> None:
    with Grid(config=write(tmp_path, "")) as grid:
        assert grid.config == Config().resolved()
        assert grid.config.workers >= 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[grid]\nworker = 3\n", "`worker` is 3: give 'python' or 'native'"),
        ("[grid]\nnonsense = 3\n", "unknown key `nonsense`.*workers"),
        ("[pool]\nworkers = 3\n", "unknown table `pool`"),
        ("workers = 3\n", "unknown table `workers`"),
        ("grid = 3\n", "unknown table `grid`"),
        ('[grid]\nworkers = "3"\n', "`workers` is '3': give a number"),
        ("[grid]\nworkers = [1, 4]\n", "give a number, or, of servers of a batch system, a range"),
        ("[grid]\nworkers = -1\n", "`workers` is -1"),
        ("[grid]\nworkers = 1.5\n", "`workers` is 1.5"),
        ("[grid]\nworkers = true\n", "`workers` is True"),
        ("[grid]\nworkers = 1_000_000_000_000\n", "`workers` is 1000000000000"),
        ("[grid]\ngrace = nan\n", "`grace` is nan"),
        ("[grid]\ngrace = inf\n", "`grace` is inf"),
        ("[grid]\nretries = 10_000_000_000\n", "`retries` is 10000000000"),
        ('[grid]\npreload = "json"\n', "give a list of names"),
        ("[grid]\npreload = [1]\n", "give a list of names"),
        ("[grid]\nworkers = \n", "is not valid TOML"),
        ("<grid workers='3'/>", "is not valid TOML"),
        ("#" * (1 << 20) + "\n", "is larger than 1,048,576 bytes"),
        (b"[grid]\n# caf\xe9\n", "is not valid TOML"),
        ("[grid]\nworkers = 3\n".encode("utf-16"), "is not valid TOML"),
    ],
)
def test_files_that_make_no_sense(tmp_path: Path, text: str | bytes, said: str) -> None:
    file = write(tmp_path, text)
    with pytest.raises(ConfigError, match=said) as caught:
        Grid(config=file)
    assert str(caught.value).startswith(f"{file}: ")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing\.toml: cannot be read: No such file"):
        Grid(config=tmp_path / "missing.toml")
    with pytest.raises(ConfigError, match="cannot be read"):
        Grid(config=tmp_path)


@pytest.mark.parametrize(
    "settings",
    [{"workers": 0}, {"workers": -1}, {"workers": 1 << 40}, {"workers": 1 << 70},
     {"workers": 2.0}, {"workers": "2"}, {"workers": True}, {"workers": [2]},
     {"worker": "ruby"}, {"transport": "pigeon"}, {"grace": -1.0}, {"grace": float("nan")},
     {"max_queued": 1.5}, {"retries": 1 << 40}, {"preload": "json"}],
    ids=str,
)  # fmt: skip
def test_arguments_that_make_no_sense(settings: dict[str, Any]) -> None:
    (name,) = settings
    with pytest.raises(ConfigError, match=f"^`{name}` is "):
        Grid(**settings)


def test_the_file_is_not_blamed_for_an_argument(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^`workers` is -1"):
        Grid(-1, config=write(tmp_path, "[grid]\nworkers = 3\n"))


def test_more_workers_than_files_may_be_open() -> None:
    with pytest.raises(ConfigError, match="ulimit -n"):
        Grid(workers=100_000)


def test_arguments_that_do_not_exist() -> None:
    with pytest.raises(TypeError, match="'nonsense'"):
        Grid(nonsense=3)


def test_modules_are_loaded_once_for_all_workers() -> None:
    def loaded() -> bool:
        import sys

        return "xml.dom.minidom" in sys.modules

    with Grid(workers=1, preload=["xml.dom.minidom"]) as grid:
        assert grid.submit(loaded).result(60)
    with Grid(workers=1) as grid:
        assert not grid.submit(loaded).result(60)


def test_a_module_that_does_not_load_is_reported(capfd: pytest.CaptureFixture[str]) -> None:
    with Grid(workers=1, preload=["no_such_module"]) as grid:
        assert grid.submit(pow, 2, 3).result(60) == 8
    assert "could not prepare `no_such_module`" in capfd.readouterr().err


def test_the_program_for_native_workers_can_be_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, basics: Path
) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setattr("sysconfig.get_path", lambda *_names: str(tmp_path))
    monkeypatch.setenv("GRIDRPC_PROGRAM", str(tmp_path / "nothing"))
    with Grid(workers=1, worker="native", modules=[basics]) as grid:
        with pytest.raises(gridrpc.StartError, match=r"could not run .*nothing"):
            grid.wait_until_ready(60)
        with pytest.raises(gridrpc.StartError, match="no worker could be started"):
            grid.submit("basics/null")


@pytest.mark.parametrize("transport", ["tcp", "tls"])
def test_workers_behind_an_agent(transport: Any) -> None:
    with Grid(workers=2, transport=transport) as grid:
        grid.wait_until_ready(60)
        assert grid.submit(pow, 2, 3).result(60) == 8
        assert grid.config.workers == grid._native.workers() == 2


@pytest.mark.parametrize(
    ("text", "arguments", "words"),
    [
        (None, [], "there is no grid.toml in this folder: name the file by --config"),
        ("", [], "the file has no servers: write a table [server.NAME]"),
        (SLURMS, [], "the file has 2 servers: name one of lab, far by --server"),
        (SLURMS, ["--server", "c"], "is neither a server of the file, which has lab, far, nor"),
    ],
    ids=["no file", "no servers", "several", "another"],
)
def test_a_script_whose_server_is_not_known_is_reported(
    tmp_path: Path, text: str | None, arguments: list[str], words: str
) -> None:
    if text is not None:
        write(tmp_path, text)
    command = [PROGRAM, "script", *arguments]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode != 0
    assert words in ran.stderr


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group for processor time; the test is skipped where none may be made."""
    name = f"gridrpc-test-{os.getpid()}"
    for mount, quota in (("cpu", "cpu.cfs_quota_us"), ("", "cpu.max")):
        made = Path("/sys/fs/cgroup", mount, name)
        with contextlib.suppress(OSError):
            made.mkdir()
            if (made / quota).exists():
                break
            made.rmdir()
    else:
        pytest.skip("no control group can be made here")
    yield made
    assert until(lambda: not (made / "cgroup.procs").read_text())
    made.rmdir()


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors")
def test_workers_are_as_many_as_the_quota_of_processor_time_allows(
    tmp_path: Path, group: Path
) -> None:
    source = f"""
        import os, sys
        from pathlib import Path
        group = Path({str(group)!r})
        one = {{"cpu.max": "100000 100000", "cpu.cfs_quota_us": "100000"}}
        for name, quota in one.items():
            if (group / name).exists():
                (group / name).write_text(quota)
        (group / "cgroup.procs").write_text(str(os.getpid()))
        import gridrpc
        from gridbench.run.machine import usable_processors
        for settings in ({{}}, {{"transport": "tcp"}}, {{"servers": "local:"}}):
            with gridrpc.Grid(**settings) as grid:
                threads = grid.submit(os.getenv, "OMP_NUM_THREADS").result(60)
                print(grid.workers, threads)
        print(usable_processors())
    """
    ended = run_script(tmp_path, source)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "1 1\n1 1\n1 1\n1\n", "")


def test_threads_of_workers_follow_the_processors_and_what_is_set(tmp_path: Path) -> None:
    source = """
        import os
        for name in list(os.environ):
            if name.endswith("_THREADS"):
                del os.environ[name]
        import gridrpc
        def describe():
            names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS")
            return [os.environ.get(name) for name in names]
        share = str(max(1, len(os.sched_getaffinity(0)) // 2))
        for server in ({"workers": 2}, {"servers": "local:?workers=2"}):
            with gridrpc.Grid(start_method="spawn", **server) as grid:
                print(grid.submit(describe).result(60) == [share] * 3)
            os.environ["OMP_NUM_THREADS"] = "7"
            with gridrpc.Grid(start_method="spawn", **server) as grid:
                print(grid.submit(describe).result(60) == ["7", None, share])
            del os.environ["OMP_NUM_THREADS"]
    """
    ended = run_script(tmp_path, source)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "True\n" * 4, "")

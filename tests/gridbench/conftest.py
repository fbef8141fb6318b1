"""What the tests of gridbench share: the program as a real process, and set-up files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fresh import once

from gridbench.model.model import PipelineModel
from running import BENCHMARKS, DEADLINE, PROGRAM, REPOSITORY, MakeSetup, Run


@pytest.fixture(autouse=True)
def no_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process is known as ours by what a test before this one measured."""
    monkeypatch.setenv("GRIDBENCH_MEASURES", "")


@pytest.fixture
def environment() -> dict[str, str]:
    """For child processes: they find the same packages as the tests, from any folder."""
    path = os.pathsep.join([str(REPOSITORY / "python"), os.environ.get("PYTHONPATH", "")])
    return os.environ | {"PYTHONPATH": path.rstrip(os.pathsep), "COLUMNS": "200"}


def program(words: tuple[str, ...], folder: Path, environment: dict[str, str]) -> Run:
    """Runs a program in `folder`, with `environment` and what is given on top of it."""

    def run(*arguments: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
        env = environment | dict(options.pop("env", {}))  # type: ignore[call-overload]
        if arguments[:1] == ("advise",):  # what it keeps is of this test alone
            env = env | {"XDG_CACHE_HOME": str(folder / "cache")}
        options.setdefault("timeout", DEADLINE)
        return subprocess.run(
            [*words, *map(str, arguments)],
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
            check=False,
            **options,  # type: ignore[call-overload]
        )

    return run


@pytest.fixture
def gridbench(tmp_path: Path, environment: dict[str, str]) -> Run:
    return program(PROGRAM, tmp_path, environment)


@pytest.fixture
def benchmarks(tmp_path: Path, environment: dict[str, str]) -> Run:
    return program(BENCHMARKS, tmp_path, environment)


@pytest.fixture
def refused(in_process: Callable[..., Run]) -> Run:
    """Calls the program in `tmp_path`, but in this process: for what it refuses to do.

    A process of its own takes half a second to import what it needs.
    """
    from gridbench.cli import main

    return in_process(main)


@pytest.fixture
def refused_benchmarks(in_process: Callable[..., Run]) -> Run:
    """The same for `python -m benchmarks`."""
    from benchmarks.__main__ import measure_areas
    from gridbench.command_line import run_command

    return in_process(lambda words: run_command(measure_areas, "python -m benchmarks", words))


@pytest.fixture
def in_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Run]:
    """Makes a `Run` of a function that takes arguments and exits."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def run_of(main: Callable[[list[str]], object]) -> Run:
        def call(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
            words = [str(argument) for argument in arguments]
            if words[0] == "advise":  # what it keeps is of this test alone
                monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
            capsys.readouterr()
            with pytest.raises(SystemExit) as ended:
                main(words)
            status = ended.value.code
            assert isinstance(status, int)
            return subprocess.CompletedProcess(words, status, *capsys.readouterr())

        return call

    return run_of


@pytest.fixture
def make_setup(tmp_path: Path) -> MakeSetup:
    """Writes a set-up file and its list of task times; returns the set-up file's path."""

    def make(
        *,
        tasks: int = 8,
        nodes: int = 4,
        sleep: float = 0.01,
        task_kb: float = 0,
        shared_kb: float = 0,
        write_kb: float = 0,
    ) -> Path:
        (tmp_path / "times").write_text(f"{sleep}\n" * tasks)
        path = tmp_path / "setup.xml"
        path.write_text(
            "<BenchmarkSetup>\n"
            f"<NTasks> {tasks} </NTasks>\n"
            f"<NNodes> {nodes} </NNodes>\n"
            "<InputFile> times </InputFile>\n"
            f"<TaskDataSize> {task_kb} </TaskDataSize>\n"
            f"<SharedDataSize> {shared_kb} </SharedDataSize>\n"
            f"<WriteDataSize> {write_kb} </WriteDataSize>\n"
            "</BenchmarkSetup>\n"
        )
        return path

    return make


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> PipelineModel:
    """The model of an engine whose terms are known, fitted once for all processes of a run."""
    from gridbench.model.model import model_of
    from gridbench.model.saved import load_models, save_models
    from synthetic import COPIES, observations, situations

    def make(folder: Path) -> None:
        runs = observations(situations(), noise=0.02)
        save_models([model_of(runs, test=False, shape=COPIES)], folder / "model.json")

    (found,) = load_models(once("model", tmp_path_factory, make) / "model.json")
    return found


@pytest.fixture(scope="module")
def downloads(tmp_path_factory) -> Path:
    """Where the browser saves to."""
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def driver(downloads):
    """A browser without network, whose downloads go to `downloads`."""
    from browser import browser

    from gridbench.errors import InputError

    try:
        with browser(downloads) as opened:
            yield opened
    except InputError as error:
        pytest.fail(str(error))


@pytest.fixture
def faulty(tmp_path: Path) -> dict[str, str]:
    """The environment in which the engines of `faulty_engines` are installed."""
    info = tmp_path / "site" / "faulty-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: faulty\nVersion: 1\n")
    here = Path(__file__).parent
    source = (here / "faulty_engines.py").read_text()
    names = re.findall(r"^class (\w+)\(ThreadPoolEngine", source, re.MULTILINE)
    points = "".join(f"{name.lower()} = faulty_engines:{name}\n" for name in names)
    (info / "entry_points.txt").write_text(f"[gridbench.engines]\n{points}")
    thread_pool = REPOSITORY / "examples" / "engines" / "thread_pool"
    places = [REPOSITORY / "python", tmp_path / "site", here, thread_pool]
    return {"PYTHONPATH": ":".join(map(str, places))}

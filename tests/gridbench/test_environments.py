"""Environments of engines: made, repaired, refused, removed; with pip where it matters."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from gridbench.engines.environments import MARKER, Environment
from gridbench.program import EXTRA
from running import DEADLINE, PROGRAM, MakeSetup, Run, until

ENGINE = "loky"  # the smallest


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> Path:
    """Where environments are, for this test alone."""
    folder = tmp_path / "engines"
    monkeypatch.setenv("GRIDBENCH_ENGINES", str(folder))
    environment["GRIDBENCH_ENGINES"] = str(folder)
    return folder


@pytest.fixture
def whole(place: Path) -> Path:
    """An environment that looks whole; nothing in it can be run."""
    own = Environment(ENGINE)
    assert own.root == place
    (own.folder / "bin").mkdir(parents=True)
    python = Path(own.command()[0])
    python.touch(mode=0o755)
    for one in own.required():
        info = own.folder / "lib/python3.11/site-packages" / f"{one.package}-0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {one.package}\nVersion: {one.version}\n"
        )
    shutil.copy(own.requirements, own.folder / MARKER)
    return own.folder


def line_of(gridbench: Run, name: str = ENGINE) -> str:
    done = gridbench("engines", "--where")
    assert done.returncode == 0, done.stderr
    return next(line for line in done.stdout.splitlines() if line.startswith(f"{name} "))


def refusal(gridbench: Run, make_setup: MakeSetup, tmp_path: Path) -> str:
    done = gridbench("run", make_setup(), "--engine", ENGINE, "--out", "out")
    assert done.returncode == 2
    assert not (tmp_path / "out").exists()
    return str(done.stderr)


def damage_marker(folder: Path) -> None:
    (folder / MARKER).unlink()


def damage_python(folder: Path) -> None:
    (folder / "bin" / "python").unlink()
    (folder / "bin" / "python").symlink_to("/no/such/python")


def damage_package(folder: Path) -> None:
    shutil.rmtree(next(folder.glob("lib/*/*/numpy*")))


def older(folder: Path) -> None:
    metadata = next(folder.glob("lib/*/*/loky*/METADATA"))
    metadata.write_text(re.sub(r"\nVersion: .*", "\nVersion: 1.2.3", metadata.read_text()))


def test_one_that_looks_whole_is_installed(gridbench: Run, whole: Path) -> None:
    line = line_of(gridbench)
    assert re.search(rf"{ENGINE} +installed +3\.7\.0 +{whole}", line)


@pytest.mark.usefixtures("place")
def test_one_that_is_not_installed(gridbench: Run, make_setup: MakeSetup, tmp_path: Path) -> None:
    assert " missing " in line_of(gridbench)
    said = refusal(gridbench, make_setup, tmp_path)
    assert f"the engine `{ENGINE}` is not installed" in said
    assert f"hint: run `gridbench engines install {ENGINE}`" in said
    done = gridbench("engines", "remove", ENGINE)
    assert (done.returncode, "is not installed" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("damage", "state", "words"),
    [
        (damage_marker, "half installed", "is half installed: its installation was cut off"),
        (damage_python, "half installed", "is half installed: the Python that it was made with"),
        (damage_package, "half installed", "is half installed: numpy is missing"),
        (older, "other version", "is of another version: loky is 1.2.3, not 3.7.0"),
    ],
)
def test_one_that_is_damaged_or_of_another_version(
    *,
    gridbench: Run,
    make_setup: MakeSetup,
    tmp_path: Path,
    whole: Path,
    damage: Callable[[Path], None],
    state: str,
    words: str,
) -> None:
    damage(whole)
    assert f" {state} " in line_of(gridbench)
    said = refusal(gridbench, make_setup, tmp_path)
    assert words in said
    assert f"hint: run `gridbench engines install {ENGINE}`" in said


def test_a_program_of_the_system_that_is_missing(
    gridbench: Run, place: Path, tmp_path: Path
) -> None:
    done = gridbench("engines", "install", "mpi", env={"PATH": str(tmp_path)})
    assert done.returncode == 2
    assert "the engine `mpi` needs the program `mpiexec`" in done.stderr
    assert "apt-get install openmpi-bin" in done.stderr
    assert not (place / "mpi").exists()


def test_without_a_network_it_is_said_and_nothing_is_left(gridbench: Run, place: Path) -> None:
    offline = {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_FIND_LINKS": "", "PIP_RETRIES": "1"}
    done = gridbench("engines", "install", ENGINE, env=offline)
    assert done.returncode == 2
    log = place / f"{ENGINE}.log"
    assert f"{log}: could not install the engine `{ENGINE}`: the package index" in done.stderr
    assert "cannot be reached" in done.stderr
    assert "No matching distribution found" in done.stderr  # the end of the log
    assert "Traceback" not in done.stderr
    assert log.stat().st_size > 0
    assert not (place / ENGINE).exists()


def test_a_full_disk_is_said_and_what_filled_it_goes(gridbench: Run, place: Path) -> None:
    def small_files() -> None:
        import resource

        # Writing beyond fails as on a full disk.
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    done = gridbench("engines", "install", ENGINE, preexec_fn=small_files)
    assert done.returncode == 2
    assert f"{place}: could not install the engine `{ENGINE}`: the disk is full" in done.stderr
    assert "set GRIDBENCH_ENGINES to a folder on another disk" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (place / ENGINE).exists()


def test_a_folder_that_cannot_be_made(gridbench: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = gridbench(
        "engines", "install", ENGINE, env={"GRIDBENCH_ENGINES": str(tmp_path / "file" / "below")}
    )
    assert done.returncode == 2
    assert f"cannot change the environment of `{ENGINE}`: Not a directory" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("install",), 2, "no engine is named\nhint: name one or several, or use --all"),
        (("install", "lok"), 2, "unknown engine `lok`\nhint: did you mean `loky`?"),
        (("install", "process-pool"), 0, "process-pool: comes with gridrpc"),
        (("remove", "process-pool"), 0, "process-pool: comes with gridrpc"),
    ],
)
def test_names_that_cannot_be_installed(
    *, gridbench: Run, place: Path, arguments: tuple[str, ...], status: int, words: str
) -> None:
    done = gridbench("engines", *arguments)
    assert done.returncode == status
    assert words in done.stdout + done.stderr
    assert not place.exists()


def test_a_killed_installation_is_reported_and_repaired_by_one_of_two(
    gridbench: Run, place: Path, environment: dict[str, str]
) -> None:
    def start() -> subprocess.Popen[str]:
        command = [*PROGRAM, "engines", "install", ENGINE]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)

    with start() as first:
        assert first.stdout is not None
        until(lambda: "installing" in first.stdout.readline())
        until(lambda: psutil.Process(first.pid).children())
        working = psutil.Process(first.pid).children(recursive=True)
        first.send_signal(signal.SIGKILL)
    # What it has started continues, and nobody else may begin.
    assert "being installed or removed by another process" in gridbench("engines").stdout
    for process in working:
        process.kill()
    until(lambda: " half installed " in line_of(gridbench))

    with start() as one, start() as other:
        said = [process.communicate(timeout=DEADLINE)[0] for process in (one, other)]
    assert [one.returncode, other.returncode] == [0, 0]
    assert sorted("installed in" in text for text in said) == [False, True]
    assert "is installed already" in "".join(said)
    assert " installed " in line_of(gridbench)
    assert Environment(ENGINE).state().kind == "installed"

    assert gridbench("engines", "remove", ENGINE).stdout == f"{ENGINE}: removed\n"
    assert not (place / ENGINE).exists()


@pytest.mark.parametrize(
    ("name", "other"),
    [("emulated-slurm-dask", "dask"), ("emulated-slurm-hyperqueue", "hyperqueue")],
)
def test_engines_that_live_with_another(
    *,
    gridbench: Run,
    make_setup: MakeSetup,
    tmp_path: Path,
    place: Path,
    name: str,
    other: str,
) -> None:
    assert re.search(rf"{name} +missing +[\d.]+ +{place / other}$", line_of(gridbench, name))
    done = gridbench("run", make_setup(), "--engine", name, "--out", "out")
    assert done.returncode == 2
    assert not (tmp_path / "out").exists()
    assert f"hint: run `gridbench engines install {other}`" in done.stderr


_WITHOUT = """
import importlib, sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[2:]:
            raise ModuleNotFoundError(f"no {name}")
sys.meta_path.insert(0, Nothing())
importlib.import_module(sys.argv[1])
"""


@pytest.mark.parametrize(
    "module",
    ["gridbench.bench.client", "benchmarks.starts", "benchmarks.hosts_peers",
     "gridbench.run.host", "gridbench.sync.task_group"],
)  # fmt: skip
def test_what_runs_in_pythons_of_engines_needs_nothing_that_only_the_program_has(
    module: str, environment: dict[str, str]
) -> None:
    absent = EXTRA.keys() - {"psutil"}
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT, module, *absent],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr

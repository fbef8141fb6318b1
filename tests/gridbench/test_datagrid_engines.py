"""Data grids: found by name or file, built by Maven, repaired, refused, removed."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest

from gridbench.datagrid import engine_build as sources
from gridbench.datagrid.engine import (
    CLIENT,
    DataGridEngine,
    find_engine,
    own_engines,
    read_manifest,
)
from gridbench.datagrid.engine_build import LIBRARIES, MARKER, Build, install
from gridbench.errors import InputError
from running import DEADLINE, PROGRAM, Run, until

ENGINE = "embedded"
COMMANDS = (*PROGRAM, "data", "engines")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> Path:
    """Where data grids are built, for this test alone."""
    folder = tmp_path / "engines"
    monkeypatch.setenv("GRIDBENCH_ENGINES", str(folder))
    environment["GRIDBENCH_ENGINES"] = str(folder)
    return folder / "datagrid"


@pytest.fixture
def engines(gridbench: Run) -> Run:
    """Runs `gridbench data engines`."""
    return partial(gridbench, "data", "engines")


@pytest.fixture
def whole(place: Path) -> Path:
    """A build that looks whole; nothing in it can be run."""
    own = Build(ENGINE)
    assert own.root == place
    (own.folder / LIBRARIES).mkdir(parents=True)
    (own.folder / LIBRARIES / "datagrid-core.jar").touch()
    (own.folder / MARKER).write_text(sources.digest(ENGINE), encoding="ascii")
    return own.folder


def line_of(engines: Run, name: str = ENGINE) -> str:
    done = engines("--where")
    assert done.returncode == 0, done.stderr
    return next(line for line in done.stdout.splitlines() if line.startswith(f"{name} "))


def write(folder: Path, text: str) -> Path:
    file = folder / "mine" / "engine.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


# ---- engine.toml


@pytest.mark.parametrize("name", [engine.name for engine in own_engines()])
def test_those_that_come_along_are_described_in_full(name: str) -> None:
    engine = find_engine(name)
    manifest = engine.manifest
    assert engine.own
    assert manifest.title
    assert manifest.settings
    assert manifest.class_name.startswith("gridbench.datagrid.")
    assert manifest.classpath
    assert (manifest.ports > 0) == manifest.members
    assert manifest.version


MINIMAL = 'title = "Mine"\nclass = "mine.Grid"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (MINIMAL + 'verson = "1"\n', ":3: `verson` is not known\nhint: did you mean `version`?"),
        (MINIMAL + "elephants = 1\n", ":3: `elephants` is not known\nhint: known are title, class"),
        (MINIMAL + 'ports = "2"\n', ":3: `ports` must be a whole number, not `2`"),
        (MINIMAL + "ports = true\n", ":3: `ports` must be a whole number, not `True`"),
        (MINIMAL + "ports = -1\n", ":3: `ports` must be 0 or more, not -1"),
        (MINIMAL + "heap_percent = 101\n", ":3: `heap_percent` must be 100 or less, not 101"),
        (MINIMAL + "heap_percent = 0\n", ":3: `heap_percent` must be 1 or more, not 0"),
        (MINIMAL + "\nleast_members = 0\n", ":4: `least_members` must be 1 or more, not 0"),
        (MINIMAL + 'jvm = "-Xss1m"\n', ":3: `jvm` must be a list of texts, not `-Xss1m`"),
        (MINIMAL + "classpath = [1]\n", ":3: `classpath` must be a list of texts, not `[1]`"),
        (MINIMAL + "alone = 1\n", ":3: `alone` must be true or false, not `1`"),
        ('title = "Mine"\n', ": `class` is missing\nhint: see docs/adding-a-data-grid.md"),
        ('title = ""\nclass = "mine.Grid"\n', ":1: `title` is empty"),
        (
            'title = "Mine"\nclass = "mine/Grid.java"\n',
            ":2: `class` must be the full name of a Java class, not `mine/Grid.java`",
        ),
        ("title = Mine\n", ":1: is not TOML: Invalid value"),
    ],
)
def test_a_file_that_is_wrong_says_where(tmp_path: Path, text: str, words: str) -> None:
    file = write(tmp_path, text)
    with pytest.raises(InputError) as raised:
        read_manifest(file)
    assert str(raised.value).startswith(f"{file}{words}")
    assert "hint: " in str(raised.value)


def test_a_class_path_that_is_not_there(tmp_path: Path) -> None:
    file = write(tmp_path, MINIMAL + 'classpath = ["lib/*.jar"]\n')
    with pytest.raises(InputError, match=r"`classpath`: there is no lib/\*\.jar in .*/mine\n"):
        find_engine(file)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("embeded", "unknown data grid `embeded`\nhint: did you mean `embedded`? known are"),
        ("Embedded", "did you mean `embedded`?"),
        ("oracle9", "unknown data grid `oracle9`\nhint: known are coherence, embedded"),
        ("./no/engine.toml", "cannot read the file of a data grid: No such file"),
        ("/dev/null", "is not a regular file"),
    ],
)
def test_names_of_none(name: str, words: str) -> None:
    with pytest.raises(InputError) as raised:
        find_engine(name)
    assert words in str(raised.value)


# ---- A user's own


def test_a_users_own_runs_with_its_class_path_and_the_core(whole: Path, tmp_path: Path) -> None:
    file = write(tmp_path, MINIMAL + 'classpath = ["classes", "lib/*.jar"]\njvm = ["-Dmine=1"]\n')
    (file.parent / "classes").mkdir()
    (file.parent / "lib").mkdir()
    for jar in ("b.jar", "a.jar"):
        (file.parent / "lib" / jar).touch()
    engine = find_engine(str(file.parent))
    assert (engine.name, engine.own) == ("mine", False)
    engine.require()
    command = engine.command(CLIENT, 1 << 28, ["-Dmore=2"])
    path = [file.parent / "classes", file.parent / "lib/a.jar", file.parent / "lib/b.jar"]
    assert command[-3] == "-cp"
    assert command[-2].split(":") == [*map(str, path), str(whole / LIBRARIES / "*")]
    assert command[-1] == CLIENT
    assert command[-6:-3] == ["-Xmx268435456", "-Dmine=1", "-Dmore=2"]


@pytest.mark.usefixtures("whole")
def test_a_program_that_it_needs_is_missing(tmp_path: Path) -> None:
    file = write(tmp_path, MINIMAL + 'programs = ["no-such-server"]\n')
    with pytest.raises(InputError, match="the engine `mine` needs the program `no-such-server`"):
        find_engine(file).require()


@pytest.mark.usefixtures("place")
def test_programs_are_looked_for_before_anything_is_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    redis = find_engine("redis")
    monkeypatch.setattr(shutil, "which", lambda name: None if "redis" in name else f"/bin/{name}")
    said: list[str] = []
    with pytest.raises(InputError, match="the engine `redis` needs the program `redis-server`"):
        redis.ensure(said.append)
    assert said == []


def test_gridbench_does_not_build_a_users_own(engines: Run, tmp_path: Path) -> None:
    file = write(tmp_path, MINIMAL)
    done = engines("install", file)
    assert done.returncode == 2
    assert f"{file}: is the file of a data grid of your own" in done.stderr


# ---- Builds


def test_one_that_looks_whole_is_installed(engines: Run, whole: Path) -> None:
    assert re.search(rf"{ENGINE} +installed +[\d.]+ +{whole}$", line_of(engines))
    listed = json.loads(engines("--json").stdout)
    (found,) = (one for one in listed if one["name"] == ENGINE)
    assert (found["state"], found["where"], found["problem"]) == ("installed", str(whole), "")


def test_one_that_is_not_installed(engines: Run, place: Path) -> None:
    assert " missing " in line_of(engines)
    with pytest.raises(InputError, match=f"run `gridbench data engines install {ENGINE}`"):
        find_engine(ENGINE).require()
    done = engines("remove", ENGINE)
    assert (done.returncode, "is not installed" in done.stderr) == (2, True)
    assert not (place / ENGINE).exists()


def damage_marker(folder: Path) -> None:
    (folder / MARKER).unlink()


def damage_libraries(folder: Path) -> None:
    shutil.rmtree(folder / LIBRARIES)


def older(folder: Path) -> None:
    (folder / MARKER).write_text("0" * 64)


@pytest.mark.parametrize(
    ("damage", "state", "words"),
    [
        (damage_marker, "half installed", "is half installed: its build was cut off"),
        (damage_libraries, "half installed", f"/{LIBRARIES} is empty"),
        (older, "other version", "is of another version: its sources have changed since"),
    ],
)
def test_one_that_is_damaged_or_of_other_sources(
    *, engines: Run, whole: Path, damage: Callable[[Path], None], state: str, words: str
) -> None:
    damage(whole)
    assert f" {state} " in line_of(engines)
    with pytest.raises(InputError, match=f"run `gridbench data engines install {ENGINE}`") as said:
        find_engine(ENGINE).require()
    assert words in str(said.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("install",), "no engine is named\nhint: name one or several, or use --all"),
        (("install", "embeded"), "unknown data grid `embeded`\nhint: did you mean `embedded`?"),
        (("remove", "embeded"), "unknown data grid `embeded`\nhint: did you mean `embedded`?"),
    ],
)
def test_names_that_cannot_be_installed(
    *, engines: Run, place: Path, arguments: tuple[str, ...], words: str
) -> None:
    done = engines(*arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert not place.exists()


def test_the_class_path_for_others_is_printed_alone(engines: Run, whole: Path) -> None:
    assert engines("class-path").stdout == f"{whole / LIBRARIES / '*'}\n"


def java_in(folder: Path, version: str) -> Path:
    folder.mkdir()
    program = folder / "java"
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025' >&2\n")
    program.chmod(0o755)
    return folder


def test_without_java(engines: Run, place: Path, tmp_path: Path) -> None:
    done = engines("install", ENGINE, env={"PATH": str(tmp_path), "JAVA_HOME": ""})
    assert done.returncode == 2
    assert "data grids need Java, and there is none on PATH" in done.stderr
    assert "hint: install a JDK of version 17 or newer (Debian: apt-get install" in done.stderr
    done = engines("install", ENGINE, env={"JAVA_HOME": str(tmp_path)})
    assert f"there is none in JAVA_HOME, which is {tmp_path}" in done.stderr
    assert not (place / ENGINE).exists()


@pytest.mark.parametrize(("version", "main"), [("1.8.0_392", 8), ("11.0.21", 11)])
def test_with_an_old_java(engines: Run, tmp_path: Path, version: str, main: int) -> None:
    folder = java_in(tmp_path / "old", version)
    done = engines("install", ENGINE, env={"PATH": folder, "JAVA_HOME": ""})
    assert done.returncode == 2
    assert f"data grids need Java 17 or newer, and {folder}/java is Java {main}" in done.stderr


def test_without_maven(engines: Run, tmp_path: Path) -> None:
    folder = java_in(tmp_path / "new", "21")
    done = engines("install", ENGINE, env={"PATH": folder, "JAVA_HOME": ""})
    assert done.returncode == 2
    assert "there is no program `mvn` on PATH" in done.stderr
    assert "hint: install Maven (Debian: apt-get install maven)" in done.stderr


def test_without_a_network_it_is_said_and_nothing_is_left(
    engines: Run, place: Path, tmp_path: Path
) -> None:
    # A home without a repository of Maven's, whose settings name one where nobody is.
    settings = tmp_path / ".m2" / "settings.xml"
    settings.parent.mkdir()
    settings.write_text(
        "<settings><mirrors><mirror><id>none</id><mirrorOf>*</mirrorOf>"
        "<url>http://127.0.0.1:9/</url></mirror></mirrors></settings>"
    )
    offline = {"MAVEN_OPTS": f"-Duser.home={tmp_path}"}
    done = engines("install", ENGINE, env=offline)
    assert done.returncode == 2
    log = place / f"{ENGINE}.log"
    assert f"{log}: could not install the engine `{ENGINE}`: Maven's repository" in done.stderr
    assert "cannot be reached" in done.stderr
    assert "[ERROR]" in done.stderr  # the end of the log
    assert "Traceback" not in done.stderr
    assert not (place / ENGINE).exists()


def test_a_full_disk_is_said_and_what_filled_it_goes(engines: Run, place: Path) -> None:
    def small_files() -> None:
        import resource

        # Writing beyond fails as on a full disk.
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000))

    done = engines("install", ENGINE, preexec_fn=small_files)
    assert done.returncode == 2
    assert f"could not install the engine `{ENGINE}`: the disk is full" in done.stderr
    assert "set GRIDBENCH_ENGINES to a folder on another disk" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (place / ENGINE).exists()


def test_a_folder_that_cannot_be_made(engines: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    env = {"GRIDBENCH_ENGINES": str(tmp_path / "file" / "below")}
    done = engines("install", ENGINE, env=env)
    assert done.returncode == 2
    assert f"cannot change the build of `{ENGINE}`: Not a directory" in done.stderr


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The sources, where a test can change them."""
    folder = tmp_path / "package" / "java"
    sources.copy_sources(folder)
    monkeypatch.setattr(sources, "_PACKAGE", folder.parent)
    return folder


def test_what_is_built_runs_and_is_built_again_when_sources_change(
    place: Path, copied: Path
) -> None:
    engine = find_engine(ENGINE)
    said: list[str] = []
    engine.ensure(said.append)
    assert engine.build.state().kind == "installed"
    assert re.search(r"\ninstalled in \d+ s$", "\n".join(said))
    assert has_class(engine, "gridbench.datagrid.DataGrid")
    assert {path.name for path in (place / ENGINE).iterdir()} == {"engine.toml", MARKER, "target"}

    said.clear()
    engine.ensure(said.append)
    assert not said
    install(engine.build, said.append)
    assert said == ["is installed already"]

    java = copied / "core/src/main/java/gridbench/datagrid"
    (java / "Further.java").write_text(
        "package gridbench.datagrid;\n\npublic interface Further {}\n"
    )
    assert engine.build.state().kind == "other version"
    engine.ensure(said.append)
    assert has_class(engine, "gridbench.datagrid.Further")

    (java / "Further.java").write_text("package gridbench.datagrid;\n\nthis is no Java\n")
    with pytest.raises(InputError) as raised:
        engine.ensure(said.append)
    assert f"could not install the engine `{ENGINE}`: Maven ended with exit status 1" in str(
        raised.value
    )
    assert "Further.java" in str(raised.value)  # the end of the log
    assert engine.build.state().kind == "missing"


def has_class(engine: DataGridEngine, name: str) -> bool:
    """Whether Java finds the class."""
    java, *_, path, _main = engine.command(CLIENT, 1 << 28)
    javap = shutil.which("javap") or str(Path(java).with_name("javap"))
    done = subprocess.run([javap, "-cp", path, name], capture_output=True, check=False)
    return done.returncode == 0


def test_a_killed_build_is_reported_and_repaired_by_one_of_two(
    engines: Run, place: Path, environment: dict[str, str]
) -> None:
    def start() -> subprocess.Popen[str]:
        command = [*COMMANDS, "install", ENGINE]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)

    with start() as first:
        assert first.stdout is not None
        until(lambda: "building" in first.stdout.readline())
        # Maven's script has become Java, and starts nothing further.
        until(lambda: "java" in [one.name() for one in psutil.Process(first.pid).children()])
        (working,) = psutil.Process(first.pid).children()
        working.suspend()  # it shall not be ready before it is looked at
        first.send_signal(signal.SIGKILL)
    # What it has started continues, and nobody else may begin.
    assert "being installed or removed by another process" in engines().stdout
    working.kill()
    until(lambda: " half installed " in line_of(engines))
    until(lambda: "its build was cut off" in engines().stdout)

    with start() as one, start() as other:
        said = [process.communicate(timeout=DEADLINE)[0] for process in (one, other)]
    assert [one.returncode, other.returncode] == [0, 0]
    assert sorted("installed in" in text for text in said) == [False, True]
    assert "is installed already" in "".join(said)
    assert re.search(r" installed ", line_of(engines))

    assert engines("remove", ENGINE).stdout == f"{ENGINE}: removed\n"
    assert not (place / ENGINE).exists()

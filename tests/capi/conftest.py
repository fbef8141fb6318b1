"""An installed C library, a module, and C programs that use both."""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path
from typing import Protocol

import pytest

HERE = Path(__file__).parent
REPOSITORY = HERE.parent.parent
PROGRAMS = HERE / "programs"


@pytest.fixture(scope="session")
def prefix() -> Path:
    """Where the library is installed: GRIDRPC_PREFIX, or a folder that it is built into."""
    named = os.environ.get("GRIDRPC_PREFIX")
    if named:
        return Path(named)
    folder = REPOSITORY / "target/capi-tests"
    build = [str(REPOSITORY / "scripts/build-capi"), str(folder)]
    folder.mkdir(parents=True, exist_ok=True)
    # Of processes that run tests side by side the first builds it, and nobody while others use it.
    this_run = os.environ.get("PYTEST_XDIST_TESTRUNUID", "")
    with open(folder / "built-for", "a+") as built_for:
        fcntl.flock(built_for, fcntl.LOCK_EX)
        built_for.seek(0)
        if not this_run or built_for.read() != this_run:
            subprocess.run(build, check=True, timeout=1200)
            built_for.truncate(0)
            built_for.write(this_run)
    return folder


@pytest.fixture(scope="session")
def modules(prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the module of the tests."""
    folder = tmp_path_factory.mktemp("modules")
    command = [prefix / "bin/gridrpc", "compile", HERE / "modules/cases.idl", "-o", folder]
    subprocess.run(command, check=True, timeout=120, capture_output=True)
    return folder


class Runner(Protocol):
    """Runs a program of `programs`."""

    def __call__(
        self,
        name: str,
        *arguments: str,
        fails: bool = False,
        timeout: float = 300,
        **environment: str,
    ) -> subprocess.CompletedProcess[str]: ...


class Compiler(Protocol):
    """Compiles a program of `programs`, or a text."""

    def __call__(self, name: str, text: str | None = None) -> Path: ...


@pytest.fixture(scope="session")
def compiled(prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> Compiler:
    folder = tmp_path_factory.mktemp("programs")

    def compile_one(name: str, text: str | None = None) -> Path:
        program = folder / Path(name).stem
        if program.exists():
            return program
        source = PROGRAMS / name
        if text is not None:
            source = folder / name
            source.write_text(text)
        is_cpp = name.endswith(".cpp")
        compiler = ["c++", "-std=c++17"] if is_cpp else ["cc", "-std=gnu11"]
        flags = ["-g", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{PROGRAMS}"]
        ng_cc = [str(prefix / "bin/ng_cc"), *compiler[1:], *flags]
        libraries = ["-lm", "-lpthread"]
        environment = {**os.environ, "NG_LINKER": compiler[0]}
        command = [*ng_cc, "-o", str(program), str(source), *libraries]
        subprocess.run(command, check=True, timeout=120, env=environment)
        return program

    return compile_one


@pytest.fixture
def run(compiled: Compiler, modules: Path, tmp_path: Path) -> Runner:
    """Runs a program in a folder of its own, without any configuration."""

    def run_one(
        name: str, *arguments: str, fails: bool = False, timeout: float = 300, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        program = compiled(name)
        names = ("PATH", "LANG", "TMPDIR")
        usual = {name: os.environ[name] for name in names if name in os.environ}
        own = {"HOME": str(tmp_path), "GRIDRPC_MODULE_PATH": str(modules), **environment}
        done = subprocess.run(
            [program, *arguments],
            env={**usual, **own},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if not fails:
            assert done.returncode == 0, done.stderr + done.stdout
        return done

    return run_one

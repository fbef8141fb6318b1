"""Grids that the tests of a file share. Tests that break workers or settings open their own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import gridrpc

sys.path.insert(0, str(Path(__file__).parent))

from batches import BatchSite
from grids import PROGRAM, CompileIdl, opened


@pytest.fixture(scope="module")
def grid() -> Iterator[gridrpc.Grid]:
    with opened(workers=2) as grid:
        yield grid


@pytest.fixture(scope="module", params=["unix", "tcp"])
def each_grid(request: pytest.FixtureRequest) -> Iterator[gridrpc.Grid]:
    """A grid of Python workers for each transport."""
    with opened(workers=2, transport=request.param) as grid:
        yield grid


@pytest.fixture(scope="session")
def basics(compile_idl: CompileIdl) -> Path:
    """The module of basics.idl."""
    return compile_idl((Path(__file__).parent / "basics.idl").read_text())


@pytest.fixture(scope="module", params=["unix", "tcp"])
def native_grid(request: pytest.FixtureRequest, basics: Path) -> Iterator[gridrpc.Grid]:
    """A grid of native workers with the module `basics` for each transport."""
    with opened(workers=2, worker="native", transport=request.param, modules=[basics]) as grid:
        yield grid


@pytest.fixture(scope="session")
def compile_idl(tmp_path_factory: pytest.TempPathFactory) -> CompileIdl:
    """Compiles IDL, each text once; gives the module's file, alone in its folder.

    `files`: further files beside it, by name.
    """
    compiled: dict[str, Path] = {}

    def compile_idl(source: str, *arguments: str, files: dict[str, str] | None = None) -> Path:
        if source not in compiled:
            folder = tmp_path_factory.mktemp("module")
            for name, text in (files or {}).items():
                (folder / name).write_text(text)
            (folder / "source.idl").write_text(source)
            command = [PROGRAM, "compile", "source.idl", "-o", "made", "--", *arguments]
            ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            assert ran.returncode == 0, ran.stderr
            compiled[source] = folder / ran.stdout.strip()
        return compiled[source]

    return compile_idl


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that all users can enter, with the program."""
    with TemporaryDirectory(dir="/tmp", prefix="gridrpc-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        shutil.copy(PROGRAM.resolve(), folder / "gridrpc")
        (folder / "gridrpc").chmod(0o755)
        yield folder


KINDS = [("native", "unix"), ("native", "tcp"), ("python", "unix"), ("python", "tcp")]


@pytest.fixture(scope="module", params=KINDS, ids="-".join)
def each_module_grid(
    request: pytest.FixtureRequest, compile_idl: CompileIdl
) -> Iterator[gridrpc.Grid]:
    """A grid with the module IDL of the test's file, for each kind of workers and transport."""
    worker, transport = request.param
    modules = [compile_idl(request.module.IDL)]
    with opened(workers=2, worker=worker, transport=transport, modules=modules) as grid:
        yield grid


@pytest.fixture(scope="module")
def module_grid(request: pytest.FixtureRequest, compile_idl: CompileIdl) -> Iterator[gridrpc.Grid]:
    """A grid of native workers with the module IDL of the test's file."""
    with opened(workers=2, worker="native", modules=[compile_idl(request.module.IDL)]) as grid:
        yield grid


@pytest.fixture
def own_module_grid(
    request: pytest.FixtureRequest, compile_idl: CompileIdl
) -> Iterator[gridrpc.Grid]:
    """The same for one test, which may break it."""
    with opened(workers=2, worker="native", modules=[compile_idl(request.module.IDL)]) as grid:
        yield grid


@pytest.fixture
def lone_grid() -> Iterator[gridrpc.Grid]:
    """One worker of the test's own, which it may break."""
    with opened(workers=1) as grid:
        yield grid


@pytest.fixture
def own_grid() -> Iterator[gridrpc.Grid]:
    """Two workers of the test's own, which it may break."""
    with opened(workers=2) as grid:
        yield grid


@pytest.fixture
def no_jobs_are_left(site: BatchSite) -> Iterator[None]:
    """Whatever a test does, its batch system has nothing of it afterwards."""
    yield
    try:
        assert site.nothing_is_left()
    finally:
        site.rig.cancel_all()


@pytest.fixture
def no_modules_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No module of this machine has the name of a server's."""
    monkeypatch.setenv("GRIDRPC_CATALOGUE", str(tmp_path / "catalogue"))
    monkeypatch.delenv("GRIDRPC_MODULE_PATH", raising=False)

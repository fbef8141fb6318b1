"""The source distribution and the wheel, built once, and an environment that has only the wheel."""

from __future__ import annotations

import os
import shutil
import sys
import tarfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from packaged import QUICK_BUILD, ROOT, Environment, build_sdist, run


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    build_sdist(ROOT, folder)
    (file,) = folder.iterdir()
    return file


@pytest.fixture(scope="session")
def unpacked(sdist: Path) -> Path:
    """Its sources, always in the same place: what is built there stays valid."""
    folder = ROOT / "target" / "sdist"
    shutil.rmtree(folder, ignore_errors=True)
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (sources,) = folder.iterdir()
    return sources


@pytest.fixture(scope="session")
def wheel(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that is built from the source distribution."""
    folder = tmp_path_factory.mktemp("wheel")
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder)
    environment = {**os.environ, **QUICK_BUILD}
    run(
        sys.executable, "-m", "pip", "wheel", *options, ".", cwd=unpacked, environment=environment
    )  # fmt: skip
    (file,) = folder.iterdir()
    return file


@pytest.fixture(scope="session")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """A fresh virtual environment, outside of the checkout, with `pip install WHEEL`."""
    prefix = tmp_path_factory.mktemp("fresh") / "venv"
    run(sys.executable, "-m", "venv", prefix, cwd=prefix.parent)
    run(
        prefix / "bin/python", "-m", "pip", "install", "--quiet",
        "--disable-pip-version-check", "-c", ROOT / "constraints.txt", wheel, cwd=prefix.parent,
    )  # fmt: skip
    return Environment(prefix)

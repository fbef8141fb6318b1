"""Fresh environments for tests, made as users make them, from the source distribution.

What takes long is made once for all processes of a test run: see `once`.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
SECONDS = 900
#: Whether `make install` compiles crates as builds here do: in CI, where variables say how.
COMPILED = "CARGO_PROFILE_RELEASE_OPT_LEVEL" in os.environ
#: What is tested is what the packages have, not how fast it is: most of the time would go into
#: making it fast. What is built stays for the next time.
QUICK_BUILD = {
    "CARGO_PROFILE_RELEASE_LTO": "off",
    "CARGO_PROFILE_RELEASE_OPT_LEVEL": os.environ.get("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0"),
    "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
    "CARGO_PROFILE_RELEASE_DEBUG": "0",
    "CARGO_TARGET_DIR": str(ROOT / "target" / "packages"),
    # To compress libraries that were not optimized would take as long as all else together.
    "GRIDRPC_WHEEL_COMPRESSION": "1",
    "DPKG_DEB_COMPRESSOR_TYPE": "gzip",
    "DPKG_DEB_COMPRESSOR_LEVEL": "1",
    # Libraries of C that crates bring along.
    "DEB_BUILD_OPTIONS": "noopt",
    # Packages that builds and environments need come in the versions that are tested.
    "PIP_CONSTRAINT": str(ROOT / "constraints.txt"),
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    # As pip does.
    "UV_SYSTEM_CERTS": "1",
    "UV_CONSTRAINT": str(ROOT / "constraints.txt"),
    "UV_BUILD_CONSTRAINT": str(ROOT / "constraints.txt"),
}
#: Where pip unpacks the source distribution. Cargo reads this file in all folders below:
#: there are no variables for single crates.
UNPACKED = ROOT / "target" / "sdist"
CARGO_CONFIG = UNPACKED / ".cargo" / "config.toml"
#: What Cargo makes of libraries, with lists of the files that each was made of.
COMPILED_FILES = (".a", ".d", ".rlib", ".rmeta", ".so")
#: Builds that are not isolated use what the environment of the tests has.
TOOLS = {
    "PYO3_PYTHON": sys.executable,
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
}


def run(
    *command: str | os.PathLike[str],
    cwd: Path,
    environment: dict[str, str] | None = None,
    expected: int = 0,
) -> str:
    """What a command prints, on either stream."""
    ran = subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ran.returncode == expected, f"{command}:\n{ran.stdout}"
    return ran.stdout


def build_sdist(sources: Path, folder: Path) -> None:
    code = f"import backend; backend.build_sdist({str(folder)!r})"
    environment = {**os.environ, **QUICK_BUILD, **TOOLS, "PYTHONPATH": str(sources / "packaging")}
    run(sys.executable, "-c", code, cwd=sources, environment=environment)


def isolated_build(sources: Path) -> dict[str, str]:
    """The variables of builds that pip isolates, so that they bring their own tools."""
    if COMPILED:
        return {**os.environ, **QUICK_BUILD}
    # With other variables Debian's packages would have most of this built again.
    return {**debian_variables(sources), **os.environ, **QUICK_BUILD}


def write_cargo_config() -> None:
    """Has no crate of the workspace be optimized, whatever it is in releases."""
    manifests = [tomllib.loads(file.read_text()) for file in ROOT.glob("crates/*/Cargo.toml")]
    names = {manifest["package"]["name"] for manifest in manifests}
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text())
    names.update(manifest["profile"]["release"]["package"])
    CARGO_CONFIG.parent.mkdir()
    CARGO_CONFIG.write_text(
        "".join(f"[profile.release.package.{name}]\nopt-level = 0\n" for name in sorted(names))
    )


def copy_compiled_crates() -> None:
    """Begins with what `make install` has compiled of the same sources: Cargo compares their names
    and times, wherever they lie. What the sources here lack is missed all the same."""
    source = ROOT / "target" / "release"
    folder = Path(QUICK_BUILD["CARGO_TARGET_DIR"]) / "release"
    if folder.exists() or not source.exists():
        return
    # Others may compile there meanwhile: only what is complete has a fingerprint.
    for place in (".fingerprint", "build"):
        shutil.copytree(source / place, folder / place, symlinks=True)
    (folder / "deps").mkdir()
    for path in (source / "deps").iterdir():
        # Of programs those of the packages alone: no tests.
        if path.suffix in COMPILED_FILES or path.name.startswith(("gridrpc-", "gridbench_task-")):
            shutil.copy2(path, folder / "deps")


def debian_variables(sources: Path) -> dict[str, str]:
    """What Debian's packages are built with: flags for C, and the date of the build, which build
    scripts look at. Nothing where its tools are not there."""
    if shutil.which("dpkg-buildflags") is None:
        return {}
    log = (
        "dpkg-parsechangelog",
        "--file",
        "packaging/debian/changelog",
        "--show-field",
        "Timestamp",
    )
    flags = run("dpkg-buildflags", cwd=sources, environment={**os.environ, **QUICK_BUILD})
    return {
        **dict(line.split("=", 1) for line in flags.splitlines()),
        "SOURCE_DATE_EPOCH": run(*log, cwd=sources).strip(),
    }


def debian_build(sources: Path, folder: Path) -> dict[str, str]:
    """The variables of a build of Debian's packages, which begins with what is compiled already.

    Debian's tools set others than `make install` had, for which build scripts in C, and most crates
    after them, would be compiled again. Where `make install` has compiled them, Cargo gets none of
    these, by a `cargo` in the folder.
    """
    variables = {**os.environ, **QUICK_BUILD, **TOOLS}
    if COMPILED:
        cargo = shutil.which("cargo", path=variables["PATH"])
        unset = " ".join(sorted(debian_variables(sources)))
        (folder / "cargo").write_text(f'#!/bin/sh\nunset {unset}\nexec {cargo} "$@"\n')
        (folder / "cargo").chmod(0o755)
        variables["PATH"] = f"{folder}:{variables['PATH']}"
    return variables


@contextmanager
def alone() -> Iterator[None]:
    """One of the processes that run tests side by side, as they build in the same folders."""
    (ROOT / "target").mkdir(exist_ok=True)
    with open(ROOT / "target" / "packages.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and how commands are run with it activated."""

    prefix: Path

    def run(self, *command: str | os.PathLike[str], cwd: Path, expected: int = 0) -> str:
        """What a command prints."""
        return run(*command, cwd=cwd, environment=self.variables(), expected=expected)

    def variables(self) -> dict[str, str]:
        """As after `source bin/activate` in a new login."""
        login = login_variables()
        return {
            **login,
            "PATH": f"{self.prefix}/bin:{login['PATH']}",
            "VIRTUAL_ENV": str(self.prefix),
        }


def login_variables() -> dict[str, str]:
    """The variables of a new login."""
    # Machines that run tests are busy.
    stored = ("HOME", "LANG", "TMPDIR", "USER", "GRIDBENCH_ACCEPT_LOAD")
    return {
        **{name: os.environ[name] for name in stored if name in os.environ},
        "PATH": "/usr/local/bin:/usr/bin:/bin",
    }


def once(name: str, factory: pytest.TempPathFactory, make: Callable[[Path], None]) -> Path:
    """A folder that `make` fills, once for all processes that run tests side by side. What fails is
    tried once more; after that, every test that needs it fails at once."""
    shared = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder = shared / name
    with open(shared / f"{name}.made", "a+") as made:
        fcntl.flock(made, fcntl.LOCK_EX)
        made.seek(0)
        attempts = made.read().split()
        if attempts.count("failed") > 1:
            pytest.fail(f"{name} failed twice: the first test that needs it says why")
        if "made" not in attempts:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            try:
                make(folder)
            except BaseException:
                made.write("failed\n")
                raise
            made.write("made\n")
    return folder


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution, and the wheels that are built from it.

    pip leaves the sources where it has built the wheel: what is compiled there stays valid for all
    other builds.
    """

    def make(folder: Path) -> None:
        with alone():
            build_sdist(ROOT, folder)
            (sdist,) = folder.iterdir()
            shutil.rmtree(UNPACKED, ignore_errors=True)
            UNPACKED.mkdir(parents=True)
            if COMPILED:
                copy_compiled_crates()
            else:
                write_cargo_config()
            build = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-clean")
            variables = {**isolated_build(ROOT), "TMPDIR": str(UNPACKED)}
            run(*build, "--wheel-dir", folder, sdist, cwd=folder, environment=variables)
            sources = unpacked_sources()
            code = f"import backend; backend.build_static_wheel({str(folder)!r})"
            variables = {**isolated_build(sources), **TOOLS, "PYTHONPATH": "packaging"}
            run(sys.executable, "-c", code, cwd=sources, environment=variables)

    return once("packages", tmp_path_factory, make)


@pytest.fixture(scope="session")
def sdist(packages: Path) -> Path:
    """The source distribution."""
    (file,) = packages.glob("*.tar.gz")
    return file


@pytest.fixture(scope="session")
def unpacked(packages: Path) -> Path:
    """Its sources."""
    del packages
    return unpacked_sources()


def unpacked_sources() -> Path:
    """Where pip has unpacked the source distribution."""
    (sources,) = UNPACKED.glob("pip-req-build-*")
    return sources


@pytest.fixture(scope="session")
def wheel(packages: Path) -> Path:
    """The wheel that is built from the source distribution."""
    (file,) = packages.glob("gridrpc-*.whl")
    return file


@pytest.fixture(scope="session")
def static_wheel(packages: Path) -> Path:
    """The wheel with the static library."""
    (file,) = packages.glob("gridrpc_static-*.whl")
    return file


def make_environment(prefix: Path) -> None:
    """Makes an environment that has pip."""
    run(sys.executable, "-m", "venv", prefix, cwd=prefix.parent)


def install(prefix: Path, sources: Path, *packages: str | Path) -> None:
    """Has the pip of an environment install packages, in the folder of the sources."""
    command = (prefix / "bin/python", "-m", "pip", "install", "--quiet", *packages)
    # pip unpacks a source distribution where Cargo finds the same configuration.
    environment = {**isolated_build(sources), "TMPDIR": str(UNPACKED)}
    with alone():
        run(*command, cwd=sources, environment=environment)


@pytest.fixture(scope="session")
def environment(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """A fresh virtual environment, outside of the checkout, with `pip install .`."""

    def make(folder: Path) -> None:
        make_environment(folder / "venv")
        install(folder / "venv", unpacked, ".")

    return Environment(once("fresh", tmp_path_factory, make) / "venv")


def required(wheel: Path, extras: tuple[str, ...]) -> set[str]:
    """The packages that a wheel requires with these extras, and what they require themselves, by
    what is installed here."""
    with zipfile.ZipFile(wheel) as archive:
        (folder,) = {name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name}
        lines = metadata.PathDistribution(zipfile.Path(archive, f"{folder}/")).requires or []
    found: set[tuple[str, frozenset[str]]] = set()
    ahead = [(line, frozenset(extras)) for line in lines]
    while ahead:
        line, of = ahead.pop()
        requirement = Requirement(line)
        marker = requirement.marker
        if marker and not any(marker.evaluate({"extra": extra}) for extra in ("", *of)):
            continue
        package = (requirement.name, frozenset(requirement.extras))
        if package not in found:
            found.add(package)
            needs = metadata.distribution(requirement.name).requires or []
            ahead += [(line, package[1]) for line in needs]
    return {name for name, _ in found}


def copy_package(name: str, folder: Path) -> None:
    """Puts an installed package into another folder of packages, without its programs."""
    installed = metadata.distribution(name)
    for file in installed.files or []:
        if ".." not in file.parts:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file.locate(), folder / file)


@pytest.fixture(scope="session")
def full_environment(
    wheel: Path, unpacked: Path, tmp_path_factory: pytest.TempPathFactory
) -> Environment:
    """Another one, with all extras of the wheel: what `make install` installs.

    What the wheel requires comes from the environment of the tests, compiled, as pip would take
    most of a minute for it. pip sees to it that nothing is missing.
    """
    extras = ("gridbench", "joblib", "mpi", "progress")

    def make(folder: Path) -> None:
        prefix = folder / "venv"
        make_environment(prefix)
        (packages,) = prefix.glob("lib/python*/site-packages")
        for name in required(wheel, extras):
            copy_package(name, packages)
        install(prefix, unpacked, "--no-index", f"{wheel}[{','.join(extras)}]")

    return Environment(once("full", tmp_path_factory, make) / "venv")

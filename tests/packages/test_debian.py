"""Debian's packages have what they should, and what is in them compiles and runs programs."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import sys
import tomllib
from pathlib import Path

import pytest
from fresh import ROOT, VERSION, Environment, alone, debian_build, run
from samples import FORTRAN, IDL, C

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("dpkg-buildpackage", "dh", "dh_python3"))),
    reason="needs what builds Debian's packages: make debian-tools",
)

NAMES = {"gridrpc", "gridrpc-server", "libgridrpc0", "libgridrpc-dev", "python3-gridrpc"}
#: The Python that Debian's packages of Python modules are for.
PYTHON = Path("/usr/bin/python3")

PROGRAM = r"""
import functools
import cloudpickle, numpy
import gridrpc

@functools.lru_cache
def square(x):
    return x * x

with gridrpc.Grid(workers=2) as grid:
    print(list(grid.map(square, range(4))))
    print(grid.submit(lambda x: 2 * x, numpy.arange(3)).result())
with gridrpc.Grid(workers=1, worker="native", modules=["."]) as grid:
    x = gridrpc.empty(2)
    x[:] = 3
    grid.function("sample/scale")(2.0, x)
    print(x)
print(gridrpc.__file__)
"""


@pytest.fixture(scope="module")
def debs(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The packages that are built from the source distribution, by name."""
    folder = tmp_path_factory.mktemp("debian")
    environment = debian_build(unpacked, tmp_path_factory.mktemp("cargo"))
    build = (unpacked / "scripts/build-deb", sys.executable, unpacked, folder)
    with alone():
        run(*build, cwd=folder, environment=environment)
    return {file.name.partition("_")[0]: file for file in folder.iterdir()}


@pytest.fixture(scope="module")
def root(debs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all of them are unpacked into."""
    folder = tmp_path_factory.mktemp("root")
    for file in debs.values():
        run("dpkg-deb", "--extract", file, folder, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def libraries(root: Path) -> Path:
    """The folder that Debian has for libraries of this architecture."""
    triplet = run("dpkg-architecture", "-qDEB_HOST_MULTIARCH", cwd=root).strip()
    return root / "usr/lib" / triplet


@pytest.fixture
def work(root: Path, tmp_path: Path) -> Path:
    """A folder with a module, which the unpacked `gridrpc compile` has made."""
    (tmp_path / "sample.idl").write_text(IDL)
    (tmp_path / "client.c").write_text(C)
    (tmp_path / "first.f90").write_text(FORTRAN)
    (tmp_path / "program.py").write_text(PROGRAM)
    shell(root, tmp_path, "gridrpc compile sample.idl")
    return tmp_path


def shell(root: Path, work: Path, line: str) -> str:
    return Environment(root / "usr").run("bash", "-euc", line, cwd=work)


def test_the_packages_are_of_this_version(debs: dict[str, Path], tmp_path: Path) -> None:
    assert set(debs) == NAMES
    for name, file in debs.items():
        fields = ("Package", "Version")
        reported = run("dpkg-deb", "--field", file, *fields, cwd=tmp_path)
        assert reported.splitlines() == [f"Package: {name}", f"Version: {VERSION}-1"]
    assert not (ROOT / "debian").exists(), "the checkout stays as it was"


def test_they_depend_on_each_other_and_on_what_they_need(
    debs: dict[str, Path], tmp_path: Path
) -> None:
    needs = {
        name: run("dpkg-deb", "--field", file, "Depends", cwd=tmp_path)
        for name, file in debs.items()
    }
    exactly = re.escape(f"(= {VERSION}-1)")
    for name in NAMES - {"gridrpc"}:
        assert re.search(rf"\bgridrpc {exactly}", needs[name]), name
    assert re.search(rf"\blibgridrpc0 {exactly}", needs["libgridrpc-dev"])
    for name in NAMES - {"libgridrpc-dev", "gridrpc-server"}:
        assert re.search(r"\blibc6 \(>= 2\.\d+\)", needs[name]), name
    # The bounds of pyproject.toml, and those that Debian 12 can keep.
    requires = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    for requirement in requires:
        package, bound = requirement.split(">=")
        found = re.search(rf"python3-{package} \(>= (?:\d:)?([\d.]+)\)", needs["python3-gridrpc"])
        assert found is not None, package
        assert found[1] == bound
    assert "python3 (>= 3.11)" in needs["python3-gridrpc"]


def crates_of(documents: Path) -> str:
    """The list of crates, which debhelper compresses once it is longer than 4 KiB."""
    compressed = documents / "crates.gz"
    if compressed.exists():
        return gzip.decompress(compressed.read_bytes()).decode()
    return (documents / "crates").read_text()


def test_files_lie_where_debian_has_them(root: Path, libraries: Path) -> None:
    for name in ("gridrpc", "ng_gen", "ng_cc"):
        assert os.access(root / "usr/bin" / name, os.X_OK), name
    for name in ("grpc.h", "ninf.h", "gridrpc.hpp", "gridrpc/fortran/grpc.f90"):
        assert (root / "usr/include" / name).is_file(), name
    assert (libraries / "libgridrpc.so").resolve() == libraries / f"libgridrpc.so.{VERSION}"
    assert (libraries / "pkgconfig/gridrpc.pc").is_file()
    share = root / "usr/share"
    completed = (
        "bash-completion/completions",
        "zsh/vendor-completions",
        "fish/vendor_completions.d",
    )
    found = {place: [file.name for file in (share / place).iterdir()] for place in completed}
    assert list(found.values()) == [["gridrpc"], ["_gridrpc"], ["gridrpc.fish"]]
    modules = root / "usr/lib/python3/dist-packages"
    assert (modules / "gridrpc/_native.abi3.so").is_file()
    assert not (modules / "gridbench").exists()
    for name in NAMES:
        documents = root / "usr/share/doc" / name
        assert "Apache-2.0" in (documents / "copyright").read_text()
        assert "\npyo3 v" in crates_of(documents)


@pytest.mark.parametrize(
    "build",
    [
        "cc -o client client.c $(gridrpc config --cflags --libs)",
        "cc -o client client.c $(gridrpc config --cflags --libs --static)",
        "ng_cc -o client client.c",
        "PKG_CONFIG_PATH=$(gridrpc config --pkgconfigdir) && export PKG_CONFIG_PATH &&"
        " cc -o client client.c $(pkg-config --cflags --libs gridrpc)"
        " -Wl,-rpath,$(gridrpc config --libdir)",
    ],
)
def test_c_programs_are_compiled_and_run(root: Path, work: Path, build: str) -> None:
    assert shell(root, work, f"{build}; GRIDRPC_MODULE_PATH=. ./client") == "2 4 6\n"


def test_the_library_finds_the_program_of_its_packages(root: Path, work: Path) -> None:
    build = "cc -o client client.c $(gridrpc config --cflags --libs)"
    ran = shell(root, work, f"{build}; PATH=/usr/bin:/bin GRIDRPC_MODULE_PATH=. ./client")
    assert ran == "2 4 6\n"


def test_fortran_programs_use_the_module(root: Path, work: Path) -> None:
    build = (
        "PKG_CONFIG_PATH=$(gridrpc config --pkgconfigdir) && export PKG_CONFIG_PATH &&"
        " gfortran -o first first.f90 $(pkg-config --cflags --libs gridrpc-fortran)"
        " -Wl,-rpath,$(gridrpc config --libdir)"
    )
    assert shell(root, work, f"{build}; GRIDRPC_MODULE_PATH=. ./first") == "  2.0  4.0  6.0\n"


def test_bash_completes_commands_of_the_program(root: Path, work: Path) -> None:
    script = root / "usr/share/bash-completion/completions/gridrpc"
    line = (
        f". {script}; COMP_WORDS=(gridrpc do); COMP_CWORD=1; _gridrpc gridrpc do gridrpc;"
        ' echo "${COMPREPLY[@]}"'
    )
    assert shell(root, work, line) == "doctor\n"


def test_the_service_is_valid(debs: dict[str, Path], root: Path, tmp_path: Path) -> None:
    control = tmp_path / "control"
    run("dpkg-deb", "--control", debs["gridrpc-server"], control, cwd=tmp_path)
    assert (control / "conffiles").read_text() == "/etc/gridrpc/server.toml\n"
    script = (control / "postinst").read_text()
    assert "adduser" in script
    assert "deb-systemd-helper" in script
    run("sh", "-n", control / "postinst", cwd=tmp_path)
    assert (root / "usr/share/man/man8/gridrpc-server.8.gz").is_file()
    [unit] = root.rglob("gridrpc-server.service")
    program = re.search(r"^ExecStart=(/\S+)", unit.read_text(), re.MULTILINE)
    assert program is not None
    assert (root / program[1][1:]).is_file()
    if shutil.which("systemd-analyze"):
        # With the program where it is here.
        here = tmp_path / unit.name
        here.write_text(
            unit.read_text().replace("=/usr", f"={root}/usr").replace("=-/usr", f"=-{root}/usr")
        )
        run("systemd-analyze", "verify", "--man=no", here, cwd=tmp_path)


def test_the_server_starts_with_its_configuration(root: Path, tmp_path: Path) -> None:
    text = (root / "etc/gridrpc/server.toml").read_text()
    places = {"/var/lib/gridrpc": tmp_path / "state", "/run/gridrpc": tmp_path}
    for place, here in places.items():
        assert place in text
        text = text.replace(place, str(here))
    config = tmp_path / "server.toml"
    config.write_text(text)
    line = f"""
        export GRIDRPC_SERVER_CONFIG={config}
        gridrpc server check
        gridrpc server start 2>log & pid=$!
        until gridrpc server status 2>/dev/null; do kill -0 $pid; sleep 0.1; done
        gridrpc server drain --wait --timeout 10
        gridrpc server stop
        wait $pid
    """
    assert "has stopped" in shell(root, tmp_path, line)
    # The keys that are commented out are right: only their files are missing.
    whole = re.sub(r"(?m)^# (?=\[|\w+ = )", "", text)
    assert whole != text
    config.write_text(whole)
    ran = shell(root, tmp_path, f"gridrpc server check --config {config} 2>&1 || true")
    assert "certificate.pem` does not exist" in ran
    assert f"{config}:" not in ran


def test_python_programs_run_with_debians_python(root: Path, work: Path) -> None:
    modules = root / "usr/lib/python3/dist-packages"
    ran = shell(root, work, f"PYTHONPATH={modules} PATH=/usr/bin:/bin {PYTHON} program.py")
    lines = ran.splitlines()
    assert lines[:3] == ["[0, 1, 4, 9]", "[0 2 4]", "[6. 6.]"]
    assert Path(lines[3]).is_relative_to(root)

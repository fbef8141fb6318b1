"""`pip install gridrpc` gives everything: Python, the program, the C library, Fortran's sources."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from fresh import ROOT, VERSION, Environment, build_sdist, run
from samples import FORTRAN, IDL, C

PYTHON = r"""
import math, sys
import gridrpc

with gridrpc.Grid(workers=2) as grid:
    print(sum(grid.map(math.sqrt, [1, 4, 9])))
with gridrpc.Grid(workers=1, worker="native", modules=["."]) as grid:
    x = gridrpc.empty(2)
    x[:] = 3
    grid.function("sample/scale")(2.0, x)
    print(x)
assert gridrpc.__file__.startswith(sys.prefix), gridrpc.__file__
"""


@pytest.fixture
def work(environment: Environment, tmp_path: Path) -> Path:
    """A folder with a module, which `gridrpc compile` of the environment has made."""
    (tmp_path / "sample.idl").write_text(IDL)
    (tmp_path / "client.c").write_text(C)
    (tmp_path / "first.f90").write_text(FORTRAN)
    (tmp_path / "program.py").write_text(PYTHON)
    environment.run("gridrpc", "compile", "sample.idl", cwd=tmp_path)
    return tmp_path


def shell(environment: Environment, work: Path, line: str) -> str:
    return environment.run("bash", "-euc", line, cwd=work)


def test_python_has_grids_native_workers_and_modules(environment: Environment, work: Path) -> None:
    said = environment.run("python", "program.py", cwd=work)
    assert said.split("\n")[:2] == ["6.0", "[6. 6.]"]


@pytest.mark.parametrize(
    "build",
    [
        "cc -o client client.c $(gridrpc config --cflags --libs)",
        "PKG_CONFIG_PATH=$(gridrpc config --pkgconfigdir) && export PKG_CONFIG_PATH &&"
        " cc -o client client.c $(pkg-config --cflags --libs gridrpc)"
        " -Wl,-rpath,$(gridrpc config --libdir)",
        "ng_cc -o client client.c",
    ],
)
def test_c_programs_are_compiled_and_run(environment: Environment, work: Path, build: str) -> None:
    assert shell(environment, work, f"{build}; GRIDRPC_MODULE_PATH=. ./client") == "2 4 6\n"


def test_c_programs_link_the_static_library_of_its_own_wheel(
    environment: Environment, static_wheel: Path, work: Path
) -> None:
    build = "cc -o client client.c $(gridrpc config --cflags --libs --static)"
    missing = environment.run("gridrpc", "config", "--libs", "--static", cwd=work, expected=1)
    assert "wheel gridrpc-static" in missing
    environment.run("python", "-m", "pip", "install", "-q", "--no-index", static_wheel, cwd=work)
    try:
        assert shell(environment, work, f"{build}; GRIDRPC_MODULE_PATH=. ./client") == "2 4 6\n"
        assert "libgridrpc" not in run("ldd", "client", cwd=work)
    finally:
        remove = ("python", "-m", "pip", "uninstall", "-q", "-y", "gridrpc-static")
        environment.run(*remove, cwd=work)


def test_binaries_of_the_wheel_have_nothing_for_debuggers(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        files = [name for name in names if archive.read(name).startswith(b"\x7fELF")]
        archive.extractall(tmp_path, files)
    for name in files:
        assert not re.search(r"\.(debug_\w+|symtab)", run("readelf", "-SW", name, cwd=tmp_path)), (
            name
        )
    assert not [name for name in names if name.endswith(".a")]


COMPRESS = """
import pathlib, sys, backend
content = pathlib.Path(backend.__file__).read_bytes()
files = {"a/code.py": (content, 0o755), "empty": (b"", 0o644)}
backend._write_wheel(pathlib.Path(sys.argv[1]), files, "RECORD")
"""


def test_both_ways_to_compress_wheels_keep_contents_and_modes(tmp_path: Path) -> None:
    sizes = {}
    for way in ("6", "zopfli"):
        file = tmp_path / f"{way}.whl"
        variables = {
            **os.environ,
            "PYTHONPATH": str(ROOT / "packaging"),
            "GRIDRPC_WHEEL_COMPRESSION": way,
        }
        run(sys.executable, "-c", COMPRESS, file, cwd=tmp_path, environment=variables)
        with zipfile.ZipFile(file) as archive:
            assert archive.testzip() is None
            assert archive.namelist() == ["a/code.py", "empty", "RECORD"]
            entry = archive.getinfo("a/code.py")
            assert archive.read(entry) == (ROOT / "packaging/backend.py").read_bytes()
            assert archive.read("empty") == b""
        assert entry.external_attr >> 16 == 0o100755
        sizes[way] = entry.compress_size
    assert sizes["zopfli"] < sizes["6"]


def test_the_wheel_has_the_testbed_and_no_benchmarks_of_the_project(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        folders = {name.partition("/")[0] for name in archive.namelist()}
    assert {"gridrpc", "gridbench", "gridbench_testbed"} <= folders
    assert "benchmarks" not in folders


def test_the_page_of_the_package_has_authors_addresses_and_links_that_work(
    wheel: Path, sdist: Path
) -> None:
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(f"gridrpc-{VERSION}.dist-info/METADATA").decode()
    with tarfile.open(sdist) as archive:
        assert archive.extractfile(f"gridrpc-{VERSION}/PKG-INFO").read().decode() == text
    fields, _, page = text.partition("\n\n")
    for field in ("Author-email", "Keywords", "License-Expression", "Project-URL"):
        assert re.search(rf"^{field}: .", fields, re.MULTILINE), field
    assert "Classifier: Topic :: Scientific/Engineering" in fields
    links = re.findall(r"\]\(([^)\s]+)\)", page)
    assert len(links) > 20
    assert [link for link in links if not re.match(r"https://|#", link)] == []


def test_fortran_programs_are_compiled_and_run(environment: Environment, work: Path) -> None:
    build = (
        "gfortran -o first $(gridrpc config --fortran-source) first.f90"
        " $(gridrpc config --cflags --libs)"
    )
    said = shell(environment, work, f"{build}; GRIDRPC_MODULE_PATH=. ./first")
    assert said == "  2.0  4.0  6.0\n"


def test_old_makefiles_are_written(environment: Environment, work: Path) -> None:
    said = shell(environment, work, "rm sample.so; ng_gen sample.idl; make -f sample.mak; ls")
    assert "_stub_scale" in said


def test_gridbench_without_its_packages_says_what_to_install(
    environment: Environment, tmp_path: Path
) -> None:
    for command in (("gridbench", "--help"), ("python", "-m", "gridbench")):
        said = environment.run(*command, cwd=tmp_path, expected=2)
        assert "pip install 'gridrpc[gridbench]'" in said
        assert "Traceback" not in said


def test_the_package_that_gridbench_names_is_the_extra() -> None:
    sys.path.insert(0, str(ROOT / "python"))
    from gridbench.program import EXTRA

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extra = project["optional-dependencies"]["gridbench"]
    assert {re.match(r"[\w-]+", one)[0] for one in extra} == set(EXTRA.values())


def test_gridbench_has_its_tasks_as_a_program(
    wheel: Path, environment: Environment, tmp_path: Path
) -> None:
    with zipfile.ZipFile(wheel) as archive:
        entry = archive.getinfo("gridbench/native/gridbench-task")
    assert entry.external_attr >> 16 == 0o100755
    code = "from gridbench.native import task_program; print(task_program())"
    program = environment.run("python", "-c", code, cwd=tmp_path).strip()
    assert program.startswith(str(environment.prefix))
    said = environment.run(program, "write-read", "--directory", ".", "--size", "1M", cwd=tmp_path)
    assert [phase["name"] for phase in json.loads(said)["phases"]] == ["write", "read"]


@pytest.mark.parametrize("program", ["gridrpc", "gridbench"])
def test_shells_find_what_completes_both_programs(
    wheel: Path, environment: Environment, tmp_path: Path, program: str
) -> None:
    places = {
        f"share/bash-completion/completions/{program}": f"complete .*{program}$",
        f"share/zsh/site-functions/_{program}": rf"\A#compdef {program}$",
        f"share/fish/vendor_completions.d/{program}.fish": f"complete .*{program}",
    }
    for place, pattern in places.items():
        text = (environment.prefix / place).read_text()
        assert re.search(pattern, text, re.MULTILINE), place
    with zipfile.ZipFile(wheel) as archive:
        for place in places:
            assert (
                archive.getinfo(f"gridrpc-{VERSION}.data/data/{place}").external_attr >> 16
                == 0o100644
            )
    line = f". {environment.prefix}/{next(iter(places))}; complete -p {program}"
    assert f"_{program}" in environment.run("bash", "-c", line, cwd=tmp_path)


def test_config_tells_where_things_are(environment: Environment, tmp_path: Path) -> None:
    def message(*wanted: str) -> str:
        return environment.run("gridrpc", "config", *wanted, cwd=tmp_path).strip()

    assert Path(message("--prefix")) == environment.prefix
    assert Path(message("--includedir"), "grpc.h").is_file()
    assert Path(message("--libdir"), "libgridrpc.so.0").is_file()
    for source in message("--fortran-source").split():
        assert Path(source).is_file()
    assert message("--lib-version") == VERSION
    (tmp_path / "bin").mkdir()
    os.link(environment.prefix / "bin/gridrpc", tmp_path / "bin/gridrpc")
    alone = environment.run(tmp_path / "bin/gridrpc", "config", "--libs", cwd=tmp_path, expected=1)
    assert "the C library is not installed with this program" in alone


def test_the_wheel_is_for_all_newer_pythons_and_old_systems(wheel: Path) -> None:
    name, version, python, abi, platform = wheel.stem.split("-")
    assert (name, version, python, abi) == ("gridrpc", VERSION, "cp311", "abi3")
    allowed = int(re.fullmatch(r"manylinux_2_(\d+)_\w+", platform)[1])
    with zipfile.ZipFile(wheel) as archive:
        contents = {entry: archive.read(entry) for entry in archive.namelist()}
    binaries = {name: file for name, file in contents.items() if file.startswith(b"\x7fELF")}
    assert len(binaries) == 5, (
        "the native module, the program, the C library, and tasks of gridbench: a module, a program"
    )
    for entry, content in binaries.items():
        needed = max(map(int, re.findall(rb"GLIBC_2\.(\d+)", content)))
        assert needed <= allowed, entry
    native = next(name for name in binaries if "_native" in name)
    assert native.endswith("_native.abi3.so")


@pytest.mark.skipif(shutil.which("npm") is None, reason="it is fetched by npm")
def test_the_wheel_has_the_part_of_plotly_that_pages_need(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        assert "gridbench/pages/assets/plotly-basic.min.js" in archive.namelist()


def test_the_wheel_has_the_sources_of_data_grids_to_be_built(
    wheel: Path, environment: Environment, tmp_path: Path
) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    java = "gridbench/datagrid/java"
    assert {f"{java}/pom.xml", f"{java}/core/pom.xml", f"{java}/engines/null/engine.toml"} <= set(
        names
    )
    assert not [name for name in names if "src/test" in name]
    code = "from gridbench.datagrid.engine_build import sources; print(sources())"
    found = Path(environment.run("python", "-c", code, cwd=tmp_path).strip())
    assert found.is_relative_to(environment.prefix)
    assert (found / "core/src/main/java/gridbench/datagrid/DataGrid.java").is_file()


def test_auditwheel_agrees_with_the_tag(wheel: Path, tmp_path: Path) -> None:
    said = run(sys.executable, "-m", "auditwheel", "show", wheel, cwd=tmp_path)
    platform = wheel.stem.rpartition("-")[2]
    assert f'"{platform}"' in " ".join(said.split()), said


def test_the_source_distribution_makes_itself_again(
    sdist: Path, unpacked: Path, tmp_path: Path
) -> None:
    build_sdist(unpacked, tmp_path)
    with tarfile.open(sdist) as first, tarfile.open(tmp_path / sdist.name) as second:
        names = set(first.getnames())
        assert names == set(second.getnames())
    stem = sdist.name.removesuffix(".tar.gz")
    expected = (
        "Cargo.lock",
        "crates/capi/include/grpc.h",
        "packaging/backend.py",
        "datagrid/pom.xml",
    )
    for name in ("PKG-INFO", *expected):
        assert f"{stem}/{name}" in names

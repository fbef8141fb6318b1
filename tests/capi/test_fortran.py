"""The Fortran module: programs that use all of it, and what calls refuse.

The examples and the programs of the documentation are run by tests/docs/test_as_printed.py.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
COMPILER = os.environ.get("FC", "gfortran")
SECONDS = 120

#: Comparisons of numbers that are exact are meant.
STRICT = ["-std=f2018", "-Wall", "-Wextra", "-Wno-compare-reals", "-fPIC"]


class Fortran:
    """An installed C library, with its Fortran module."""

    def __init__(self, prefix: Path) -> None:
        self.prefix = prefix
        self.sources = prefix / "include/gridrpc/fortran"

    def run(
        self, *command: str | Path, folder: Path, modules: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "HOME": str(folder),
            "GRIDRPC_WORKERS": "2",
            "GRIDRPC_MODULE_PATH": str(modules),
            "PKG_CONFIG_PATH": str(self.prefix / "lib/pkgconfig"),
        }
        return subprocess.run(
            [str(part) for part in command], cwd=folder, env=environment, capture_output=True,
            text=True, timeout=SECONDS, check=False,
        )  # fmt: skip

    def succeed(self, *command: str | Path, folder: Path) -> str:
        """Runs a command that has to succeed, without warnings."""
        done = self.run(*command, folder=folder)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def compiled(self, name: str, folder: Path, level: str = "-O2") -> Path:
        """A program of the folder `fortran`, with what all of them share."""
        program = folder / name
        sources = [HERE / "fortran" / file for file in ("check.f90", f"{name}.f90")]
        pkg_config = ("pkg-config", "--cflags", "--libs", "gridrpc-fortran")
        flags = self.succeed(*pkg_config, folder=folder).split()
        done = self.run(
            COMPILER, *STRICT, level, *sources, "-o", program, *flags,
            f"-Wl,-rpath,{self.prefix}/lib", folder=folder,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return program


@pytest.fixture(scope="module")
def fortran(prefix: Path) -> Fortran:
    return Fortran(prefix)


@pytest.fixture(scope="module")
def modules(fortran: Fortran, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The modules that the programs call."""
    folder = tmp_path_factory.mktemp("modules")
    source = HERE / "fortran/callee.f90"
    fortran.succeed(COMPILER, *STRICT, f"-I{fortran.sources}", "-c", source, folder=folder)
    for name in ("forms.idl", "callee.idl"):
        shutil.copy(HERE / "fortran" / name, folder)
        fortran.succeed(fortran.prefix / "bin/gridrpc", "compile", name, folder=folder)
    return folder


@pytest.mark.parametrize("level", ["-O0", "-O3"])
@pytest.mark.parametrize("name", ["numbers", "texts", "sessions", "objects", "caller"])
def test_programs(fortran: Fortran, name: str, level: str, modules: Path, tmp_path: Path) -> None:
    program = fortran.compiled(name, tmp_path, level)
    done = fortran.run(program, folder=tmp_path, modules=modules)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


def test_a_configuration_that_is_compatible(
    fortran: Fortran, modules: Path, tmp_path: Path
) -> None:
    (tmp_path / "client.conf").write_text("<CLIENT>\nfortran_compatible true\n</CLIENT>\n")
    done = fortran.run(fortran.compiled("compatible", tmp_path), folder=tmp_path, modules=modules)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


#: Name in refused.f90: code and message.
REFUSED = {
    "initialize": (0, ""),
    "too few": (18, "forms/one_int: it has 2 parameters, but 1 are given"),
    "too many": (18, "forms/one_int: it has 2 parameters, but 3 are given"),
    "absent": (18, "forms/one_int: argument 1 (`x`) is absent"),
    "range": (18, "argument 1 (`x`) is out of range: it has to be integer(c_int)"),
    "real": (18, "argument 1 (`x`) is real: it has to be integer(c_int)"),
    "complex": (18, "argument 1 (`x`) is complex: it has to be integer(c_int)"),
    "text": (18, "argument 1 (`x`) is character: it has to be integer(c_int)"),
    "logical": (18, "argument 1 (`x`) is not a number: it has to be integer(c_int)"),
    "array": (18, "argument 1 (`x`) is an array, but has to be one number: integer(c_int)"),
    "function": (18, "argument 1 (`x`) is a type(c_funptr), but no callback"),
    "real for int array": (18, "`y`) is real (4 bytes), but has to be an array of integer(c_int)"),
    "long for int array": (18, "`y`) is integer (8 bytes), but has to be an array of integer"),
    "negative": (18, "argument 1 (`x`) is out of range: it has to be integer(c_int8_t)"),
    "float": (18, "argument 1 (`x`) is out of range: it has to be real(c_float)"),
    "complex for float": (18, "argument 1 (`x`) is complex: it has to be real(c_float)"),
    "no character": (18, "argument 1 (`x`) is an empty string"),
    "row": (18, "forms/sum_of: argument 2 (`x`) is not contiguous"),
    "strided": (18, "forms/sum_of: argument 2 (`x`) is not contiguous"),
    "singles": (18, "is real (4 bytes), but has to be an array of real(c_double)"),
    "not allocated": (18, "argument 2 (`x`) is not allocated, or not associated"),
    "not associated": (18, "argument 2 (`x`) is not allocated, or not associated"),
    "derived": (18, "is logical or of a derived type (16 bytes), but has to be an array of real"),
    "address": (18, "is a type(c_ptr), but has to be an array of real(c_double): make a Fortran"),
    "number for string": (18, "argument 1 (`text`) has to be of type character"),
    "strings for string": (18, "argument 1 (`text`) is an array, but has to be one string"),
    "async OUT": (18, "(`back`) is a string that comes back, which only calls that are waited for"),
    "no callback": (18, "argument 3 (`f`) is a callback: it has to be a type(c_funptr)"),
    "null callback": (18, "argument 3 (`f`) is a callback: it must not be c_null_funptr"),
    "33 parameters": (18, "it has 33 parameters, and calls from Fortran at most 32 arguments"),
    "object": (0, ""),
    "method": (18, "forms/Counter.add: argument 1 (`n`) is real"),
    "async OUT of method": (18, "forms/Counter.name: argument 2 (`name`) is a string that comes"),
    "no function": (6, "`forms` has no function `none`"),
    "crash": (10, "SIGABRT"),
    "perror": (0, "perror: the worker or the connection to it was lost: forms/crash: worker"),
    "finalize": (0, ""),
    "finalized": (1, "not initialized"),
}


def test_what_calls_refuse(fortran: Fortran, modules: Path, tmp_path: Path) -> None:
    done = fortran.run(fortran.compiled("refused", tmp_path), folder=tmp_path, modules=modules)
    assert done.returncode == 0, done.stderr
    # A line with name and code ends what is printed by itself; what the error's detail is follows.
    parts = re.split(r"^= (.*) = (\d+)\n", done.stderr, flags=re.MULTILINE)
    names, codes = parts[1::3], [int(code) for code in parts[2::3]]
    assert names == list(REFUSED)
    details = [*parts[3::3], ""]
    for at, name in enumerate(names):
        code, said = REFUSED[name]
        assert codes[at] == code, name
        # What is printed by itself stands before the line.
        text = parts[3 * at] if name == "perror" else details[at]
        assert said in text, name


def test_a_module_may_be_compiled_from_its_sources(fortran: Fortran, tmp_path: Path) -> None:
    compiler = [COMPILER, "-Wall", "-Wextra", "-O2", "-c"]
    fortran.succeed(*compiler, "-std=f2018", fortran.sources / "grpc.f90", folder=tmp_path)
    include = f"-I{fortran.prefix}/include"
    fortran.succeed(*compiler, include, fortran.sources / "grpc_arguments.c", folder=tmp_path)


def test_the_module_has_all_of_the_header(fortran: Fortran) -> None:
    header = (fortran.prefix / "include/grpc.h").read_text()
    module = (fortran.sources / "grpc.f90").read_text()
    # What the header only names again, and what a language without pointers does not need.
    without = {"grpc_stack_create", "grpc_stack_push", "grpc_stack_pop", "grpc_stack_destruct",
               "grpc_call_argstack", "grpc_handle_attr_release_np", "grpc_session_attr_release_np",
               "grpc_session_info_release_np",
               # Fortran programs detach calls through C.
               "grpc_detach_np", "grpc_attach_np"}  # fmt: skip
    functions = set(re.findall(r"\b(grpc_\w+)\(", header)) - without
    public = set(re.findall(r"\bgrpc_\w+", module))
    assert functions <= public
    for name, value in re.findall(r"\b(GRPC_\w+) = (\d+)", header):
        assert re.search(rf"\b{name} = {value}\b", module), name

"""Programs as they were written for Ninf-G 2.4 to 5, built by their own makefiles."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

OLD = Path(__file__).parent / "old"


class Old:
    """One program in a folder of its own, and what it is built and run with."""

    def __init__(self, folder: Path, prefix: Path) -> None:
        self.folder = folder
        names = ("PATH", "LANG", "TMPDIR")
        usual = {name: os.environ[name] for name in names if name in os.environ}
        self.environment = {**usual, "HOME": str(folder), "NG_DIR": str(prefix)}

    def run(self, *command: object, fails: bool = False) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [str(word) for word in command],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done

    def files(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}


@pytest.fixture
def old(request: pytest.FixtureRequest, prefix: Path, tmp_path: Path) -> Old:
    """The program that the test names, or an empty folder."""
    folder = tmp_path / "old"
    name = getattr(request, "param", None)
    if name is None:
        folder.mkdir()
    else:
        shutil.copytree(OLD / name, folder)
    return Old(folder, prefix)


@pytest.mark.parametrize("old", ["montecarlo"], indirect=True)
def test_a_tutorial_whose_objects_make_builds(old: Old) -> None:
    before = old.files()
    old.run("make")
    area = float(old.run("./area_client", "client.conf", 1000).stdout.removeprefix("PI = "))
    assert 3.1 < area < 3.2

    # What an object is made of has changed: the module is rebuilt.
    source = old.folder / "area_trial.c"
    source.write_text(source.read_text().replace("if (x * x + y * y < 1.0)", "if (1)"))
    os.utime(source, (os.stat(old.folder / "area.so").st_mtime + 2,) * 2)
    old.run("make", "stubs")
    assert old.run("./area_client", "client.conf", 10).stdout == "PI = 4.000000\n"

    old.run("make", "veryclean")
    assert old.files() == before


@pytest.mark.parametrize("old", ["idioms"], indirect=True)
def test_idioms_of_the_time(old: Old) -> None:
    before = old.files()
    said = old.run("make").stderr
    for warning in ("`count[]` is one element", "a range of one value is taken for its end"):
        assert warning in said
    done = old.run("./client", "client.conf")
    assert (done.stdout, done.stderr) == ("OK\n", "")
    old.run("make", "veryclean")
    assert old.files() == before


@pytest.mark.parametrize("old", ["linear"], indirect=True)
def test_fortran_behind_c(old: Old) -> None:
    old.run("make")
    done = old.run("./client", "client.conf")
    assert done.stdout == "0 1 2\n0 1 -1 0\n2\n"


def test_programs_for_mpi_have_no_callbacks(old: Old) -> None:
    (old.folder / "f.idl").write_text('Module f; Define f(g()) Backend "MPI" { g(); }')
    said = old.run(old.environment["NG_DIR"] + "/bin/ng_gen", "f.idl", fails=True).stderr
    assert 'error: `f` has callbacks, which Backend "MPI" does not allow' in said
    # Others are compiled by the compilers of MPI.
    parallel = 'Define f(IN int n, OUT int r[n]) Backend "MPI" Required "f.o" Calls "C" f(n, r);'
    (old.folder / "f.idl").write_text(f"Module f; {parallel}")
    old.run(old.environment["NG_DIR"] + "/bin/ng_gen", "f.idl")
    assert "CC = mpicc" in (old.folder / "f.mak").read_text()


@pytest.mark.parametrize(
    "name", ["two words", "$(shell touch broken)", "a#b:c", "it's", "-x", "~y"]
)
def test_files_of_any_name(old: Old, name: str) -> None:
    source = '#define N 3\nModule m; Define f(OUT int r[N]) Required "$(PART).o" Calls g(r);\n'
    (old.folder / f"{name}.idl").write_text(source)
    (old.folder / "part.c").write_text("int g(int *r) { return r[2] = ANSWER; }")
    bin = old.environment["NG_DIR"] + "/bin"
    old.run(f"{bin}/ng_gen", "-DOTHER=a b", "--", f"{name}.idl")
    old.run("make", "-f", "m.mak", "PART=part", "CFLAGS=-DANSWER=7")
    assert {"m.so", "_stub_f", "m.nrf", "m.localhost.nrf"} < old.files()
    old.run("make", "-f", "m.mak", "PART=part", "veryclean")
    assert old.files() == {f"{name}.idl", "part.c"}


def test_errors_name_the_file_and_the_line_of_the_user(old: Old) -> None:
    bin = old.environment["NG_DIR"] + "/bin"
    idl = old.folder / "m.idl"
    idl.write_text(
        "#define SIZE 3\n\n/* Two\n   lines. */\nModule m;\nDefine f(OUT int r[SIZ]) { }\n"
    )
    message = old.run(f"{bin}/ng_gen", "m.idl", fails=True).stderr
    assert "m.idl:6:" in message
    assert "m.cpp.idl:" not in message
    # What the C compiler says, when make compiles.
    idl.write_text("#define SIZE 3\nModule m;\nDefine f(OUT int r[SIZE])\n{\n    r[0] = none;\n}\n")
    old.run(f"{bin}/ng_gen", "m.idl")
    assert "m.idl:5:" in old.run("make", "-f", "m.mak", fails=True).stderr
    idl.write_text('\n#include "none.h"\nModule m;\n')
    message = old.run(f"{bin}/ng_gen", "m.idl", fails=True).stderr
    assert "m.idl:2:" in message
    assert "marked" not in message


def test_warnings_come_once(old: Old) -> None:
    bin = old.environment["NG_DIR"] + "/bin"
    (old.folder / "m.idl").write_text("Module m;\nDefine f(IN int n, OUT int r[n:0,n,2]) { }\n")
    commands = ([f"{bin}/ng_gen", "m.idl"], ["make", "-f", "m.mak"])
    message = "".join(old.run(*command).stderr for command in commands)
    assert message.count("have no effect, as in Ninf-G") == 1
    assert message.count("warning:") == 1


def test_directives_in_c_text_are_the_compilers(old: Old) -> None:
    (old.folder / "m.idl").write_text("""
#define SIZE 3
Module m;
Globals {
#ifndef SIZE
#define SIZE 5
#endif
#define TWICE(x) \\
    ((x) + SIZE)
}
Define f(OUT int r[SIZE]) { r[0] = TWICE(1); }
""")
    bin = old.environment["NG_DIR"] + "/bin"
    old.run(f"{bin}/ng_gen", "-D", "UNUSED", "-I.", "m.idl")
    text = (old.folder / "m.cpp.idl").read_text()
    assert "OUT int r[3]" in text
    assert "#ifndef SIZE\n#define SIZE 5\n#endif\n#define TWICE(x) \\\n    ((x) + SIZE)\n" in text
    old.run("make", "-f", "m.mak")


def test_new_programs_keep_their_names(old: Old) -> None:
    source = """
#define GRPC_NO_OLD_NAMES
#include <grpc.h>
typedef struct { double re, im; } dcomplex;
static int assert, isalpha, stdout;
int main(void) { dcomplex z = {1, 2}; return assert + isalpha + stdout + (z.re > z.im); }
"""
    (old.folder / "new.c").write_text(source)
    old.run(old.environment["NG_DIR"] + "/bin/ng_cc", "-Werror", "-o", "new", "new.c")
    old.run("./new")


def test_a_description_with_c99_complex_numbers_says_so(old: Old) -> None:
    body = "{ z[0] *= 2; }"
    (old.folder / "m.idl").write_text(f"Module m; Define f(INOUT dcomplex z[1]) {body}")
    bin = old.environment["NG_DIR"] + "/bin"
    old.run(f"{bin}/ng_gen", "m.idl")
    assert "invalid operands" in old.run("make", "-f", "m.mak", fails=True).stderr
    (old.folder / "m.idl").write_text(
        f'Module m; Dialect "gridrpc"; Define f(INOUT dcomplex z[1]) {body}'
    )
    old.run(f"{bin}/ng_gen", "m.idl")
    old.run("make", "-f", "m.mak")

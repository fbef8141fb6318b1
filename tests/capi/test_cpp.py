"""Structures, vectors and strings as arguments in C++, of callers and of functions."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

MODULES = Path(__file__).parent / "modules"
PROGRAMS = Path(__file__).parent / "programs"
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1"]
COMPILERS = [name for name in ("g++", "clang++") if shutil.which(name)]


@pytest.fixture(scope="module")
def pricing(prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the module of pricing.idl and the source of its stub."""
    folder = tmp_path_factory.mktemp("pricing")
    compile_module = [prefix / "bin/gridrpc", "compile", "--keep-source", "-o", folder]
    command = [*compile_module, MODULES / "pricing.idl"]
    done = subprocess.run(command, timeout=120, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def compiled(compiler: str, output: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [compiler, "-Wall", "-Wextra", "-o", output, *arguments]
    return subprocess.run(command, timeout=120, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_functions_take_and_return_structures_vectors_and_strings(pricing, tmp_path, compiler):
    sources = [pricing / "pricing.stub.cpp", PROGRAMS / "pricing_callee.cpp"]
    program = tmp_path / "callee"
    done = compiled(compiler, program, "-std=c++20", *SANITIZERS, f"-I{MODULES}", *sources)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([program], timeout=60, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "all well\n"), done.stderr


@pytest.mark.parametrize("standard", ["c++17", "c++20"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_programs_pass_structures_vectors_and_strings(
    pricing, prefix, tmp_path, compiler, standard
):
    program = tmp_path / "client"
    folder = prefix / "lib"
    library = ["-I", prefix / "include", "-L", folder, "-lgridrpc", f"-Wl,-rpath,{folder}"]
    source = PROGRAMS / "typed.cpp"
    done = compiled(compiler, program, f"-std={standard}", "-Werror", *SANITIZERS, source, *library)
    assert done.returncode == 0, done.stderr
    # Memory that the library holds to the end of the process is no leak of the header's.
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "GRIDRPC_MODULE_PATH": str(pricing),
        "ASAN_OPTIONS": "detect_leaks=0",
    }
    done = subprocess.run(
        [program], env=environment, timeout=120, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "all well\n"), done.stderr


CLIENT = """
#include <gridrpc.hpp>
struct Option { double strike, expiry; int is_call; };
struct Other {};
class Opaque { public: explicit Opaque(int); private: int hidden; };
void calls(gridrpc::TypedFunction<double(const Option &, int, const std::vector<double> &)> &price,
           gridrpc::Function &any, const Option &option, std::vector<double> &spots,
           std::vector<float> &singles, Opaque &opaque)
{
    (void)price, (void)any, (void)option, (void)spots, (void)singles, (void)opaque;
    STATEMENT;
}
"""


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("price(option, 1, spots)", ""),
        ("price(option, 1, singles)", "std::vector<float>"),
        ("price(option, spots)", "no match for call"),
        ("price(Other(), 1, spots)", "Other"),
        ("price.async(option, 1, spots)", "a call that has begun has no result yet"),
        ("any(opaque)", "arguments are numbers, ranges in one piece, pointers, strings"),
        ("any(Other())", "a structure as an argument has 1 to 12 fields"),
    ],
)
def test_the_compiler_finds_wrong_arguments(prefix, tmp_path, statement, message):
    source = tmp_path / "client.cpp"
    source.write_text(CLIENT.replace("STATEMENT", statement))
    arguments = ["-std=c++17", "-fsyntax-only", "-I", prefix / "include", source]
    done = compiled("g++", tmp_path / "client", *arguments)
    assert (done.returncode == 0) == (not message), done.stderr
    assert message in done.stderr


MODULE = """
Module wrong;
Globals {
    #include <string>
    #include <vector>
    struct Pair { double a, b; };
    struct Mixed { double a; long b; };
    double vector(const std::vector<float> &x);
    double text(const std::vector<std::string> &x);
    double mixed(const std::vector<Mixed> &x);
    double pair(const Pair &pair);
    Mixed returned(double a);
    std::vector<float> singles(double a);
}
Define f(IN int n, IN double x[n], IN double a, OUT double r[2]) FUNCTION
"""


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("r = vector(x)", "elements of the vector have the type of the parameter's"),
        ("r = text(x)", "elements of the vector have the type of the parameter's"),
        ("r = mixed(x)", "elements of the vector have the type of the parameter's"),
        ("r = pair({a, a, a})", "pair"),
        ("r = returned(a)", "a function returns numbers of the parameter's type"),
        ("r = singles(a)", "elements have the type of the parameter's"),
    ],
)
def test_the_compiler_finds_functions_that_do_not_fit(prefix, tmp_path, call, message):
    (tmp_path / "wrong.idl").write_text(MODULE.replace("FUNCTION", f'Calls "C++" {call};'))
    command = [prefix / "bin/gridrpc", "compile", "wrong.idl"]
    done = subprocess.run(
        command, cwd=tmp_path, timeout=120, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert message in done.stderr


def test_modules_of_older_standards_pass_pointers(prefix, tmp_path):
    (tmp_path / "older.idl").write_text(
        'Module older; CompileOptions "-std=c++11 -Wall -Wextra -Werror";'
        "Globals { inline double add(int n, const double *x) { return n ? *x : 0; } }"
        'Define add(IN int n, IN double x[n], OUT double r[1]) Calls "C++" r = add(n, x);'
    )
    command = [prefix / "bin/gridrpc", "compile", "older.idl"]
    subprocess.run(command, cwd=tmp_path, timeout=120, check=True)

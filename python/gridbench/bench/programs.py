"""The small C programs of the benchmark, and the module that they call: compiled when needed."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from gridbench.errors import InputError


@cache
def built() -> Path:
    """The folder with the programs `limits` and `calls`, and the module `gridbench_work`.

    Raises InputError when a compiler or a library is missing.
    """
    folder, source = new_folder(), files("gridbench.bench") / "native"
    compile_c(source / "limits.c", folder)
    compile_c(source / "calls.c", folder, *compiler_options())
    run_compiler(
        [Path(sys.prefix) / "bin" / "gridrpc", "compile", source / "work.idl", "-o", folder]
    )
    return folder


def new_folder() -> Path:
    """A folder that is removed at exit."""
    folder = Path(tempfile.mkdtemp(prefix="gridbench-programs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def compiler_options() -> list[str]:
    """Compiler options of programs that use gridrpc."""
    prefix = Path(sys.prefix)
    places = f"-I{prefix / 'include'}", f"-L{prefix / 'lib'}", f"-Wl,-rpath,{prefix / 'lib'}"
    return [*places, "-lgridrpc"]


def compile_c(source: Traversable, folder: Path, *options: str) -> None:
    """Compile a C program into the folder. InputError if that fails."""
    compiler = os.environ.get("CC", "cc")
    program = folder / source.name.removesuffix(".c")
    headers = f"-I{files('gridbench.bench') / 'native'}"
    run_compiler([compiler, "-O2", "-std=gnu11", headers, source, "-o", program, *options])


def run_compiler(command: list[object]) -> None:
    """Run a compiler. InputError with its messages if it fails."""
    words = [os.fspath(word) if isinstance(word, os.PathLike) else str(word) for word in command]
    try:
        subprocess.run(words, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise InputError(f"there is no program `{words[0]}`", remedy="install it") from None
    except subprocess.CalledProcessError as error:
        raise InputError(
            f"could not compile a program of the benchmark: {error.stderr.strip()[-2000:]}",
            remedy="`make install`, libopenblas-dev and libssl-dev provide what it needs",
        ) from None


_HERE = {"GRIDRPC_WORKERS": "2"}


def numbers(
    folder: str,
    program: str,
    *arguments: object,
    places: Mapping[str, str] = _HERE,
    prefix: Sequence[str] = (),
) -> list[float]:
    """What a program prints. Raises RuntimeError with its messages when it fails.

    `places`: variables that say where its calls go. `prefix`: a command that runs the program.
    """
    environment = {**os.environ, "GRIDRPC_MODULE_PATH": folder, **places}
    ended = subprocess.run(
        [*prefix, f"{folder}/{program}", *map(str, arguments)],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if ended.returncode != 0:
        raise RuntimeError(f"{program} ended with {ended.returncode}: {ended.stderr.strip()}")
    return [float(line) for line in ended.stdout.split()]

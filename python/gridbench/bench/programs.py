"""The small C programs of the benchmark, and the module that they call: compiled when needed."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from importlib.resources import files
from pathlib import Path

from gridbench.errors import InputError


@cache
def built() -> Path:
    """The folder with the programs `limits` and `calls`, and the module `gridbench_work`.

    Raises InputError when a compiler or a library is missing.
    """
    folder = Path(tempfile.mkdtemp(prefix="gridbench-programs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    source = files("gridbench.bench") / "native"
    compiler = os.environ.get("CC", "cc")
    options = ["-O2", "-std=gnu11"]
    prefix = Path(sys.prefix)
    _run([compiler, *options, "-o", folder / "limits", source / "limits.c"])
    _run([
        compiler, *options, f"-I{prefix / 'include'}", "-o", folder / "calls", source / "calls.c",
        f"-L{prefix / 'lib'}", f"-Wl,-rpath,{prefix / 'lib'}", "-lgridrpc",
    ])  # fmt: skip
    _run([prefix / "bin" / "gridrpc", "compile", source / "work.idl", "-o", folder])
    return folder


def _run(command: list[object]) -> None:
    words = [os.fspath(word) if isinstance(word, os.PathLike) else str(word) for word in command]
    try:
        subprocess.run(words, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise InputError(f"there is no program `{words[0]}`", remedy="install it") from None
    except subprocess.CalledProcessError as error:
        raise InputError(
            f"could not compile a program of the benchmark: {error.stderr.strip()[-2000:]}",
            remedy="`make install`, and libopenblas-dev, provide what it needs",
        ) from None


def numbers(folder: str, program: str, *arguments: object) -> list[float]:
    """What a program prints. Raises RuntimeError with its messages when it fails."""
    environment = os.environ | {"GRIDRPC_MODULE_PATH": folder, "GRIDRPC_WORKERS": "2"}
    ended = subprocess.run(
        [f"{folder}/{program}", *map(str, arguments)],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if ended.returncode != 0:
        raise RuntimeError(f"{program} ended with {ended.returncode}: {ended.stderr.strip()}")
    return [float(line) for line in ended.stdout.split()]

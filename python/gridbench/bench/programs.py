"""The small C programs of the benchmark, and the module that they call: compiled when needed."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
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
    folder, source = _folder(), files("gridbench.bench") / "native"
    _compile(source / "limits.c", folder)
    _compile(source / "calls.c", folder, *_library())
    _run([Path(sys.prefix) / "bin" / "gridrpc", "compile", source / "work.idl", "-o", folder])
    return folder


@cache
def built_for_hosts() -> Path:
    """The folder with the programs `wire` and `far`, and the module `gridbench_hosts`.

    Raises InputError when a compiler or a library is missing.
    """
    folder, source = _folder(), files("gridbench.bench.areas.hosts") / "native"
    _compile(source / "wire.c", folder, "-lssl", "-lcrypto")
    _compile(source / "far.c", folder, *_library())
    _run([Path(sys.prefix) / "bin" / "gridrpc", "compile", source / "hosts.idl", "-o", folder])
    return folder


@cache
def built_for_server() -> Path:
    """The same folder, with the program `load` and the module `gridbench_server` beside them.

    Raises InputError when a compiler or a library is missing.
    """
    folder, source = built_for_hosts(), files("gridbench.bench.areas.server") / "programs"
    _compile(source / "load.c", folder, *_library(), "-lm")
    _run([Path(sys.prefix) / "bin" / "gridrpc", "compile", source / "server.idl", "-o", folder])
    return folder


def built_echo(folder: Path) -> Path:
    """The program `echo`, with gRPC, in this folder: compiled when it is not there.

    Raises InputError when a compiler or a library is missing.
    """
    program, source = folder / "echo", files("gridbench.bench.areas.server") / "programs"
    if not program.exists():
        plugin = shutil.which("grpc_cpp_plugin") or "grpc_cpp_plugin"
        places = f"--cpp_out={folder}", f"--grpc_out={folder}"
        made = [folder / "echo.pb.cc", folder / "echo.grpc.pb.cc"]
        # With the libraries that those need.
        libraries = ["-Wl,--copy-dt-needed-entries", "-lgrpc++", "-lprotobuf"]
        compiler = os.environ.get("CXX", "c++")
        _run(["protoc", f"-I{source}", *places, f"--plugin=protoc-gen-grpc={plugin}", "echo.proto"])
        options = ["-O2", "-std=c++17", f"-I{folder}", "-o", f"{program}.new"]
        _run([compiler, *options, source / "echo.cc", *made, *libraries])
        Path(f"{program}.new").rename(program)
    return program


def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="gridbench-programs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _library() -> list[str]:
    """What programs that use gridrpc are compiled with."""
    prefix = Path(sys.prefix)
    places = f"-I{prefix / 'include'}", f"-L{prefix / 'lib'}", f"-Wl,-rpath,{prefix / 'lib'}"
    return [*places, "-lgridrpc"]


def _compile(source: Traversable, folder: Path, *options: str) -> None:
    compiler = os.environ.get("CC", "cc")
    program = folder / source.name.removesuffix(".c")
    headers = f"-I{files('gridbench.bench') / 'native'}"
    _run([compiler, "-O2", "-std=gnu11", headers, source, "-o", program, *options])


def _run(command: list[object]) -> None:
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
    folder: str, program: str, *arguments: object, places: Mapping[str, str] = _HERE
) -> list[float]:
    """What a program prints. Raises RuntimeError with its messages when it fails.

    `places`: variables that say where its calls go.
    """
    environment = {**os.environ, "GRIDRPC_MODULE_PATH": folder, **places}
    ended = subprocess.run(
        [f"{folder}/{program}", *map(str, arguments)],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if ended.returncode != 0:
        raise RuntimeError(f"{program} ended with {ended.returncode}: {ended.stderr.strip()}")
    return [float(line) for line in ended.stdout.split()]

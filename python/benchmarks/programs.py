"""C and C++ programs of the areas `hosts` and `server`, compiled when needed."""

from __future__ import annotations

import os
import shutil
import sys
from functools import cache
from importlib.resources import files
from pathlib import Path

from gridbench.bench.programs import compile_c, compiler_options, new_folder, run_compiler


@cache
def built_for_hosts() -> Path:
    """The folder with the programs `wire` and `far`, and the module `gridbench_hosts`.

    Raises InputError when a compiler or a library is missing.
    """
    folder, source = new_folder(), files("benchmarks.hosts") / "native"
    compile_c(source / "wire.c", folder, "-lssl", "-lcrypto")
    compile_c(source / "far.c", folder, *compiler_options())
    run_compiler(
        [Path(sys.prefix) / "bin" / "gridrpc", "compile", source / "hosts.idl", "-o", folder]
    )
    return folder


@cache
def built_for_server() -> Path:
    """The same folder, with the program `load` and the module `gridbench_server` beside them.

    Raises InputError when a compiler or a library is missing.
    """
    folder, source = built_for_hosts(), files("benchmarks.server") / "programs"
    compile_c(source / "load.c", folder, *compiler_options(), "-lm")
    run_compiler(
        [Path(sys.prefix) / "bin" / "gridrpc", "compile", source / "server.idl", "-o", folder]
    )
    return folder


def built_echo(folder: Path) -> Path:
    """The program `echo`, with gRPC, in this folder: compiled when it is not there.

    Raises InputError when a compiler or a library is missing.
    """
    program, source = folder / "echo", files("benchmarks.server") / "programs"
    if not program.exists():
        plugin = shutil.which("grpc_cpp_plugin") or "grpc_cpp_plugin"
        places = f"--cpp_out={folder}", f"--grpc_out={folder}"
        made = [folder / "echo.pb.cc", folder / "echo.grpc.pb.cc"]
        # With the libraries that those need.
        libraries = ["-Wl,--copy-dt-needed-entries", "-lgrpc++", "-lprotobuf"]
        compiler = os.environ.get("CXX", "c++")
        run_compiler(
            ["protoc", f"-I{source}", *places, f"--plugin=protoc-gen-grpc={plugin}", "echo.proto"]
        )
        options = ["-O2", "-std=c++17", f"-I{folder}", "-o", f"{program}.new"]
        run_compiler([compiler, *options, source / "echo.cc", *made, *libraries])
        Path(f"{program}.new").rename(program)
    return program

"""Compiled programs of the areas, the servers that they call, and bare connections beside them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Any, Literal
from urllib.parse import quote, urlencode

from gridbench.bench.programs import compile_c, compiler_options, new_folder, numbers, run_compiler
from gridbench.engines.gridrpc_engines import servers_in
from gridbench.errors import InputError
from gridbench_testbed.links.network import Network, ip_environment


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


Kind = Literal["tcp", "tls"]
ENCRYPTION: dict[Kind, str] = {"tcp": "none", "tls": "tls"}
"""Server options for each kind of connection."""
LOOPBACK = "127.0.0.1"


def programs() -> tuple[str, str]:
    """The folder with the programs and the module, and why there is none."""
    try:
        return str(built_for_hosts()), ""
    except InputError as error:
        return "", str(error)


def local(hosts: int, workers: int, kind: Kind) -> str:
    """A server of so many agents on this machine, each with so many workers."""
    values = {"hosts": f"h[1-{hosts}]", "workers": workers, "encryption": ENCRYPTION[kind]}
    return f"local:?{urlencode(values, quote_via=quote, safe='[]')}"


def behind(network: Network, workers: int, kind: Kind, **keys: object) -> list[str]:
    """A server in each node of the network, each with so many workers."""
    total = workers * network.nodes
    return servers_in(network.namespaces, total, encryption=ENCRYPTION[kind], **keys)


def places(servers: Sequence[str]) -> Mapping[str, str]:
    """Variables for programs in C."""
    return {"GRIDRPC_SERVERS": " ".join(servers)}


class Wire:
    """While active, a program at `address` answers bytes that come over TCP, bare or with TLS."""

    def __init__(self, folder: str, address: str = LOOPBACK, namespace: str = "") -> None:
        self._folder = folder
        self.address = address
        self._prefix = ["ip", "netns", "exec", namespace] if namespace else []
        self._ports: dict[Kind, int] = {}
        self._server: Any = None

    def port(self, kind: Kind) -> int:
        """Where it listens."""
        return self._ports[kind]

    def ping(self, kind: Kind, count: int, size: int = 64) -> float:
        """Median us for `size` bytes there and back."""
        return self._ask("ping", kind, size, count)

    def send(self, kind: Kind, size: int, count: int, at: tuple[str, int] | None = None) -> float:
        """Median s for `size` bytes there and one back; `at`: by way of another address."""
        return self._ask("send", kind, size, count, at)

    def _ask(
        self, what: str, kind: Kind, size: int, count: int, at: tuple[str, int] | None = None
    ) -> float:
        address, port = at or (self.address, self._ports[kind])
        return numbers(self._folder, "wire", what, kind, address, port, size, count)[0]

    def __enter__(self) -> Wire:
        command = [*self._prefix, f"{self._folder}/wire", "serve", self.address]
        self._server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=ip_environment(),
        )  # fmt: skip
        for kind in ENCRYPTION:
            self._ports[kind] = int(self._server.stdout.readline())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.communicate()

"""What areas need: compiled programs, servers, bare connections, and what this machine lacks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, urlencode

from gridbench.bench.programs import compile_c, compiler_options, new_folder, numbers, run_compiler
from gridbench.engines.environments import environment, folder_with, launch_of
from gridbench.engines.gridrpc_engines import servers_in
from gridbench.errors import InputError
from gridbench.formats import as_given
from gridbench.process.children import Leftovers, PythonLaunch
from gridbench_testbed.links import sshd
from gridbench_testbed.links.network import Network, ip_environment, uninterrupted

FOLDER = Path(__file__).parent
NATIVE = FOLDER / "native"
"""Sources in C and C++, and what they are compiled with."""


@cache
def programs() -> tuple[str, str]:
    """The folder with the programs `wire`, `far` and `load` and the modules `gridbench_hosts` and
    `gridbench_server`, and why there is none."""
    folder = new_folder()
    try:
        compile_c(NATIVE / "wire.c", folder, "-lssl", "-lcrypto")
        for program in ("far", "load"):
            compile_c(NATIVE / f"{program}.c", folder, *compiler_options(), "-lm")
        for module in ("hosts", "server"):
            gridrpc = Path(sys.prefix, "bin", "gridrpc")
            run_compiler([gridrpc, "compile", NATIVE / f"{module}.idl", "-o", folder])
    except InputError as error:
        return "", str(error)
    return str(folder), ""


def built_echo(folder: Path) -> Path:
    """The program `echo`, with gRPC, in this folder: compiled when it is not there.

    Raises InputError when a compiler or a library is missing.
    """
    program = folder / "echo"
    if not program.exists():
        plugin = shutil.which("grpc_cpp_plugin") or "grpc_cpp_plugin"
        places = f"--cpp_out={folder}", f"--grpc_out={folder}"
        made = [folder / "echo.pb.cc", folder / "echo.grpc.pb.cc"]
        # With the libraries that those need.
        libraries = ["-Wl,--copy-dt-needed-entries", "-lgrpc++", "-lprotobuf"]
        compiler = os.environ.get("CXX", "c++")
        run_compiler(
            ["protoc", f"-I{NATIVE}", *places, f"--plugin=protoc-gen-grpc={plugin}", "echo.proto"]
        )
        options = ["-O2", "-std=c++17", f"-I{folder}", "-o", f"{program}.new"]
        run_compiler([compiler, *options, NATIVE / "echo.cc", *made, *libraries])
        Path(f"{program}.new").rename(program)
    return program


Kind = Literal["tcp", "tls"]
ENCRYPTION: dict[Kind, str] = {"tcp": "none", "tls": "tls"}
"""Server options for each kind of connection."""
LOOPBACK = "127.0.0.1"


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

    def ping(self, kind: Kind, count: int, size: int = 64) -> float:
        """Median us for `size` bytes there and back."""
        return self._ask("ping", kind, (size, count))

    def spin(self, kind: Kind, count: int, size: int = 64) -> float:
        """The same while both ends spin instead of sleeping."""
        return self._ask("spin", kind, (size, count))

    def send(self, kind: Kind, size: int, count: int, source: Path | None = None) -> float:
        """Median s for `size` bytes there and one back; `source`: from this network namespace."""
        return self._ask("send", kind, (size, count), source)

    def _ask(
        self, what: str, kind: Kind, amounts: tuple[int, int], source: Path | None = None
    ) -> float:
        prefix = [] if source is None else ["nsenter", f"--net={source}"]
        words = what, kind, self.address, self._ports[kind], *amounts
        return numbers(self._folder, "wire", *words, prefix=prefix)[0]

    def __enter__(self) -> Wire:
        command = [*self._prefix, f"{self._folder}/wire", "serve", self.address]
        self._server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=ip_environment(),
        )  # fmt: skip
        for kind in ENCRYPTION:
            self._ports[kind] = int(self._server.stdout.readline())
        return self

    def __exit__(self, *_: object) -> None:
        self._server.communicate()


def launch_with_benchmarks(engine: str) -> PythonLaunch:
    """An engine's Python, with this package on its path. InputError if there is none."""
    launch = launch_of(engine)
    own = environment(engine)
    if own is None:  # it is this Python
        return launch
    path = [launch.variables["PYTHONPATH"], folder_with(own.root, Path(__file__).resolve().parent)]
    variables = {**launch.variables, "PYTHONPATH": os.pathsep.join(map(str, path))}
    return replace(launch, variables=variables)


def missing_engine(name: str) -> str:
    """Why an engine's environment cannot be used, with a remedy; empty if it can."""
    try:
        if (own := environment(name)) is not None:
            own.require()
    except InputError as error:
        return str(error)
    return ""


def missing_program(*names: str) -> str:
    """Which of these programs is not installed, with a remedy; empty if all are."""
    absent = [name for name in names if not find_program(name)]
    return f"`{absent[0]}` is not installed\nhint: `make rpc-peers` does that" if absent else ""


def find_program(name: str) -> str:
    """The path of a program of the system or of this Python's folder; empty: there is none."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path(sys.prefix, "bin"))])
    return shutil.which(name, path=path) or ""


def missing_links() -> str:
    """Why links of known rate cannot be emulated here; empty if they can."""
    try:
        with Network(1, 1e9):
            return ""
    except InputError as error:
        return str(error)


def missing_sshd() -> str:
    """Why hosts with sshds cannot be emulated here; empty if they can."""
    why = sshd.why_not()
    remedy = "run as root; `scripts/ensure-sshd` installs OpenSSH and iproute2"
    return f"{why}\nhint: {remedy}" if why else ""


def output_of(command: list[str], variables: dict[str, str], limit: float) -> str:
    """Run a peer for at most `limit` seconds; returns what it prints. RuntimeError if it fails.

    Processes that it started are ended.
    """
    with Leftovers() as leftovers, tempfile.TemporaryFile("w+") as errors:
        started = subprocess.Popen(
            command, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
        )
        try:
            output, _ = started.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"did not end in {as_given(limit)}") from None
        finally:
            # A peer that is over its limit gets no time to end, nor do its processes.
            with uninterrupted():
                leftovers.end(started, patience=5.0 if started.poll() is not None else 0.0)
        errors.seek(0)
        if started.returncode != 0:
            lines = [line.strip() for line in errors.read().splitlines() if line.strip()]
            raise RuntimeError(f"ended with {started.returncode}: {' / '.join(lines[-4:])}")
    return output.decode("utf-8", "replace")

"""Servers that offer `dgesv`, behind each path, the programs that call them, and what a server
shows during a case."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from ctypes import CDLL, c_char_p
from dataclasses import dataclass, field, replace
from datetime import datetime
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from gridbench.bench.programs import compile_c, compiler_options, new_folder, run_compiler
from gridbench.engines.environments import environment, launch_of
from gridbench.errors import InputError
from gridbench.hosts.host_group import ask_clock, clock_between
from gridbench.linpack.options import ShapedLink
from gridbench.linpack.peer_server import LIBRARY
from gridbench.linpack.record import (
    BIG_ENDIAN,
    LOCAL,
    ClientLanguage,
    ServedCall,
    ServerSample,
)
from gridbench.machine.processes import descendants, processes
from gridbench.machine.processors import available_processors, unused_of
from gridbench.process.children import PYTHON, PythonLaunch
from gridbench.process.memory import footprint
from gridbench_testbed.daemons import Daemons, free_ports
from gridbench_testbed.links.network import Network
from gridbench_testbed.services.gridrpc_server import GridrpcServer

SOCKET, TCP, TLS = "socket", "tcp", "tls"
INTERFACE = """\
Module linpack;

Library "-lopenblas";

Globals {
#include <string.h>
void dgesv_(const int *n, const int *nrhs, double *a, const int *lda, int *ipiv, double *b,
            const int *ldb, int *info);
int openblas_get_num_threads(void);
}

Define threads(OUT int count[1]) "Number of threads of the solver"
{
    *count = openblas_get_num_threads();
}

Define dgesv(IN int n, IN int nrhs, IN double a[n][lda], IN int lda, OUT int ipiv[n],
             INOUT double b[nrhs][ldb], IN int ldb, OUT int info[1], WORK double lu[n][lda])
    "Solves A X = B by LU decomposition. Matrices are stored by columns; A does not change."
    CalcOrder 2.0 / 3 * n ^ 3 + 2.0 * n ^ 2 * nrhs
{
    memcpy(lu, a, sizeof(double) * n * lda);
    dgesv_(&n, &nrhs, lu, &lda, ipiv, b, &ldb, info);
}
"""
"""The module that servers offer. A is IN, so 8 n^2 + 20 n bytes travel."""
_COPIES = 6
"""Matrices in memory at a time: two of the client, two on the way, two of the server."""
_PLAIN = "compression=none"
"""So that the bytes of the formula travel."""


# ---- Programs


@dataclass(frozen=True, slots=True)
class LinpackPrograms:
    """The module, and the clients."""

    folder: Path
    library: str
    """Version of OpenBLAS, and how it was built."""

    @property
    def module(self) -> Path:
        """What servers offer."""
        return self.folder / "module" / "linpack.so"

    def client(self, name: ClientLanguage) -> list[str]:
        """The command of a client, without arguments."""
        if name == "C":
            return [str(self.folder / "solve")]
        return [sys.executable, "-m", "gridbench.linpack.client"]


def build_programs() -> LinpackPrograms:
    """Compile the module and the client in C. InputError if OpenBLAS or a compiler is missing."""
    compiler = os.environ.get("CC", "cc")
    if shutil.which(compiler) is None:
        raise InputError(
            f"there is no C compiler `{compiler}`, which the module and the client in C need",
            remedy="install one: `apt install gcc libc6-dev`, or `dnf install gcc`",
        )
    try:
        get_config = CDLL(LIBRARY).openblas_get_config
    except (OSError, AttributeError):
        raise _no_openblas(f"{LIBRARY} cannot be loaded") from None
    get_config.restype = c_char_p
    folder = new_folder()
    interface = folder / "module" / "linpack.idl"
    interface.parent.mkdir()
    interface.write_text(INTERFACE, encoding="utf-8")
    try:
        source = files("gridbench.linpack") / "solve.c"
        compile_c(source, folder, *compiler_options(), "-lopenblas", "-lm")
        gridrpc = Path(sys.prefix) / "bin" / "gridrpc"
        run_compiler([gridrpc, "compile", interface, "-o", interface.parent])
    except InputError as error:
        if "-lopenblas" in error.what:
            raise _no_openblas("programs cannot be linked with it") from None
        raise
    return LinpackPrograms(folder, str(get_config().decode()).strip())


def _no_openblas(why: str) -> InputError:
    return InputError(
        f"OpenBLAS, which solves the systems, is not installed: {why}",
        remedy="install it: `apt install libopenblas-dev`, or `dnf install openblas-devel`",
    )


def memory_needed(n: int) -> int:
    """Bytes that solving a system of order n remotely takes on this machine, server included."""
    return _COPIES * 8 * n * n


# ---- Servers


@dataclass(frozen=True, slots=True)
class _RunningServer:
    server: GridrpcServer
    stack: ExitStack
    """Ends the server and its link."""


@dataclass(slots=True)
class LinpackServers:
    """The servers behind each path, started when first used."""

    programs: LinpackPrograms
    links: Mapping[str, ShapedLink]
    """By the names of their paths."""
    workers: int
    """Of each server, one for each processor that it may use."""
    threads: int
    """Of the solver, and so processors of each call."""
    _running: dict[str, _RunningServer] = field(default_factory=dict)

    def variables(self, path: str) -> dict[str, str]:
        """The environment of a client. InputError if the server behind the path does not start."""
        path = path.removesuffix(BIG_ENDIAN)
        threads = str(self.threads)
        found = {**os.environ, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
        if path == LOCAL:
            return found
        if path == TCP:
            # Servers encrypt all TCP. An agent of the client's own need not.
            found["GRIDRPC_MODULE_PATH"] = str(self.programs.module.parent)
            return {**found, "GRIDRPC_SERVERS": f"local://agent?workers=1&encryption=none&{_PLAIN}"}
        running = self.running(path)
        url = running.server.socket if path == SOCKET else f"{running.server.tls}&{_PLAIN}"
        return {**found, "GRIDRPC_SERVERS": url}

    def running(self, path: str) -> _RunningServer:
        """The server of a path. One that has ended is replaced. InputError as above."""
        path = path.removesuffix(BIG_ENDIAN)
        name = path if path in self.links else TLS
        if name in self._running:
            try:
                self._running[name].server.check()
            except RuntimeError:
                self._running.pop(name).stack.close()
        if name not in self._running:
            with ExitStack() as stack:
                try:
                    server = self._start(self.links.get(name), stack)
                except (RuntimeError, TimeoutError) as error:
                    raise InputError(f"the server does not start: {error}") from None
                self._running[name] = _RunningServer(server, stack.pop_all())
        return self._running[name]

    def close(self) -> None:
        """End all servers and links."""
        for running in self._running.values():
            running.stack.close()
        self._running.clear()

    def _start(self, link: ShapedLink | None, stack: ExitStack) -> GridrpcServer:
        modules = [self.programs.module]
        if link is None:
            server = GridrpcServer(modules, self.workers, tls=True, cores=self.threads)
            return stack.enter_context(server)
        network = stack.enter_context(Network(1, link.rate, link.round_trip / 2))
        server = GridrpcServer(
            modules,
            self.workers,
            tls=True,
            cores=self.threads,
            address=network.node_addresses[0],
            namespace=network.namespaces[0],
        )
        return stack.enter_context(server)


# ---- Servers of other systems


PeerName = Literal["grpc", "ray-serve"]
_PEER_START = 120.0
"""Seconds in which a server has to start: Ray starts a cluster."""


def require_peer(name: PeerName) -> PythonLaunch:
    """The Python of the server. InputError if what it needs is not installed."""
    if name == "ray-serve":
        return launch_of(name)
    if find_spec("grpc") is None:
        raise InputError(
            "gRPC for Python is not installed, and --servers has grpc",
            remedy="install it: `pip install grpcio`",
        )
    return PythonLaunch([*PYTHON], dict(os.environ))


def peer_version(name: PeerName) -> str:
    """The version of its package. InputError as above."""
    require_peer(name)
    known = environment(name)
    return version("grpcio") if known is None else known.state().version


class PeerServer(Daemons):
    """A server of another system that solves dense systems; see `peer_server`."""

    def __init__(self, name: PeerName, workers: int, threads: int) -> None:
        """RuntimeError or TimeoutError if it does not start, InputError if it is not installed."""
        launch = require_peer(name)
        super().__init__(name)
        self._name = name
        # What the launch has is complete: the daemon inherits the rest from this process.
        count = str(threads)
        self.variables = {**launch.variables, "OMP_NUM_THREADS": count}
        self.variables["OPENBLAS_NUM_THREADS"] = count
        with self._making():
            self.address = str(self.folder / "socket")
            if name == "ray-serve":
                self.address = str(free_ports(1)[0])
            module = "gridbench.linpack.peer_server"
            words = [*launch.command, "-m", module, name, self.address, str(workers), count]
            self._start(name, *words)
            output = self.folder / "log" / f"{name}.out"
            self._until(lambda: _is_ready(output), "the server is not ready", _PEER_START)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.processes[self._name]


def _is_ready(output: Path) -> bool:
    return b"ready" in output.read_bytes().splitlines()


# ---- What servers show

_GLANCE = 0.1
"""Seconds between looks at the threads that run."""
_AUDIT = 5.0
"""Seconds until the audit log of the server has to have all calls."""


# ---- Accepted calls


class AuditLog:
    """The part of a server's audit log that a case adds: when it accepted each call."""

    def __init__(self, server: GridrpcServer) -> None:
        self._path = server.folder / "state" / "audit.jsonl"
        self._begin = self._path.stat().st_size
        self._clock = ask_clock(time.time_ns)

    def accepted(self, start: float, traces: Collection[str]) -> tuple[dict[str, float], float]:
        """When each of the calls with these `traces` was accepted, in seconds after the `start` of
        the monotonic clock, and the possible error. It waits a little for the last of them."""
        until = time.monotonic() + _AUDIT
        while (found := self._ended()).keys() < set(traces) and time.monotonic() < until:
            time.sleep(_GLANCE)
        clock = clock_between(self._clock, ask_clock(time.time_ns))
        times = {
            trace: datetime.fromisoformat(one["time"]).timestamp() - one["seconds"]
            for trace, one in found.items()
        }
        offset = clock.offset * 1e-9 + start
        return {trace: at - offset for trace, at in times.items()}, clock.error * 1e-9

    def _ended(self) -> dict[str, dict[str, Any]]:
        with self._path.open("rb") as file:
            file.seek(self._begin)
            lines = file.read().split(b"\n")[:-1]
        records = [json.loads(line) for line in lines]
        return {one["trace"]: one for one in records if one["event"] == "end" and "trace" in one}


def with_enqueue(call: ServedCall, accepted: float | None) -> ServedCall:
    """The call with the time at which the server accepted it, within the bounds of the client's own
    timestamps."""
    if accepted is None or call.dequeue is None:
        return call
    return replace(call, enqueue=min(max(round(accepted, 6), call.submit), call.dequeue))


# ---- Load and memory


class ServerSampler:
    """Samples the machine and the processes of a server in a thread, while active."""

    def __init__(self, server: int, start: float, every: float) -> None:
        """`server`: its process; `start`: of the monotonic clock; `every`: seconds."""
        self._server = server
        self._start = start
        self._every = every
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.samples: list[ServerSample] = []

    def __enter__(self) -> ServerSampler:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        self._over.wait(max(0.0, self._start - time.monotonic()))
        before = self._reading()
        while not self._over.is_set():
            end = before.at + self._every
            threads = [_runnable()]
            while not self._over.wait(min(_GLANCE, max(0.0, end - time.monotonic()))):
                threads.append(_runnable())
                if time.monotonic() >= end:
                    break
            now = self._reading()
            if now.at - before.at >= _GLANCE:
                self.samples.append(now.sample_since(before, self._start, threads))
            before = now

    def _reading(self) -> _ServerReading:
        processors = available_processors()
        left = unused_of(Path("/proc/stat").read_text(encoding="ascii"), processors)
        at = time.monotonic()
        table = processes()
        own = descendants(table, {self._server})
        return _ServerReading(
            at=at,
            idle=left.idle + left.waiting,
            used=sum(table[pid].used + table[pid].waited_for for pid in own if pid in table),
            memory=footprint(sorted(own)),
            processors=len(processors),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _ServerReading:
    at: float
    idle: float
    """Seconds of all processors."""
    used: float
    """Seconds of processor time of the server."""
    memory: int
    processors: int

    def sample_since(
        self, before: _ServerReading, start: float, threads: Sequence[int]
    ) -> ServerSample:
        """What happened since then."""
        seconds = self.at - before.at
        all_of_them = seconds * self.processors
        return ServerSample(
            at=self.at - start,
            seconds=seconds,
            busy=_share(1 - (self.idle - before.idle) / all_of_them),
            server=_share((self.used - before.used) / all_of_them),
            runnable=statistics.fmean(threads),
            memory=self.memory,
        )


def _runnable() -> int:
    """Threads that run or wait for a processor, without this one."""
    running = Path("/proc/loadavg").read_text(encoding="ascii").split()[3]
    return max(0, int(running.partition("/")[0]) - 1)


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))

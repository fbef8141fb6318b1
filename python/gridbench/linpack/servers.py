"""Servers that offer `dgesv`, behind each path, and the programs that call them."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from ctypes import CDLL, c_char_p
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from gridbench.bench.programs import compile_c, compiler_options, new_folder, run_compiler
from gridbench.engines.environments import environment, launch_of
from gridbench.errors import InputError
from gridbench.formats import as_given, counted
from gridbench.linpack.record import (
    BIG_ENDIAN,
    LOCAL,
    ClientLanguage,
    Limit,
    PlannedLinpackCase,
    Solve,
)
from gridbench.linpack.solve import LIBRARY
from gridbench.process.child import Child, Ended
from gridbench.process.children import PYTHON, PythonLaunch
from gridbench.records import from_record
from gridbench_testbed.daemons import Daemons, free_ports
from gridbench_testbed.links.shaped_link import LinkedNode, ShapedLink
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
_EXIT = 5.0  # seconds that a client may take to end


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
        return [sys.executable, "-m", "gridbench.linpack.solve"]


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
    tls: str
    """URL over the path."""
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
        url = running.server.socket if path == SOCKET else f"{running.tls}&{_PLAIN}"
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
                    server, tls = self._start(self.links.get(name), stack)
                except (RuntimeError, TimeoutError) as error:
                    raise InputError(f"the server does not start: {error}") from None
                self._running[name] = _RunningServer(server, tls, stack.pop_all())
        return self._running[name]

    def close(self) -> None:
        """End all servers and links."""
        for running in self._running.values():
            running.stack.close()
        self._running.clear()

    def _start(self, link: ShapedLink | None, stack: ExitStack) -> tuple[GridrpcServer, str]:
        """A server, and its URL over TLS."""
        modules = [self.programs.module]
        if link is None:
            server = GridrpcServer(modules, self.workers, tls=True, cores=self.threads)
            return stack.enter_context(server), server.tls
        node = stack.enter_context(LinkedNode(link))
        server = GridrpcServer(
            modules,
            self.workers,
            tls=True,
            cores=self.threads,
            address=node.address,
            namespace=node.namespace,
        )
        stack.enter_context(server)
        if not link.round_trip:
            return server, server.tls
        port = node.delayed(server.port)
        return server, f"gridrpc://{node.address}:{port}?credentials={server.user}"


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
            module = "gridbench.linpack.clients.peer_server"
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


# ---- Clients


class SpeedLimit:
    """Limit of a process and its threads to a share of some processors while active.

    A quota of a control group enforces it. Where none can be created, the process is stopped
    whenever it has used its share of a period.
    """

    _PERIOD = 0.02
    """Seconds."""
    _LOOK = 0.001

    def __init__(self, pid: int, processors: float) -> None:
        self._pid = pid
        self._share = processors
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._group = _cpu_group(pid, processors, self._PERIOD)

    @property
    def kind(self) -> Limit:
        """How it is done."""
        return "control group" if self._group else "stopping"

    def __enter__(self) -> SpeedLimit:
        if self._group is None:
            self._thread = threading.Thread(target=self._stop_and_continue, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        if self._group is not None:
            # The group can be removed when its process has ended.
            _end_group(self._group, self._pid)

    def _stop_and_continue(self) -> None:
        clock = (~self._pid << 3) | 2  # its processor time, see clock_getcpuclockid(3)
        try:
            began, used = time.monotonic(), time.clock_gettime(clock)
            while not self._over.wait(self._LOOK):
                spent = time.clock_gettime(clock) - used
                # It may run again when its share of the time has caught up with what it used.
                behind = began + spent / self._share - time.monotonic()
                if behind > self._PERIOD * (1 - self._share):
                    os.kill(self._pid, signal.SIGSTOP)
                    self._over.wait(behind)
                    os.kill(self._pid, signal.SIGCONT)
                elif behind < 0:
                    # Time in which it waited is not saved up.
                    began, used = time.monotonic(), used + spent
        except OSError:  # it has ended
            return


_CONTROL_GROUPS = Path("/sys/fs/cgroup")


def _cpu_group(pid: int, processors: float, period: float) -> Path | None:
    """A new control group (version 2) with this process and a quota; None if none can be made."""
    group = _CONTROL_GROUPS / f"gridbench-linpack-{pid}"
    try:
        if "cpu" not in (_CONTROL_GROUPS / "cgroup.controllers").read_text().split():
            return None
        group.mkdir()
        microseconds = round(period * 1e6)
        (group / "cpu.max").write_text(f"{round(processors * microseconds)} {microseconds}")
        (group / "cgroup.procs").write_text(str(pid))
    except OSError:
        with suppress(OSError):
            group.rmdir()
        return None
    return group


def _end_group(group: Path, pid: int) -> None:
    with suppress(OSError):
        (_CONTROL_GROUPS / "cgroup.procs").write_text(str(pid))
        group.rmdir()


class ClientFailed(Exception):
    """A client could not solve its systems."""


@dataclass(frozen=True, slots=True)
class SolveOrder:
    """What a client is to do."""

    calls: int
    """At least so many,"""
    seconds: float
    """and at least for so long."""
    limit: float
    """Seconds for all of it."""
    matrix: Literal["random", "singular"] = "random"


def run_client(
    case: PlannedLinpackCase,
    servers: LinpackServers,
    variables: Mapping[str, str],
    wanted: SolveOrder,
    glance: Callable[[], object] = lambda: None,
) -> tuple[list[Solve], Limit]:
    """Have a client solve the systems of a case; `variables`: those of the path. ClientFailed if it
    cannot. What `glance` raises ends it."""
    where = "local" if case.path == LOCAL else "remote"
    if case.path.endswith(BIG_ENDIAN):
        where += BIG_ENDIAN
    words = [where, str(case.n), str(wanted.calls), str(wanted.seconds), wanted.matrix]
    command = [*servers.programs.client(case.client), *words]
    child = Child.of_program(command, variables, folder=servers.programs.folder)
    until = time.monotonic() + wanted.limit
    found: list[Solve] = []
    kind: Limit = ""
    try:
        threads = child.receive(until, glance)["threads"]
        if threads != servers.threads:
            raise ClientFailed(
                f"the solver has {counted(threads, 'thread')}, and {servers.threads} were requested"
            )
        with ExitStack() as stack:
            if case.speed < 1:
                limit = SpeedLimit(child.process.pid, case.speed * servers.threads)
                kind = stack.enter_context(limit).kind
            child.send({"begin": True})
            while True:
                found.append(from_record(Solve, child.receive(until, glance)))
    except Ended:
        child.wait(_EXIT)
        if child.process.returncode != 0:
            said = "; ".join(child.last_lines(2)) or f"the client {child.ending()}"
            raise ClientFailed(said) from None
    except TimeoutError:
        raise ClientFailed(f"it was not done within {as_given(wanted.limit)}") from None
    finally:
        _end(child)
    return found, kind


def _end(child: Child) -> None:
    """End a client that still runs; an agent that it has started ends with it."""
    if child.process.poll() is None:
        child.ask_to_end(signal.SIGTERM)
        if not child.wait(_EXIT):
            child.process.kill()
            child.process.wait()
    child.close()

"""Clients in Python that solve dense systems, here or on a server.

    python -m gridbench.linpack.client WHERE ORDER CALLS SECONDS random|singular

solves the same system again and again. WHERE is local, remote or remote+big-endian. solve.c is the
same in C, without the last of them, and says what is printed.

A client among many calls at random steps: `prepare` makes the matrix, which all of them share, and
`gridbench.process.copying` copies the process for each. Times are of the monotonic clock.
"""

from __future__ import annotations

import http.client
import json
import math
import os
import random
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import CDLL, byref, c_int, c_void_p
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

import gridrpc
from gridbench.formats import as_given
from gridbench.linpack.peer_server import LIBRARY, METHOD, REPLY_END, UNLIMITED
from gridbench.linpack.record import LinpackServer
from gridbench.process.inside import LineChannel, serve

FUNCTION = "linpack/dgesv"
MOST = 500
"""Systems that are solved at most."""
Array = np.ndarray[Any, np.dtype[Any]]


class Solver(ABC):
    """Solves A x = b by `dgesv`."""

    def __init__(self, a: Array, b: Array) -> None:
        self.a = a
        self.b = b
        self.x = np.empty_like(b)
        self.info = 0
        """LAPACK's: above 0, the matrix is singular."""

    @property
    @abstractmethod
    def threads(self) -> int:
        """How many solve."""

    @abstractmethod
    def solve(self) -> float:
        """Replace `x`, which is b, with the solution. The seconds in which the solver ran."""


class LocalSolver(Solver):
    """In this process."""

    def __init__(self, a: Array, b: Array) -> None:
        super().__init__(a, b)
        self._library = CDLL(LIBRARY)
        self._lu = np.empty_like(a)
        self._pivots = np.empty(len(b), np.int32)

    @property
    def threads(self) -> int:
        """Of OpenBLAS in this process."""
        return int(self._library.openblas_get_num_threads())

    def solve(self) -> float:
        """Solve with a copy of A, as the server does."""
        n, one, info = c_int(len(self.b)), c_int(1), c_int()
        lu, pivots, x = (c_void_p(array.ctypes.data) for array in (self._lu, self._pivots, self.x))
        began = time.perf_counter()
        self._lu[...] = self.a
        self._library.dgesv_(byref(n), byref(one), lu, byref(n), pivots, x, byref(n), byref(info))
        self.info = info.value
        return time.perf_counter() - began


class RemoteSolver(Solver):
    """On a server."""

    def __init__(self, grid: gridrpc.Grid, a: Array, b: Array, *, big_endian: bool = False) -> None:
        """`big_endian`: matrix and solution have that byte order."""
        super().__init__(_shared(a), b)
        order = ">f8" if big_endian else "=f8"
        self.x = _shared(b.astype(order))
        self._sent = self.a.astype(order, order="F") if big_endian else self.a
        self._dgesv = grid.function(FUNCTION)
        self._threads = grid.function("linpack/threads")

    @property
    def threads(self) -> int:
        """Of OpenBLAS in the server's worker."""
        return int(self._threads()[0])

    def solve(self) -> float:
        """Call the server."""
        call = self.submit()
        self.take(call)
        return float(call.profile.calc_out - call.profile.calc_in)

    def submit(self) -> gridrpc.Call[Any]:
        """Begin a call."""
        n = len(self.b)
        # The interface has columns as rows: A is a[n][lda].
        call: gridrpc.Call[Any] = self._dgesv.submit(n, 1, self._sent.T, n, self.x.reshape(1, n), n)
        return call

    def take(self, call: gridrpc.Call[Any], timeout: float | None = None) -> None:
        """Wait for the solution. TimeoutError if it is not there after so many seconds."""
        _, info = call.result(timeout)
        self.info = int(info[0])


def residual(a: Array, b: Array, x: Array) -> float:
    """The largest of |b - A x|, in rounding errors of a system of this order."""
    left = np.abs(b - a @ x).max()
    size = np.abs(a).sum(axis=1).max() * np.abs(x).max() + np.abs(b).max()
    return float(left / (np.finfo(float).eps * size * len(b)))


def system(n: int, *, singular: bool = False) -> tuple[Array, Array]:
    """A matrix by columns, and a right-hand side."""
    random = np.random.default_rng(1)
    a = np.asfortranarray(random.uniform(-0.5, 0.5, (n, n)))
    return (np.zeros_like(a) if singular else a), random.uniform(-0.5, 0.5, n)


def measure(solver: Solver, calls: int, seconds: float) -> None:
    """Solve once, print the number of threads, and wait for a line. Then solve so often, and print
    each."""
    total, call = 0.0, -1
    while call < calls or (total < seconds and call < MOST):
        solver.x[...] = solver.b
        began = time.perf_counter()
        calculation = solver.solve()
        passed = time.perf_counter() - began
        if call < 0:
            print(json.dumps({"threads": solver.threads}), flush=True)
            if not sys.stdin.readline():
                sys.exit(1)
        else:
            total += passed
            wrong = 0.0 if solver.info else residual(solver.a, solver.b, solver.x)
            found = {"seconds": passed, "calculation": calculation}
            print(json.dumps({**found, "info": solver.info, "residual": wrong}), flush=True)
        call += 1


def solve(where: str, n: str, calls: str, seconds: str, matrix: str) -> None:
    """Measure here, or on the server that GRIDRPC_SERVERS names."""
    a, b = system(int(n), singular=matrix == "singular")
    if where == "local":
        measure(LocalSolver(a, b), int(calls), float(seconds))
        return
    try:
        with gridrpc.Grid(servers=[os.environ["GRIDRPC_SERVERS"]], worker="native") as grid:
            solver = RemoteSolver(grid, a, b, big_endian=where != "remote")
            measure(solver, int(calls), float(seconds))
    except gridrpc.GridError as error:
        sys.exit(f"{FUNCTION}: {error}")


def _shared(array: Array) -> Array:
    """A copy in memory that calls need not copy."""
    order: Literal["C", "F"] = "F" if array.flags.f_contiguous else "C"
    made: Array = gridrpc.empty(array.shape, array.dtype, order=order)
    made[...] = array
    return made


# ---- A client among many

_LARGEST_RESIDUAL = 100.0
"""Of a solution, in rounding errors."""

_a: Array
_b: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOrder:
    """What a client has to do."""

    client: int
    server: LinpackServer
    address: str
    """The URL of a gridrpc server, the path of the socket of gRPC, the port of Ray Serve."""
    step: float
    """Seconds between two steps,"""
    phase: float
    """the first of them after the start."""
    probability: float
    """Of a call at a step."""
    seed: str
    timeout: float
    """Seconds after which a call without a result counts as lost."""


def prepare(n: str) -> None:
    """Make the system of equations."""
    global _a, _b
    _a, _b = system(int(n))


def main(descriptor: str) -> None:
    """Connect and solve once; report that, wait for the start, and report all calls."""
    channel = LineChannel(serve(descriptor))
    order = ClientOrder(**channel.receive())
    try:
        with connected(order.server, order.address, _a, _b) as remote:
            remote.call(order.timeout)
            if remote.info or not residual(_a, _b, remote.x) < _LARGEST_RESIDUAL:
                channel.send({"error": f"the first solution is wrong, info {remote.info}"})
                return
            client = LinpackClient(order, remote)
            channel.send({"ready": True})
            begin = channel.receive()
            channel.send({"calls": client.run(begin["start"], begin["until"])})
    except (gridrpc.GridError, CallFailed) as error:
        channel.send({"error": str(error)})


# ---- Calls


class CallFailed(Exception):
    """A call of another server than gridrpc's ended with an error."""


@dataclass(frozen=True, slots=True)
class CallTimes:
    """What is known of a call that returned."""

    dequeue: float
    returned: float
    clock_error: float = 0.0
    trace: str = ""
    """Its name in the server's audit log."""


class LinpackConnection(ABC):
    """A connection to a server that solves A x = b."""

    def __init__(self, a: Array, b: Array) -> None:
        self.a = a
        self.b = b
        self.x = b.copy()
        """The solution of the last call."""
        self.info = 0
        """LAPACK's."""

    @abstractmethod
    def call(self, timeout: float) -> CallTimes:
        """Solve. TimeoutError if there is no result after so many seconds; GridError or CallFailed
        if the call fails."""


class GridrpcConnection(LinpackConnection):
    """Calls of gridrpc."""

    def __init__(self, grid: gridrpc.Grid, a: Array, b: Array) -> None:
        self._solver = RemoteSolver(grid, a, b)
        super().__init__(a, b)
        self.x = self._solver.x
        # After the process was copied, and in clients among many alone: it takes a while.
        from opentelemetry import trace

        self._tracing = trace
        self._trace = int.from_bytes(os.urandom(16))
        self._calls = 0

    def call(self, timeout: float) -> CallTimes:
        """Call with the solution's memory in place."""
        solver = self._solver
        solver.x[...] = solver.b
        self._calls += 1
        # The server writes the span into its audit log.
        tracing = self._tracing
        context = tracing.SpanContext(self._trace, self._calls, is_remote=False)
        with tracing.use_span(tracing.NonRecordingSpan(context)):
            call = solver.submit()
        try:
            solver.take(call, timeout)
        except TimeoutError:
            call.cancel()
            raise
        self.info = solver.info
        profile = call.profile
        name = f"00-{self._trace:032x}-{self._calls:016x}-00"
        return CallTimes(profile.calc_in, profile.calc_out, profile.clock_error, name)


class PeerConnection(LinpackConnection):
    """Calls whose messages are bytes, as `peer_server` reads them."""

    def __init__(self, a: Array, b: Array) -> None:
        super().__init__(a, b)
        self.body = a.tobytes(order="F") + b.tobytes()
        """Of a request."""

    def call(self, timeout: float) -> CallTimes:
        """Send matrix and right-hand side."""
        reply = self._exchange(self.body, timeout)
        n = len(self.b)
        if len(reply) != 12 * n + REPLY_END.size:
            raise CallFailed(f"the reply has {len(reply)} bytes")
        self.x[...] = np.frombuffer(reply, count=n)
        self.info, dequeue, returned = REPLY_END.unpack_from(reply, 12 * n)
        return CallTimes(dequeue, returned)

    @abstractmethod
    def _exchange(self, body: bytes, timeout: float) -> bytes:
        """The reply. TimeoutError or CallFailed without one."""


class GrpcConnection(PeerConnection):
    """Calls of gRPC over a Unix socket."""

    def __init__(self, socket: str, a: Array, b: Array) -> None:
        # After the process was copied: gRPC's threads would be missing in a copy.
        import grpc

        super().__init__(a, b)
        self._grpc = grpc
        self.channel = grpc.insecure_channel(f"unix:{socket}", options=UNLIMITED)
        self._method = self.channel.unary_unary(METHOD)

    def _exchange(self, body: bytes, timeout: float) -> bytes:
        try:
            reply: bytes = self._method(body, timeout=timeout)
        except self._grpc.RpcError as error:
            if error.code() == self._grpc.StatusCode.DEADLINE_EXCEEDED:
                raise TimeoutError from None
            raise CallFailed(f"{error.code().name}: {error.details()}") from None
        return reply


class RayConnection(PeerConnection):
    """Requests to Ray Serve over HTTP, on a connection that stays."""

    def __init__(self, port: str, a: Array, b: Array) -> None:
        super().__init__(a, b)
        self.channel = http.client.HTTPConnection("127.0.0.1", int(port))

    def _exchange(self, body: bytes, timeout: float) -> bytes:
        self.channel.timeout = timeout
        try:
            self.channel.request("POST", "/", body)
            answer = self.channel.getresponse()
            reply = answer.read()
        except TimeoutError:
            self.channel.close()
            raise
        except (OSError, http.client.HTTPException) as error:
            self.channel.close()
            raise CallFailed(f"Ray Serve does not answer: {error!r}") from None
        if answer.status != http.client.OK:
            said = reply[:200].decode(errors="replace")
            raise CallFailed(f"Ray Serve answers {answer.status}: {said}")
        return reply


@contextmanager
def connected(
    server: LinpackServer, address: str, a: Array, b: Array
) -> Iterator[LinpackConnection]:
    """A connection while active."""
    if server == "gridrpc":
        with gridrpc.Grid(servers=[address], worker="native") as grid:
            yield GridrpcConnection(grid, a, b)
        return
    kind = GrpcConnection if server == "grpc" else RayConnection
    connection = kind(address, a, b)
    try:
        yield connection
    finally:
        connection.channel.close()


class LinpackClient:
    """The calls of a client."""

    def __init__(self, order: ClientOrder, remote: LinpackConnection) -> None:
        self._order = order
        self._remote = remote
        self._solution = remote.x.copy()
        self._random = random.Random(order.seed)

    def run(self, start: float, until: float) -> list[dict[str, Any]]:
        """Make calls at random steps. A step that comes during a call is left out."""
        order = self._order
        calls = []
        number = 0
        while (at := start + order.phase + number * order.step) < until:
            time.sleep(max(0.0, at - time.monotonic()))
            if self._random.random() < order.probability:
                calls.append(self._call(start))
            late = time.monotonic() - start - order.phase
            number = max(number + 1, math.ceil(late / order.step))
        return calls

    def _call(self, start: float) -> dict[str, Any]:
        """One call, with its times after the start."""
        submit = _after(start, time.monotonic())
        found: dict[str, Any] = {"client": self._order.client, "submit": submit}
        try:
            times = self._remote.call(self._order.timeout)
        except TimeoutError:
            return {
                **found,
                "ending": "lost",
                "why": f"no result after {as_given(self._order.timeout)}",
            }
        except (gridrpc.GridError, CallFailed) as error:
            found["complete"] = _after(start, time.monotonic())
            return {**found, "ending": "error", "why": str(error)}
        found["complete"] = _after(start, time.monotonic())
        remote = self._remote
        right = not remote.info and np.allclose(remote.x, self._solution, rtol=1e-6)
        found["ending"] = "ok" if right else "wrong"
        found["dequeue"] = _after(start, times.dequeue)
        found["returned"] = _after(start, times.returned)
        found["clock_error"] = times.clock_error
        found["trace"] = times.trace
        return found


def _after(start: float, at: float) -> float:
    """Seconds from the start, to the microsecond."""
    return round(at - start, 6)


if __name__ == "__main__":
    solve(*sys.argv[1:])

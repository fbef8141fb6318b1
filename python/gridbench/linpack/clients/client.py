"""A client among many: a process that calls Linpack at random steps.

`prepare` makes the matrix, which all clients share; `gridbench.process.copying` copies the process
for each client. Times are of the monotonic clock.
"""

from __future__ import annotations

import http.client
import math
import os
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from opentelemetry import trace

import gridrpc
from gridbench.formats import as_given
from gridbench.linpack.clients.peer_server import METHOD, REPLY_END, UNLIMITED
from gridbench.linpack.clients.record import LinpackServer
from gridbench.linpack.solve import Array, RemoteSolver, residual, system
from gridbench.process.inside import LineChannel, serve

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
        self._trace = int.from_bytes(os.urandom(16))
        self._calls = 0

    def call(self, timeout: float) -> CallTimes:
        """Call with the solution's memory in place."""
        solver = self._solver
        solver.x[...] = solver.b
        self._calls += 1
        # The server writes the span into its audit log.
        context = trace.SpanContext(self._trace, self._calls, is_remote=False)
        with trace.use_span(trace.NonRecordingSpan(context)):
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

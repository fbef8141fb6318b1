"""A client among many: a process that calls Linpack at random steps.

`prepare` makes the matrix, which all clients share; `gridbench.process.copying` copies the process
for each client. Times are of the monotonic clock.
"""

from __future__ import annotations

import math
import random
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

import gridrpc
from gridbench.formats import as_given
from gridbench.linpack.solve import Array, RemoteSolver, system
from gridbench.process.inside import LineChannel, serve

_LARGEST_RESIDUAL = 100.0
"""Of a solution, in rounding errors."""

_a: Array
_b: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOrder:
    """What a client has to do."""

    client: int
    server: str
    """The URL."""
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
        with gridrpc.Grid(servers=[order.server], worker="native") as grid:
            solver = RemoteSolver(grid, _a, _b)
            solver.x[...] = solver.b
            solver.solve()
            if solver.info or not solver.residual() < _LARGEST_RESIDUAL:
                channel.send({"error": f"the first solution is wrong, info {solver.info}"})
                return
            client = LinpackClient(order, solver)
            channel.send({"ready": True})
            begin = channel.receive()
            channel.send({"calls": client.run(begin["start"], begin["until"])})
    except gridrpc.GridError as error:
        channel.send({"error": str(error)})


class LinpackClient:
    """The calls of a client."""

    def __init__(self, order: ClientOrder, solver: RemoteSolver) -> None:
        self._order = order
        self._solver = solver
        self._solution = solver.x.copy()
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
        solver = self._solver
        solver.x[...] = solver.b
        submit = _after(start, time.monotonic())
        found: dict[str, Any] = {"client": self._order.client, "submit": submit}
        try:
            call = solver.submit()
            solver.take(call, self._order.timeout)
        except TimeoutError:
            call.cancel()
            return {
                **found,
                "ending": "lost",
                "why": f"no result after {as_given(self._order.timeout)}",
            }
        except gridrpc.GridError as error:
            found["complete"] = _after(start, time.monotonic())
            return {**found, "ending": "error", "why": str(error)}
        found["complete"] = _after(start, time.monotonic())
        right = not solver.info and np.allclose(solver.x, self._solution, rtol=1e-6)
        found["ending"] = "ok" if right else "wrong"
        profile = call.profile
        found["dequeue"] = _after(start, profile.calc_in)
        found["returned"] = _after(start, profile.calc_out)
        found["clock_error"] = profile.clock_error
        return found


def _after(start: float, at: float) -> float:
    """Seconds from the start, to the microsecond."""
    return round(at - start, 6)

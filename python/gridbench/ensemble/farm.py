"""The client: it starts workers, and farms out the samples of an ensemble.

    python -m gridbench.ensemble.farm DESCRIPTOR

It runs in the Python of its engine.
"""

from __future__ import annotations

import queue
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gridbench.process.inside import LineChannel, serve

TRUNCATION = 20
"""Of the spectral model: a state has 21^2 numbers."""
_STATES = 64
"""Different initial states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FarmOrder:
    """The client's work."""

    engine: str
    """A driver; empty: gridrpc with these servers."""
    driver: str = ""
    """Its module and class, as an entry point."""
    servers: Sequence[str] = ()
    namespaces: Sequence[str] = ()
    """Of each worker of a driver."""
    module: str = ""
    settings: str = ""
    """The model's settings; empty: samples sleep."""
    processors: int
    calls: int
    """Under way at a time."""
    samples: int
    """Of all processors."""
    seconds: float
    """Of a sample that sleeps."""
    input: int
    """Bytes."""
    output: int
    """Bytes."""
    frames: int
    """States of a result that is computed."""
    patience: float
    """Seconds until all workers have to be ready."""
    seed: int


class FarmEngine(ABC):
    """What runs samples."""

    def __init__(self, order: FarmOrder) -> None:
        self.order = order
        draw = np.random.default_rng(order.seed)
        # Made beforehand: the client is timed.
        self.states = [draw.integers(0, 256, order.input, dtype=np.uint8) for _ in range(_STATES)]

    @abstractmethod
    def start(self) -> None:
        """Request the workers, and wait until all are ready."""

    @abstractmethod
    def submit(self, number: int) -> Any:
        """Begin a sample; its call."""

    @abstractmethod
    def next_ended(self) -> tuple[Any, float]:
        """Wait for the next call that ends; the call, and when it was reported."""

    @abstractmethod
    def stamps(self, call: Any, ended: float) -> tuple[str, float, float, float, bool]:
        """Host, start and end of the sample, the arrival of its result, and whether the result is
        right; `ended`: when the call was reported as ended."""

    @abstractmethod
    def close(self) -> None:
        """End the workers."""


class GridFarm(FarmEngine):
    """gridrpc, with native workers on servers."""

    def __init__(self, order: FarmOrder) -> None:
        super().__init__(order)
        self._grid: Any = None
        self._forecast: Any = None
        self._expected = [expected(state) for state in self.states]
        self._numbers: dict[Any, int] = {}
        self._open: Any = None

    def start(self) -> None:
        """Open the grid. GridError if workers do not start."""
        import gridrpc

        own = self.order
        self._grid = gridrpc.Grid(
            servers=list(own.servers), worker="native", modules=[own.module], preload=[own.module]
        )
        self._grid.wait_until_ready(own.patience)
        self._open = gridrpc.as_completed([])
        module = "ensemble" if own.settings else "ensemble_samples"
        self._forecast = self._grid.function(f"{module}/forecast")
        if own.settings:
            self._initial = self._grid.function("ensemble/initial_state")

    def submit(self, number: int) -> Any:
        """A call of the module."""
        own = self.order
        if own.settings:
            initial = self._initial(TRUNCATION, number, 1.0)
            call = self._forecast.submit(TRUNCATION, own.frames, own.settings, initial)
        else:
            state = self.states[number % _STATES]
            call = self._forecast.submit(own.seconds, len(state), state, own.output)
            self._numbers[call] = number % _STATES
        self._open.add(call)
        return call

    def next_ended(self) -> tuple[Any, float]:
        """The next of the calls in order of completion."""
        return next(self._open), time.monotonic()

    def stamps(self, call: Any, ended: float) -> tuple[str, float, float, float, bool]:
        """From the profile of the call."""
        del ended
        result, profile = call.result(), call.profile
        if self.order.settings:
            right = int(result.status[0]) == 0 and bool(np.isfinite(result.states[:, -1]).all())
        else:
            is_whole = result.nbytes == self.order.output
            wanted = self._expected[self._numbers.pop(call)]
            right = is_whole and int(result[:8].view("<u8")[0]) == wanted
        host = profile.host.partition("-")[0]
        return host, profile.calc_in, profile.calc_out, profile.retrieve, right

    def close(self) -> None:
        """Close the grid."""
        if self._grid is not None:
            self._grid.close()


def expected(state: Any) -> int:
    """The first number of the result that belongs to a state."""
    found = 0
    for byte in state.tolist():
        found = (found * 31 + byte) & (1 << 64) - 1
    return found


class DriverFarm(FarmEngine):
    """An engine by gridbench's driver, with workers in network namespaces."""

    def __init__(self, order: FarmOrder) -> None:
        from importlib.metadata import EntryPoint

        from gridbench.engines.functions import FunctionEngine
        from gridbench.engines.registry import GROUP, make_engine

        super().__init__(order)
        engine = make_engine(EntryPoint(order.engine, order.driver, GROUP))
        if not isinstance(engine, FunctionEngine):
            raise TypeError(f"the engine {order.engine} calls no functions")
        self._engine = engine
        self._shared = np.empty(0, np.uint8)
        self._ended: queue.SimpleQueue[tuple[Any, float]] = queue.SimpleQueue()

    def start(self) -> None:
        """Start the engine. Cannot if its workers cannot be in namespaces."""
        self._engine.patience = self.order.patience
        self._engine.use_namespaces(self.order.namespaces)
        self._engine.prepare(self.order.processors)
        self._engine.start(self.order.processors)
        self._engine.wait_ready()

    def submit(self, number: int) -> Any:
        """A call of the function that is a task of the compute-grid benchmark."""
        from gridbench.engines.functions import perform

        own, state = self.order, self.states[number % _STATES]
        call = self._engine.call(perform, own.seconds, state, self._shared, own.output, False)
        self._engine.when_done(call, lambda: self._ended.put((call, time.monotonic())))
        return call

    def next_ended(self) -> tuple[Any, float]:
        """The next future whose callback was called."""
        return self._ended.get()

    def stamps(self, call: Any, ended: float) -> tuple[str, float, float, float, bool]:
        """From the task's own clock, which is that of this machine."""
        result = self._engine.task_result(call)
        right = result.output is not None and result.output.nbytes == self.order.output
        return "", result.calc_in, result.calc_out, ended, right

    def close(self) -> None:
        """End the workers."""
        self._engine.close()


def farm(engine: FarmEngine, calls: int, samples: int) -> tuple[list[list[Any]], int]:
    """Run samples, with so many calls under way. All stamps, as `Sample`, and the number of wrong
    results."""
    submitted: dict[Any, float] = {}

    def begin(number: int) -> None:
        at = time.monotonic()
        submitted[engine.submit(number)] = at

    first = time.monotonic()
    begun = min(calls, samples)
    for number in range(begun):
        begin(number)
    rows: list[list[Any]] = []
    wrong = 0
    while len(rows) < samples:
        call, at = engine.next_ended()
        if begun < samples:
            begin(begun)
            begun += 1
        host, *stamps, right = engine.stamps(call, at)
        rows.append([host, *(round(one - first, 5) for one in (submitted.pop(call), *stamps))])
        wrong += not right
    return rows, wrong


def main(descriptor: str) -> None:
    """Start the workers, and run the samples when told to, until the channel ends."""
    channel = LineChannel(serve(descriptor, unwinds=True))
    order = FarmOrder(**channel.receive())
    engine: FarmEngine | None = None
    try:
        engine = DriverFarm(order) if order.engine else GridFarm(order)
        began = time.monotonic()
        engine.start()
        channel.send({"start": time.monotonic() - began})
        channel.receive()
        computed = time.process_time()
        runs, wrong = farm(engine, order.calls, order.samples)
        computed = time.process_time() - computed
        channel.send({"runs": runs, "wrong": wrong, "client_time": computed})
        channel.receive()
    except EOFError:
        pass
    except Exception as error:  # of whatever kind the engine raises
        lines = str(error).splitlines() or [""]
        channel.send({"error": f"{type(error).__name__}: {lines[0]}"})
    finally:
        if engine is not None:
            engine.close()


if __name__ == "__main__":
    main(*sys.argv[1:])

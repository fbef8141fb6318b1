"""The engine of a client process, started when it is needed, and what a measurement gives.

    python -m gridbench.bench.client MODULE:CLASS

prints as JSON what the engine of this driver cannot do: reasons by workload.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gridbench.engines.functions import FunctionEngine


_FUNCTIONS = "gridbench.workload.calls"  # the module of what the workers run


class Unable(Exception):
    """The engine cannot do a measurement, and why."""


class NotStarted(Exception):
    """The engine did not start, so nothing else can be measured with it."""


class LimitReached(Exception):
    """A measurement did not end within its limit: how far it came, and why if known."""


class WrongResult(Exception):
    """Calls returned wrong values."""


@dataclass(slots=True)
class MeasuredValues:
    """What one measurement gave."""

    values: dict[str, float]
    """By quantity."""
    samples: dict[str, Any] = field(default_factory=dict)
    """Histograms and lists, by quantity."""


class EngineClient:
    """One client process and its engine."""

    def __init__(
        self,
        *,
        name: str,
        place: str,
        workers: int,
        budget: float,
        patience: float,
        servers: dict[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.place = place
        self.workers = workers
        self.budget = budget
        """Seconds that one quantity may take, about."""
        self.patience = patience
        """Seconds that the engine may take to bring up its workers."""
        self._servers = servers
        """Those that have the workers, as `gridbench.engines.servers.Servers` is in JSON; None:
        this machine."""
        self._engine: FunctionEngine | None = None

    @property
    def engine(self) -> FunctionEngine:
        """The engine, with all its workers ready."""
        if self._engine is None:
            self._engine = self.make()
            try:
                self._engine.start(self.workers)
                self._engine.wait_ready()
            except Exception as error:
                # A foreign engine can raise anything.
                raise NotStarted(f"could not be started: {one_line(error)}") from error
        return self._engine

    def make(self) -> FunctionEngine:
        """Import the engine without starting it; `engine` returns it from now on."""
        module, _, name = self.place.partition(":")
        try:
            kind = getattr(importlib.import_module(module), name)
            self._engine = made = kind()
        except Exception as error:
            raise NotStarted(f"could not be loaded: {one_line(error)}") from error
        from gridbench.engines.functions import FunctionEngine

        if not isinstance(made, FunctionEngine):
            raise NotStarted("does not call functions: it is no FunctionEngine")
        if self._servers is not None:
            from gridbench.engines.servers import Servers
            from gridbench.records import from_record

            made.use_servers(from_record(Servers, self._servers))
        made.modules = (_FUNCTIONS,)
        made.patience = self.patience
        return made

    @property
    def made(self) -> FunctionEngine | None:
        """The engine if there is one already."""
        return self._engine

    def close(self) -> None:
        """End the engine."""
        if self._engine is not None:
            self._engine.close()


def one_line(error: BaseException) -> str:
    """Kind and message of an exception in one line."""
    from gridbench.engines.functions import one_line as describe  # not before it is needed

    return describe(error)


def timed_until(
    action: Any, seconds: float, *, least: int, most: int, patience: float = 30.0
) -> list[float]:
    """Seconds of each of repeated calls of `action`, until `seconds` have passed.

    At least `least` calls, unless `patience` seconds have passed; at most `most`.
    """
    times: list[float] = []
    begin = now = time.perf_counter()
    while len(times) < most:
        before = now
        action()
        now = time.perf_counter()
        times.append(now - before)
        passed = now - begin
        if (passed >= seconds and len(times) >= least) or passed >= patience:
            break
    return times


def check_all(results: Sequence[Any], expected: Any, what: str) -> None:
    """Raise WrongResult unless all results are as expected."""
    wrong = sum(result != expected for result in results)
    if wrong:
        raise WrongResult(f"{wrong} of {len(results)} {what} gave a wrong result")


def main(place: str) -> None:
    """Ask the driver, in the Python that its engine lives in."""
    client = EngineClient(name="", place=place, workers=0, budget=0, patience=0)
    try:
        print(json.dumps(dict(client.make().cannot)))
    except NotStarted as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(*sys.argv[1:])

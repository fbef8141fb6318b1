"""What a case needs: time, memory, bytes to move; and whether that is to be had.

Before anything has run, it is guessed from round figures that suit a common machine; whatever
has run corrects them, for each engine by itself. Nothing that is measured depends on it: only
which cases are tried, and what is told of the time that it will take.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from statistics import median

from gridbench.errors import InputError
from gridbench.formats import as_given, size, whole
from gridbench.quantities import MB
from gridbench.run.client import EngineFacts
from gridbench.run.feasibility import check_memory, check_workers, most_at_once
from gridbench.run.machine import available_memory
from gridbench.scenario.grids import ScenarioCase
from gridbench.scenario.results import CaseResult
from gridbench.scenario.workloads import setup_of

_PROCESS = 1.5  # seconds for the process of a case to start, and to look at what it measured
_START, _START_ELSEWHERE = 0.5, 10.0  # seconds for an engine; for one with its own environment
_PER_WORKER, _PER_WORKER_ELSEWHERE = 0.01, 0.1  # seconds
_PER_TASK = 0.001  # seconds
_RATE = 400 * MB  # bytes per second, on one host
_RATE_BETWEEN = 100 * MB  # the same between hosts, of which nobody has said what their network is
_WORKER_MEMORY, _WORKER_MEMORY_ELSEWHERE = 8 * MB, 60 * MB
_RESERVE = 0.08  # of the memory that is there: for the rest of the machine
_FEWEST_WORKERS = 10  # from which the memory of one of them can be told


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What one case is expected to take on one engine."""

    seconds: float
    """From starting the case's process until its end."""
    ideal: float
    """Seconds of the tasks themselves."""
    memory: int
    """Bytes, of all processes together."""
    bytes_moved: int
    """Bytes that leave the client or come back to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPlace:
    """Where workers are: beside the client, behind links, or on servers of a grid."""

    nodes: int = 1
    rate: float | None = None
    """Bits per second of each link; None: there are no such links."""
    servers: bool = False
    """They are on servers."""

    @property
    def linked(self) -> bool:
        """Whether there are links."""
        return self.rate is not None

    @property
    def apart(self) -> bool:
        """Whether workers are elsewhere than the client."""
        return self.linked or self.servers


class Experience:
    """What the cases that have run tell about those to come."""

    def __init__(self, elsewhere: Collection[str], results: Iterable[CaseResult] = ()) -> None:
        """`elsewhere`: the engines that have environments of their own."""
        self._elsewhere = elsewhere
        self._slower: dict[str, list[float]] = {}
        self._worker_memory: dict[str, list[float]] = {}
        for result in results:
            self.learn(result)

    def learn(self, result: CaseResult) -> None:
        """Take the result of a case into account."""
        if result.status not in ("done", "invalid") or result.ideal_s is None:
            return
        servers = result.transport == "links" and result.link_rate is None
        place = WorkerPlace(nodes=result.nodes, rate=result.link_rate, servers=servers)
        guessed = guessed_overhead(result, place, elsewhere=result.engine in self._elsewhere)
        beside = max(0.0, result.took_s - result.ideal_s)
        self._slower.setdefault(result.engine, []).append(beside / guessed)
        used = result.load.get("memory_used", 0.0)
        data = min(result.cores, result.tasks) * (result.bytes_in + result.bytes_out)
        if result.cores >= _FEWEST_WORKERS and used > 0:
            own = max(0.0, used - data - result.bytes_shared) / result.cores
            self._worker_memory.setdefault(result.engine, []).append(own)

    def elsewhere(self, engine: str) -> bool:
        """Whether the engine has an environment of its own."""
        return engine in self._elsewhere

    def slower(self, engine: str) -> float:
        """How many times as long as guessed all that is beside the tasks takes."""
        known = self._slower.get(engine)
        return median(known) if known else 1.0

    def worker_memory(self, engine: str, otherwise: float) -> float:
        """Bytes that each worker takes besides data."""
        known = self._worker_memory.get(engine)
        return median(known) if known else otherwise


def need_of(
    case: ScenarioCase,
    engine: str,
    facts: EngineFacts,
    *,
    ideal: float,
    place: WorkerPlace,
    experience: Experience,
) -> Need:
    """What a case is expected to need on an engine; `ideal`: seconds of the tasks themselves."""
    elsewhere = experience.elsewhere(engine)
    worker = _WORKER_MEMORY_ELSEWHERE if elsewhere else _WORKER_MEMORY
    copies = max(facts.shared_copies, _shared_sent(case, place) if place.apart else 0)
    slower = experience.slower(engine)
    return Need(
        seconds=ideal + guessed_overhead(case, place, elsewhere=elsewhere) * slower,
        ideal=ideal,
        memory=round(
            case.bytes_in
            + (1 + copies) * case.bytes_shared
            + min(case.cores, case.tasks) * (case.bytes_in + case.bytes_out)
            + case.cores * experience.worker_memory(engine, worker)
        ),
        bytes_moved=sum(_moved(case, place)),
    )


def guessed_overhead(
    case: ScenarioCase | CaseResult, place: WorkerPlace, *, elsewhere: bool
) -> float:
    """Seconds beside the tasks themselves, before anything is known of the engine."""
    there, back = _moved(case, place)
    # A link carries both ways at the same time; memory does not.
    if place.rate is not None:
        moving = max(there, back) * 8 / place.rate
    else:
        moving = (there + back) / (_RATE_BETWEEN if place.servers else _RATE)
    start = _START_ELSEWHERE if elsewhere or place.servers else _START
    per_worker = _PER_WORKER_ELSEWHERE if elsewhere else _PER_WORKER
    return _PROCESS + start + case.cores * per_worker + case.tasks * _PER_TASK + moving


def _moved(case: ScenarioCase | CaseResult, place: WorkerPlace) -> tuple[int, int]:
    """Bytes that leave the client, and that come back to it."""
    shared = case.bytes_shared * _shared_sent(case, place)
    return case.tasks * case.bytes_in + shared, case.tasks * case.bytes_out


def _shared_sent(case: ScenarioCase | CaseResult, place: WorkerPlace) -> int:
    """How often shared data is sent: to each node that has a task, or once on one host."""
    return min(place.nodes, case.cores, case.tasks) if place.apart else 1


def cannot(case: ScenarioCase, need: Need, engine: str, facts: EngineFacts) -> str:
    """Why this machine cannot run the case: workers or memory; empty if it can."""
    setup = setup_of(case)
    try:
        check_workers(setup)
    except InputError as error:
        return f"workers: {error.what}"
    try:
        check_memory(setup, {engine: facts})
    except InputError as error:
        return f"memory: {error.what}"
    available = available_memory()
    if too_much(need, available):
        return (
            f"memory: about {size(need.memory)} would be needed for data of"
            f" {most_at_once(setup):,} tasks at a time and {case.cores:,} workers, and"
            f" {size(available)} is available"
        )
    return ""


def too_much(need: Need, available: int) -> bool:
    """Whether it does not fit into so many bytes of memory, some of which are for others."""
    return need.memory > available * (1 - _RESERVE)


def too_long(need: Need, limit: float | None, left: float | None) -> str:
    """Why the case does not fit in the time allowed, each in seconds; empty if it does.

    `limit` is of each case; `left` is what is left of all.
    """
    if limit is not None and need.seconds > limit:
        return (
            f"time: about {whole(need.seconds)} s would be needed, and {as_given(limit)} are"
            " allowed"
        )
    if left is not None and need.seconds > left:
        return (
            f"time: about {whole(need.seconds)} s would be needed, and"
            f" {whole(max(0.0, left))} s are left of the time for all"
        )
    return ""

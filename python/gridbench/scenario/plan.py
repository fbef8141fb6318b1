"""Which cases run on which engines, what each needs, and whether the machine can run it.

Needs start as guesses that suit a common machine; cases that have run correct them, for each engine
by itself. No measurement depends on them: they decide which cases run, and what is expected.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from gridbench.analysis.summary import ideal_time
from gridbench.engines.servers import Servers, spread
from gridbench.errors import InputError
from gridbench.formats import as_given, size, whole
from gridbench.quantities import MB
from gridbench.run.client import EngineFacts
from gridbench.run.feasibility import check_body, check_memory, check_workers, most_at_once
from gridbench.run.machine import available_memory, usable_processors
from gridbench.run.participants import Participant
from gridbench.scenario.grids import ScenarioCase, TaskTimes, setup_of
from gridbench.scenario.results import CaseResult, ResultKey
from gridbench.statistics.claims import undecided
from gridbench.workload.body import SPIN

_PROCESS = 1.5  # seconds for the process of a case to start, and to look at what it measured
_START, _START_ELSEWHERE = 0.5, 10.0  # seconds for an engine; for one with its own environment
_PER_WORKER, _PER_WORKER_ELSEWHERE = 0.01, 0.1  # seconds
_PER_TASK = 0.001  # seconds
_RATE = 400 * MB  # bytes per second, on one host
_RATE_BETWEEN = 100 * MB  # the same between hosts whose network is not given
_WORKER_MEMORY, _WORKER_MEMORY_ELSEWHERE = 8 * MB, 60 * MB
_RESERVE = 0.08  # of the memory that is there: for the rest of the machine
_FEWEST_WORKERS = 10  # fewest that show the memory of one of them
_ALIKE = 1.1
"""Two engines whose costs beside the tasks are within this factor are alike, and the cost of a
single engine is known well enough."""


@dataclass(frozen=True, slots=True)
class ScenarioItem:
    """One case on one engine in one round."""

    case: ScenarioCase
    engine: str
    round: int

    @property
    def identity(self) -> tuple[Hashable, ...]:
        """The resume key: that of its result."""
        case = self.case
        key = ResultKey(scenario=case.scenario, case=case.key, engine=self.engine, round=self.round)
        return key.identity

    def describe(self) -> str:
        """Engine and case, in words."""
        return f"{self.engine}, {self.case.describe()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """The expected needs of a case on an engine."""

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
    """Corrects expectations by the cases that have run."""

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
        """The overhead beside the tasks, as a multiple of the guess."""
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
    """The expected needs of a case; `ideal`: seconds of the tasks themselves."""
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
    """Seconds beside the tasks themselves, before a case of the engine has run."""
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
    """Whether it does not fit into so many bytes of memory, with a reserve for other programs."""
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


class Judge:
    """Tells what an item needs, and whether it can run."""

    def __init__(
        self,
        participants: Sequence[Participant],
        *,
        times: TaskTimes,
        place: WorkerPlace,
        warm: bool,
        case_limit: float | None = None,
        servers: Servers | None = None,
    ) -> None:
        """`case_limit`: seconds that a case may take; `servers`: where the workers are, once their
        number is known."""
        self._servers = servers
        self._participants = {one.name: one for one in participants}
        self._times = times
        self._place = place
        self._warm = warm
        self._case_limit = case_limit
        self._facts: dict[tuple[str, int], EngineFacts] = {}
        self._ideal: dict[str, float] = {}
        shared = times.body == SPIN and not place.servers
        self._processors = usable_processors() if shared else None
        self.experience = Experience(
            {one.name for one in participants if one.environment() is not None}
        )

    def need(self, item: ScenarioItem) -> Need:
        """The expected needs of an item, corrected by the cases that have run."""
        case = item.case
        if case.key not in self._ideal:
            self._ideal[case.key] = ideal_time(self._times.draw(case), case.cores, self._processors)
        return need_of(
            case,
            item.engine,
            self.facts(item),
            ideal=self._ideal[case.key],
            place=self._place,
            experience=self.experience,
        )

    def why_not(self, item: ScenarioItem, need: Need, left: float | None) -> str:
        """Why the item is skipped; empty if it is not. `left`: seconds left of the time for all."""
        try:
            check_body(self._times.body, {item.engine: self.facts(item)})
        except InputError as error:
            return f"tasks: {error.what}"
        why = too_long(need, self._case_limit, left)
        if why or not self._place.servers:  # whose memory is not this machine's
            return why or cannot(item.case, need, item.engine, self.facts(item))
        try:
            if self._servers is not None:
                spread(self._servers, item.case.cores)
        except InputError as error:
            return f"workers: {error.what}"
        return ""

    def seconds(self, items: Iterable[ScenarioItem]) -> float:
        """The expected time of the items, without those that will be skipped."""
        available = available_memory()
        needs = map(self.need, items)
        return sum(
            need.seconds
            for need in needs
            if not too_long(need, self._case_limit, None)
            and (self._place.servers or not too_much(need, available))
        )

    def facts(self, item: ScenarioItem) -> EngineFacts:
        """The engine's description of itself. Asking an engine in an environment takes seconds."""
        at_once = min(item.case.cores, item.case.tasks)
        known = self._facts.get((item.engine, at_once))
        if known is None:
            known = self._participants[item.engine].facts(at_once, warm=self._warm)
            self._facts[item.engine, at_once] = known
        return known


def items_of(
    cases: Sequence[ScenarioCase], engines: Sequence[str], rounds: int, seed: int
) -> list[ScenarioItem]:
    """All cases on all engines: each round in an order of its own, drawn from the seed."""
    found = []
    for number in range(rounds):
        items = [ScenarioItem(case, engine, number) for case in cases for engine in engines]
        random.Random(f"{seed} {number}").shuffle(items)
        found += items
    return found


def undecided_engines(
    results: Sequence[CaseResult], engines: Sequence[str]
) -> dict[tuple[int, str], list[str]]:
    """By scenario and case, the engines that have to run again to decide which of them costs less
    or, with one engine, what it costs. An engine that failed or was skipped in a case does not."""
    out = {one.key_without("round") for one in results if one.status in ("skipped", "failed")}
    found: dict[tuple[int, str], dict[str, list[float]]] = {}
    for one in results:
        if one.engine in engines and one.key_without("round") not in out:
            values = found.setdefault((one.scenario, one.case), {}).setdefault(one.engine, [])
            if one.status == "done" and one.overhead_s is not None:
                values.append(one.overhead_s)
    return {case: undecided(values, _ALIKE) for case, values in found.items()}

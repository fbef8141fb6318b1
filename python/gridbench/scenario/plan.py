"""What is to be run: cases on engines, what each needs, and why some are left out."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gridbench.analysis.summary import ideal_time
from gridbench.engines.limit_workers import spread
from gridbench.engines.servers import Servers
from gridbench.errors import InputError
from gridbench.run.client import EngineFacts
from gridbench.run.feasibility import check_body
from gridbench.run.machine import available_memory, usable_processors
from gridbench.run.participants import Participant
from gridbench.scenario.grids import ScenarioCase
from gridbench.scenario.needs import (
    Experience,
    Need,
    WorkerPlace,
    cannot,
    need_of,
    too_long,
    too_much,
)
from gridbench.scenario.results import CaseResult, Identity
from gridbench.scenario.workloads import Times
from gridbench.workload.body import SPIN


@dataclass(frozen=True, slots=True)
class ScenarioItem:
    """One case on one engine."""

    case: ScenarioCase
    engine: str
    round: int

    @property
    def identity(self) -> Identity:
        """As that of its result."""
        return self.case.key, self.engine, self.round


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLimits:
    """The time allowed, seconds; None: any."""

    case: float | None = None
    whole: float | None = None


class Judge:
    """Says what an item needs, and whether it can be run."""

    def __init__(
        self,
        participants: Sequence[Participant],
        *,
        times: Times,
        place: WorkerPlace,
        warm: bool,
        limits: TimeLimits,
        servers: Servers | None = None,
    ) -> None:
        """`servers`: those that have the workers, if any do, and how many they have is known."""
        self._servers = servers
        self._participants = {one.name: one for one in participants}
        self._times = times
        self._place = place
        self._warm = warm
        self._limits = limits
        self._facts: dict[tuple[str, int], EngineFacts] = {}
        self._ideal: dict[str, float] = {}
        shared = times.body == SPIN and not place.servers
        self._processors = usable_processors() if shared else None
        self.experience = Experience(
            {one.name for one in participants if one.environment() is not None}
        )

    def need(self, item: ScenarioItem) -> Need:
        """What the item is expected to take, by all that is known so far."""
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
        """Why the item is left out, if it is; `left`: seconds left of the time for all."""
        try:
            check_body(self._times.body, {item.engine: self.facts(item)})
        except InputError as error:
            return f"tasks: {error.what}"
        why = too_long(need, self._limits.case, left)
        if why or not self._place.servers:  # whose memory is not this machine's
            return why or cannot(item.case, need, item.engine, self.facts(item))
        try:
            if self._servers is not None:
                spread(self._servers, item.case.cores)
        except InputError as error:
            return f"workers: {error.what}"
        return ""

    def seconds(self, items: Iterable[ScenarioItem]) -> float:
        """How long the items are expected to take, without those that will be left out."""
        available = available_memory()
        needs = map(self.need, items)
        return sum(
            need.seconds
            for need in needs
            if not too_long(need, self._limits.case, None)
            and (self._place.servers or not too_much(need, available))
        )

    def facts(self, item: ScenarioItem) -> EngineFacts:
        """What the engine says of itself; asking one that lives elsewhere takes seconds."""
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


def failed_before(
    items: Iterable[ScenarioItem], results: Iterable[CaseResult]
) -> list[ScenarioItem]:
    """The items that failed, if that was not for a reason that may be gone."""
    failed = {one.identity for one in results if one.status == "failed" and not one.again}
    return [item for item in items if item.identity in failed]

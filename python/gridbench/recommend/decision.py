"""The recommendation for each machine: engine, task size, cores, and missing measurements.

It follows from measured figures, or from a model that is fitted to them.
"""

from __future__ import annotations

import math
import shlex
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gridbench.advise.advice import Advice, advise, parts_of
from gridbench.advise.search import Split, predict
from gridbench.advise.work import DivisibleWork
from gridbench.errors import InputError
from gridbench.model.kind import widening
from gridbench.model.model import PipelineModel, model_of
from gridbench.model.model_kind import read_source
from gridbench.model.observation import Situation
from gridbench.recommend.evidence import Evidence
from gridbench.result_kind import FigureName, Measure
from gridbench.results.table import Compared
from gridbench.statistics.claims import ALIKE, decided
from gridbench.workload.body import SPIN

_PROVISIONAL_LEAD = 1.25
"""Ratio up to which an engine is no slower than another if no run was undisturbed."""
FEWEST = 4
"""Tasks for each core, at least, so that cores do not wait long for the last ones."""
EFFICIENT = 0.9
"""Smallest share of the time for computing with which tasks are long enough."""
_BLOCKS = 10
"""Tasks for each core, for this share."""
DEFAULT_COMPARISON = ("gridrpc-native", "process-pool")
"""Engines to compare if none was compared: both are installed with gridbench."""
ON_SERVERS = ("gridrpc-native", "gridrpc-python")
"""The same on servers of a grid, where no other engines run."""
MOST_PREDICTED = 100_000
"""Tasks that a prediction follows one by one."""
_SHORTEST, _LONGEST = 1e-6, 1e4  # seconds of a task
_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class PlannedWork:
    """The work of a user."""

    seconds: float
    """Total time on one core."""
    tasks: int | None = None
    """Number of tasks; None: any number."""
    price: float | None = None
    """Price of a core-hour."""

    @property
    def each(self) -> float | None:
        """Seconds of each of the tasks; None: any."""
        return None if self.tasks is None else self.seconds / self.tasks


@dataclass(frozen=True, slots=True)
class LeastTaskTime:
    """Seconds of a task from which on workers are busy for `EFFICIENT` of the time."""

    expected: float
    low: float
    """The lower end of the 90 % interval."""
    high: float
    """The upper one; infinite: unknown."""


@dataclass(frozen=True, slots=True)
class RankedEngine:
    """An engine in comparison with the others."""

    name: str
    ratio: float
    """Geometric mean over workloads of its time by that of the fastest engine."""
    least: float
    most: float
    fastest: int
    """Workloads in which it was the fastest."""
    workloads: int
    proven: int | None
    """Workloads in which undisturbed rounds prove that the recommended engine is faster; None: this
    is the recommended engine."""


@dataclass(frozen=True, slots=True)
class Trend:
    """A figure with several dates."""

    engine: str
    what: str
    dates: tuple[str, ...]
    measures: tuple[Measure, ...]
    claims: bool
    """Whether the first and the last measurement were undisturbed."""

    @property
    def compared(self) -> Compared:
        """The last with the first."""
        return Compared(self.engine, self.what, self.measures[0], self.measures[-1])


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The recommendation for one machine."""

    host: str
    cores: int
    evidence: tuple[Evidence, ...]
    ranked: tuple[RankedEngine, ...]
    """The recommended engine first; none: engines were not compared."""
    claims: bool
    """Whether the ranking uses undisturbed runs only."""
    model: PipelineModel | None
    model_source: str
    """The folders behind the model."""
    task_time: LeastTaskTime | None
    """None: not known."""
    advice: Advice | None
    """Of the number of tasks that the work has, or in which they suit."""
    work: PlannedWork | None
    trends: tuple[Trend, ...]
    missing: tuple[tuple[str, str], ...]
    """What was not measured, and the command that measures it."""

    @property
    def measured(self) -> tuple[str, ...]:
        """All engines that ran tasks."""
        return tuple(
            dict.fromkeys(
                engine
                for one in self.evidence
                if one.has_tasks
                for engine, _ in (*one.figures, *one.provisional)
            )
        )

    @property
    def tied(self) -> tuple[RankedEngine, ...]:
        """The engines that are as fast as the first, itself included."""
        return tied(self.ranked)

    @property
    def engine(self) -> str:
        """The recommended engine, or the only known one; empty: none. In a tie, and where a small
        lead is provisional, the one with a model."""
        if self.model is not None:
            return self.model.name
        return self.ranked[0].name if self.ranked else ""

    @property
    def core_hours(self) -> float | None:
        """Core-hours of the work, as planned."""
        if self.advice is None:
            return None
        return self.advice.expected.total * self.advice.split.cores / _HOUR

    @property
    def provisional(self) -> bool:
        """Whether other programs disturbed the measurements behind it."""
        return bool((self.ranked and not self.claims) or (self.model and self.model.disturbed))


def recommendations(
    evidence: Sequence[Evidence], work: PlannedWork | None = None, cores: int | None = None
) -> list[Recommendation]:
    """One for each machine, in order of first measurement. `cores`: the most that may be used;
    None: as many as were measured."""
    hosts: dict[str, list[Evidence]] = {}
    for one in evidence:
        hosts.setdefault(one.host, []).append(one)
    return [_of_machine(host, own, work, cores) for host, own in hosts.items()]


def _of_machine(
    host: str, evidence: Sequence[Evidence], work: PlannedWork | None, cores: int | None
) -> Recommendation:
    workloads = _workloads(evidence)
    ranked, claims = _ranked(workloads)
    near = tied(ranked, ALIKE if claims else _PROVISIONAL_LEAD)
    model, source, why_not = _model(evidence, [one.name for one in near])
    task_time = None if model is None else _task_time(model)
    advice = None
    if model is not None and work is not None:
        advice = _planned(model, work, cores, task_time)
    return Recommendation(
        host=host,
        cores=max(one.cores for one in evidence),
        evidence=tuple(evidence),
        ranked=ranked,
        claims=claims,
        model=model,
        model_source=source,
        task_time=task_time,
        advice=advice,
        work=work,
        trends=_trends(evidence),
        missing=tuple(
            _missing(evidence, ranked, model, why_not, claims=claims, work=work, cores=cores)
        ),
    )


def _workloads(evidence: Sequence[Evidence]) -> dict[str, tuple[bool, dict[str, Measure]]]:
    """By workload: whether it claims, and the times of the engines that ran it in one folder. Of
    several folders undisturbed ones take precedence, then later ones."""
    found: dict[str, tuple[bool, dict[str, Measure]]] = {}
    for one in evidence:
        if not one.has_tasks:
            continue
        for figures, claims in ((one.provisional, False), (one.figures, True)):
            for what, engines in _by_workload(figures).items():
                if len(engines) > 1 and (claims or not found.get(what, (False,))[0]):
                    found[what] = (claims, engines)
    return found


def _by_workload(figures: Mapping[FigureName, Measure]) -> dict[str, dict[str, Measure]]:
    found: dict[str, dict[str, Measure]] = {}
    for (engine, what), measure in figures.items():
        found.setdefault(what, {})[engine] = measure
    return found


def _ranked(
    workloads: Mapping[str, tuple[bool, dict[str, Measure]]],
) -> tuple[tuple[RankedEngine, ...], bool]:
    """All engines, the recommended one first, and whether that rests on undisturbed runs. If some
    workloads are undisturbed, only these count."""
    sure = {what: engines for what, (claims, engines) in workloads.items() if claims}
    chosen = sure or {what: engines for what, (_, engines) in workloads.items()}
    ratios: dict[str, list[float]] = {}
    for engines in chosen.values():
        medians = {name: statistics.median(one.values) for name, one in engines.items()}
        best = min(medians.values())
        for name, median in medians.items():
            ratios.setdefault(name, []).append(median / best)
    if not ratios:
        return (), False
    # An engine that ran few of the workloads is not recommended for all of them.
    most = max(map(len, ratios.values()))
    means = {name: statistics.geometric_mean(own) for name, own in ratios.items()}
    order = sorted(ratios, key=lambda name: (len(ratios[name]) < most / 2, means[name]))
    first = order[0]
    return tuple(
        RankedEngine(
            name,
            means[name],
            min(ratios[name]),
            max(ratios[name]),
            sum(ratio == 1 for ratio in ratios[name]),
            len(ratios[name]),
            None if name == first else _proven(first, name, sure),
        )
        for name in order
    ), bool(sure)


def _proven(first: str, other: str, sure: Mapping[str, Mapping[str, Measure]]) -> int:
    return sum(
        decided(engines[first].values, engines[other].values) == "first"
        for engines in sure.values()
        if first in engines and other in engines
    )


def tied(ranked: Sequence[RankedEngine], most_ratio: float = ALIKE) -> tuple[RankedEngine, ...]:
    """The leading engines that differ by no more than `most_ratio`."""
    if not ranked:
        return ()
    most = max(one.workloads for one in ranked)
    return tuple(
        one
        for one in ranked
        if one.ratio <= most_ratio * ranked[0].ratio and one.workloads >= most / 2
    )


def _model(
    evidence: Sequence[Evidence], names: Sequence[str]
) -> tuple[PipelineModel | None, str, str]:
    """The model of the first of the engines that has one, or of the only one if there are no
    `names`; where it is from; and why there is none. A saved model precedes one that is fitted
    now."""
    saved = [(one, model) for one in evidence for model in one.models]
    known = {model.name for _, model in saved}
    if not names and len(known) == 1:
        names = list(known)
    for name in names:
        for one, model in reversed(saved):
            if model.name == name:
                return model, str(one.source), ""
    folders = [one.source for one in evidence if one.has_tasks]
    if not folders:
        return None, "", "no engine ran tasks"
    wanted = " or ".join(names) or "one engine"
    try:
        places = read_source(folders).by_place()
    except InputError:
        return None, "", f"no run of {wanted} can serve for a model"
    why_not = f"no run of {wanted} can serve for a model"
    for name in names or [""]:
        own = {place: seen for place, seen in places.items() if name in ("", place.engine)}
        if len({place.engine for place in own}) != 1:
            continue
        try:
            model = model_of(max(own.values(), key=len), test=False)
        except InputError:
            why_not = f"too few runs of {wanted} are there to fit a model to"
            continue
        return model, _names(folders), ""
    return None, "", why_not


def _names(folders: Sequence[Path]) -> str:
    return ", ".join(dict.fromkeys(str(folder) for folder in folders))


def _work(planned: PlannedWork, model: PipelineModel, cores: int | None) -> DivisibleWork:
    place = model.fit.place
    work = DivisibleWork(
        seconds=planned.seconds,
        cores=cores or max(1, int(model.ranges.cores.high)),
        most_tasks=planned.tasks or 100_000,
        body=SPIN,
    )
    if place.transport == "one host":  # elsewhere each worker is taken to have a processor
        return work.on_processors(place.processors)
    return work


def _planned(
    model: PipelineModel, planned: PlannedWork, cores: int | None, least: LeastTaskTime | None
) -> Advice:
    """The best number of cores with a number of tasks that suits, and not the one that is best by
    a little: that would be as few tasks as cores, which may take days each."""
    found = advise(model, _work(planned, model, cores))
    tasks = _tasks(planned, found.split, least)
    if tasks == found.split.tasks:
        return found
    expected = predict(model, found.work, tasks, found.split.cores)
    split = Split(tasks, found.split.cores, expected.total)
    return replace(found, split=split, expected=expected, parts=parts_of(model, found.work, split))


def _tasks(planned: PlannedWork, best: Split, least: LeastTaskTime | None) -> int:
    """The tasks of the work, put together if they are too short; of any number, `FEWEST` for each
    core. The best number of tasks if the work is too short for that."""
    if least is None:
        return best.tasks
    if planned.tasks is not None and planned.each is not None:
        together = math.ceil(least.expected / planned.each)
        tasks = math.ceil(planned.tasks / together)
        return min(tasks, MOST_PREDICTED) if tasks >= best.cores else best.tasks
    tasks = FEWEST * best.cores
    return tasks if planned.seconds / tasks >= least.expected else best.tasks


def _task_time(model: PipelineModel) -> LeastTaskTime | None:
    """The least time of tasks with which workers, once started, are busy for `EFFICIENT` of the
    time; None: not even long ones do that."""
    cores = max(1, int(model.ranges.cores.high))
    free = {name: 0.0 for name in model.values if name.startswith("start.")}
    # Of workers that have started, unless no run had such.
    warm = "warm" in model.ranges.starts

    def situation(seconds: float, *, warm: bool) -> Situation:
        return Situation(cores=cores, sleep=np.full(_BLOCKS * cores, seconds), warm=warm)

    def least(factor: float) -> float:
        """With an overhead that is so many times what the model says; infinite: none."""

        def efficient(seconds: float) -> bool:
            run = situation(seconds, warm=False)
            (total,) = model.totals([run], free).tolist()
            return bool((1 - EFFICIENT) * run.ideal >= EFFICIENT * factor * (total - run.ideal))

        if not efficient(_LONGEST):
            return math.inf
        low, high = math.log(_SHORTEST), math.log(_LONGEST)
        while high - low > 0.05:
            middle = (low + high) / 2
            low, high = (low, middle) if efficient(math.exp(middle)) else (middle, high)
        return math.exp(high)

    expected = least(1.0)
    if not math.isfinite(expected):
        return None
    factor = widening(model.unsure(situation(expected, warm=warm)))
    return LeastTaskTime(expected, least(1 / factor), least(factor))


def _trends(evidence: Sequence[Evidence]) -> tuple[Trend, ...]:
    """Figures of several dates; changes that are certain first, and of these the largest."""
    found: dict[tuple[str, str, str], dict[str, tuple[Measure, bool]]] = {}
    for one in evidence:
        if not one.date:
            continue
        for figures, claims in ((one.provisional, False), (one.figures, True)):
            for (engine, what), measure in figures.items():
                found.setdefault((one.command, engine, what), {})[one.date] = (measure, claims)
    trends = [
        Trend(
            engine,
            what,
            tuple(dates),
            tuple(measure for measure, _ in dates.values()),
            all(dates[date][1] for date in (min(dates), max(dates))),
        )
        for (_, engine, what), dates in found.items()
        if len(dates) > 1 and all(any(measure.values) for measure, _ in dates.values())
    ]

    def weight(trend: Trend) -> tuple[bool, float]:
        compared = trend.compared
        known = trend.claims and compared.verdict in ("better", "worse")
        size = abs(math.log(compared.ratio)) if 0 < compared.ratio < math.inf else math.inf
        return not known, -size

    return tuple(sorted(trends, key=weight))


def _is_provisional(one: Evidence) -> bool:
    return bool(one.provisional) or any(model.disturbed for model in one.models)


def _has_claims(one: Evidence) -> bool:
    return bool(one.figures) or any(not model.disturbed for model in one.models)


def _missing(
    evidence: Sequence[Evidence],
    ranked: Sequence[RankedEngine],
    model: PipelineModel | None,
    why_not: str,
    *,
    claims: bool,
    work: PlannedWork | None,
    cores: int | None,
) -> list[tuple[str, str]]:
    found = []
    commands = {one.command for one in evidence}
    # Measurements that were taken on a busy machine are repeated with the same option.
    busy = any(map(_is_provisional, evidence)) and not any(map(_has_claims, evidence))
    accept = " --accept-load" if busy else ""
    if not ranked:
        # An engine with a model comes first, so that the next page has a model of what it ranks.
        names = [model.name] if model is not None else []
        on_servers = model is not None and model.linked
        known = ON_SERVERS if on_servers else DEFAULT_COMPARISON
        names += [name for name in known if name not in names]
        where = " --grid grid.toml" if on_servers else ""
        found.append(
            (
                "which engine is fastest: no workload ran on several engines",
                f"gridbench run {' '.join(names[:2])}{where}{accept}",
            )
        )
    elif not claims:
        found.append(
            (
                "an undisturbed comparison of engines: other programs used the machine",
                f"gridbench run {' '.join(one.name for one in ranked[:2])} --wait-for-quiet",
            )
        )
    if model is None:
        engine = f" --engine {ranked[0].name}" if ranked else ""
        most = cores or max(1, *(one.cores for one in evidence))
        # Without --out it takes a folder that is free.
        found.append(
            (
                f"task size and number of cores: {why_not or 'there is no model of the engine'}",
                f"gridbench advise --work 100s --cores {most}{engine}{accept}",
            )
        )
    if work is None:
        folders = shlex.join(dict.fromkeys(str(one.source) for one in evidence))
        found.append(
            ("core-hours: the work is not known", f"gridbench recommend {folders} --work 100h")
        )
    others = {
        "gridbench micro": "calls and start-up",
        "gridbench sync": "storage under load",
        "gridbench data": "data grids",
    }
    lacking = {what: command for command, what in others.items() if command not in commands}
    if lacking:
        found.append((", ".join(lacking), " / ".join(lacking.values())))
    return found

"""Cases of remote Linpack with their repeats, and their model as
`gridbench.model.kind.ModelKind`.

A call has two parts, each measured by itself:

    T_comm = T_comm0 + (8 n^2 + 20 n) / B              from client to server and back
    T_comp = T_comp0 + (2/3 n^3 + 2 n^2) / P_calc      in which the solver runs
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gridbench.errors import InputError
from gridbench.formats import share_given
from gridbench.linpack.options import LOOPBACK, link_of
from gridbench.linpack.record import (
    BIG_ENDIAN,
    FORM,
    LOCAL,
    ClientLanguage,
    Limit,
    LinpackCase,
    operations,
    transferred,
)
from gridbench.machine.judgement import disturbed
from gridbench.model.cost_model import CostModel, CostSubject
from gridbench.model.formula import Cost, Formula, FormulaPart, MeasuredCase
from gridbench.model.kind import FittedModel, ModelParameter, ModelSubjects
from gridbench.model.saved import cost_models
from gridbench.model.saved import cost_record as to_record
from gridbench.statistics.crossing import Crossing, crossing, kind_of
from gridbench.statistics.interval import Interval, measured

__all__ = ["from_record", "name", "parameters", "read", "to_record"]

name = "remote Linpack"
parameters = (ModelParameter("n", "order of the matrix"),)
COMMUNICATION, COMPUTATION = "communication", "computation"
FORMULA = Formula(
    quantity="time of a call that solves a system",
    noun="size",
    parameters=parameters,
    parts=(
        FormulaPart(
            name=COMMUNICATION,
            what="from client to server and back",
            costs=(
                Cost(
                    "byte", "1/B: sending a byte", "s/byte", lambda cases: transferred(cases["n"])
                ),
                Cost("start", "T_comm0: a call without data", "s", lambda cases: cases["n"] ** 0),
            ),
        ),
        FormulaPart(
            name=COMPUTATION,
            what="in which the solver runs",
            costs=(
                Cost(
                    "operation",
                    "1/P_calc: a floating-point operation",
                    "s/flop",
                    lambda cases: operations(cases["n"]),
                ),
                Cost("start", "T_comp0: starting to solve", "s", lambda cases: cases["n"] ** 0),
            ),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class SizeCase:
    """The repeats of one size that were done, by one client over one path; at least one."""

    all: tuple[LinpackCase, ...]

    @property
    def n(self) -> int:
        """Order of the matrix."""
        return self.all[0].n

    @property
    def counts(self) -> bool:
        """Whether a claim may rest on it: at least one was undisturbed."""
        return not all(map(disturbed, self.all))

    @property
    def counting(self) -> list[LinpackCase]:
        """Those that count or, if none does, all."""
        return [one for one in self.all if not (self.counts and disturbed(one))]

    @property
    def seconds(self) -> Interval:
        """Time of a call: the median, from the smallest to the largest."""
        return _interval(one.seconds for one in self.counting)

    @property
    def performance(self) -> Interval:
        """Operations per second of the call."""
        return _interval(operations(self.n) / one.seconds for one in self.counting)

    @property
    def throughput(self) -> Interval | None:
        """Bytes per second of the communication; None if there is none."""
        times = [one.communication for one in self.counting if one.communication > 0]
        return _interval(transferred(self.n) / one for one in times) if times else None


def _interval(values: Iterable[float]) -> Interval:
    found = measured(values, 0.0)
    assert found is not None
    return found


@dataclass(frozen=True, slots=True)
class LinpackSeries:
    """All sizes of one client, at one speed, over one path."""

    client: ClientLanguage
    path: str
    speed: float
    cases: tuple[SizeCase, ...]
    """By size."""

    @property
    def local(self) -> bool:
        """Whether the client solves itself."""
        return self.path == LOCAL

    @property
    def limit(self) -> Limit:
        """How the client was slowed."""
        return self.cases[0].all[0].limit

    @property
    def who(self) -> str:
        """The client: `C`, `C at 10% speed`."""
        return (
            f"{self.client} at {share_given(self.speed)} speed" if self.speed < 1 else self.client
        )

    @property
    def told(self) -> str:
        """The client and its path."""
        return f"{self.who}, {self.path}"

    @property
    def times(self) -> dict[int, Interval]:
        """By size, seconds of a call."""
        return {case.n: case.seconds for case in self.cases}

    @property
    def subject(self) -> CostSubject:
        """What a model is fitted to."""
        return CostSubject(
            formula=FORMULA,
            name=self.told,
            told=f"a client in {self.told}",
            points=tuple(map(_point, self.cases)),
            uncounted=sum(not case.counts for case in self.cases),
        )


def series_of(records: Iterable[LinpackCase]) -> list[LinpackSeries]:
    """What was done, the fastest clients first, and what they solve themselves before what servers
    solve for them."""
    found: dict[tuple[ClientLanguage, str, float], dict[int, list[LinpackCase]]] = {}
    for one in records:
        if one.status == "done":
            sizes = found.setdefault((one.client, one.path, one.speed), {})
            sizes.setdefault(one.n, []).append(one)
    return [
        LinpackSeries(client, path, speed, tuple(SizeCase(tuple(sizes[n])) for n in sorted(sizes)))
        for (client, path, speed), sizes in sorted(
            found.items(), key=lambda one: (-one[0][2], one[0][0], *_place_of(one[0][1]))
        )
    ]


def _place_of(path: str) -> tuple[int, float, str]:
    """What orders paths: those on this machine, then links from the fastest."""
    if path == LOCAL:
        return -1, 0.0, path
    link, way = link_of(path), path.removesuffix(BIG_ENDIAN)
    place = (LOOPBACK.index(way), 0.0) if link is None else (len(LOOPBACK), -link.rate)
    return *place, path


# ---- What the cases show

_SMALLEST, _BEYOND = 10.0, 2.0
"""Models look for the size from which on the server is faster from this one to so many times the
largest that was measured."""


@dataclass
class LinpackAnswer:
    """What the cases show."""

    series: Sequence[LinpackSeries]

    @cached_property
    def models(self) -> dict[str, CostModel]:
        """By the names of series; without those of too few sizes."""
        found = {}
        for one in self.series:
            try:
                found[one.told] = one.subject.fit(test=True)
            except InputError:
                continue
        return found

    @property
    def remote(self) -> list[LinpackSeries]:
        """What servers solved."""
        return [one for one in self.series if not one.local]

    @property
    def clients(self) -> list[str]:
        """All of them, slowed ones as well."""
        return list(dict.fromkeys(one.who for one in self.series))

    @property
    def paths(self) -> list[str]:
        """To servers."""
        return list(dict.fromkeys(one.path for one in self.remote))

    @property
    def sizes(self) -> list[int]:
        """Orders of matrices."""
        return sorted({case.n for one in self.series for case in one.cases})

    def of(self, client: str) -> list[LinpackSeries]:
        """What a client solved itself, and over each path."""
        return [one for one in self.series if one.who == client]

    def overtaking(self, client: str, path: str) -> Overtaking | None:
        """Where the server is faster than a client; None if too little was measured."""
        local = next((one for one in self.of(client) if one.local), None)
        remote = next((one for one in self.of(client) if one.path == path), None)
        if local is None or remote is None:
            return None
        found = crossing(local.times, remote.times)
        if found is None:
            return None
        ours, theirs = self.models.get(local.told), self.models.get(remote.told)
        predicted = _predicted(ours, theirs) if ours and theirs else None
        return Overtaking(client, path, found, predicted)

    def values(self) -> dict[str, Any]:
        """Sizes from which on servers are faster, and models, for JSON."""
        found = [
            one
            for client in self.clients
            for path in self.paths
            if (one := self.overtaking(client, path))
        ]
        return {
            "overtaking": [
                {
                    "client": one.client,
                    "path": one.path,
                    "measured": _crossing_values(one.measured),
                    "predicted": one.predicted and _crossing_values(one.predicted),
                }
                for one in found
            ],
            "models": [
                {
                    "of": model.name,
                    "estimates": [asdict(one) for one in model.estimates],
                    "spread": model.spread,
                }
                for model in self.models.values()
            ],
        }


@dataclass(frozen=True, slots=True)
class Overtaking:
    """From which size on the server is faster."""

    client: str
    path: str
    measured: Crossing
    predicted: Crossing | None
    """By the models of both."""


def _predicted(local: CostModel, remote: CostModel) -> Crossing:
    largest = _BEYOND * min(model.measured["n"].high for model in (local, remote))
    places = [float(n) for n in np.geomspace(_SMALLEST, largest, 1000)]

    def seconds(model: CostModel, n: float) -> float:
        return model.expect({"n": n}).total

    faster = [seconds(remote, n) < seconds(local, n) for n in places]
    kind, number, several = kind_of(faster)
    at = places[number]
    return Crossing(kind, at, at, at, several)


def _crossing_values(found: Crossing) -> dict[str, Any]:
    from_or_up_to = found.kind in {"from", "up to"}
    return {
        "kind": found.kind,
        "n": found.at if from_or_up_to else None,
        "low": found.low if from_or_up_to and np.isfinite(found.low) else None,
        "high": found.high if from_or_up_to and np.isfinite(found.high) else None,
    }


# ---- As a kind of model


def read(folders: Sequence[Path]) -> ModelSubjects:
    """The cases of each client, speed and path. InputError for a folder that cannot be used."""
    records = [one for folder in folders for one in FORM.read(folder)[1]]
    left_out = Counter(one.why for one in records if one.status != "done")
    return ModelSubjects(
        subjects=[one.subject for one in series_of(records)],
        noun=FORMULA.noun,
        left_out=left_out,
        remedy="run `gridbench linpack` with more sizes",
    )


def from_record(record: Any) -> Sequence[FittedModel]:
    """The models in what `to_record` gives. RecordError if it is something else."""
    return cost_models(FORMULA, record)


def _point(case: SizeCase) -> MeasuredCase:
    return MeasuredCase(
        {"n": case.n},
        tuple(
            {COMMUNICATION: one.communication, COMPUTATION: one.computation}
            for one in case.counting
        ),
    )

"""Cases of remote Linpack with their repeats, and their model as
`gridbench.model.kind.ModelKind`.

A call has two parts, each measured by itself:

    T_comm = T_comm0 + (8 n^2 + 20 n) / B              from client to server and back
    T_comp = T_comp0 + (2/3 n^3 + 2 n^2) / P_calc      in which the solver runs
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gridbench.formats import share_given
from gridbench.linpack.options import LOOPBACK, link_of
from gridbench.linpack.record import (
    FORM,
    LOCAL,
    ClientLanguage,
    Limit,
    LinpackCase,
    operations,
    transferred,
)
from gridbench.machine.judgement import disturbed
from gridbench.model.cost_model import CostSubject
from gridbench.model.formula import Cost, Formula, FormulaPart, MeasuredCase
from gridbench.model.kind import FittedModel, ModelParameter, ModelSubjects
from gridbench.model.saved import cost_models
from gridbench.model.saved import cost_record as to_record
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


def _place_of(path: str) -> tuple[int, float]:
    """What orders paths: those on this machine, then links from the fastest."""
    if path == LOCAL:
        return -1, 0.0
    link = link_of(path)
    return (LOOPBACK.index(path), 0.0) if link is None else (len(LOOPBACK), -link.rate)


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

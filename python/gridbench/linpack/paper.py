"""The published tables of the Ninf server, and which of their findings hold today."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from gridbench.errors import InputError
from gridbench.formats import (
    NOTHING,
    counted,
    digits,
    fixed,
    percent,
    scale,
    times,
    whole,
)
from gridbench.linpack.record import (
    ClientsCase,
    ClientsCell,
    CorePolicy,
    Spread,
    StepKind,
    mean_of,
    operations,
)
from gridbench.machine.judgement import disturbed
from gridbench.pages.table import Column, Table, table_of
from gridbench.published.figures import Row, table
from gridbench.statistics.claims import ALIKE, ENOUGH

_POLICIES: Mapping[str, CorePolicy] = {"1PE": "one", "4PE": "all"}
_MEGA = 1e6

FEW, MANY = 4, 8
"""Clients: few are up to 4, many from 8 on."""
_LOADED = 16
"""Clients with which the paper's server had its highest load,"""
_IN_PROGRESS = 0.5
"""and the share of them that must have a call in progress for a server to be under load today."""
_IDLE = 0.5
"""Share of busy processors below which calls rarely meet."""
_FINE = 0.9
"""A library on all cores is fine as a service if it is at least so fast, by one core for each."""
Verdict = Literal["yes", "no", "not decided"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperCell:
    """A row of the paper's tables 2 and 3."""

    performance: Spread
    """Operations per second."""
    response: Spread
    """Seconds."""
    wait: Spread
    throughput: Spread
    """Bytes per second."""
    utilisation: float
    """Share of the processors."""
    load_average: float
    calls: int


@cache
def paper_cells() -> Mapping[tuple[CorePolicy, int, int], PaperCell]:
    """All rows, by policy, order and clients."""
    return {
        (_POLICIES[row["version"]], int(row["n"]), int(row["clients"])): PaperCell(
            performance=_spread(row, "mflops_{}", _MEGA),
            response=_spread(row, "response_{}_s"),
            wait=_spread(row, "wait_{}_s"),
            throughput=_spread(row, "throughput_{}_mbs", _MEGA),
            utilisation=float(row["cpu_utilization_pct"]) / 100,
            load_average=float(row["load_average"]),
            calls=int(row["calls"]),
        )
        for row in table("linpack-clients")
    }


def _spread(row: Row, name: str, unit: float = 1.0) -> Spread:
    largest, least, mean = (float(row[name.format(part)]) * unit for part in ("max", "min", "mean"))
    return Spread(largest, least, mean)


def call_seconds(n: int) -> float:
    """The time of a call of the paper's single client, with one core. InputError for an order that
    the paper does not have."""
    cell = paper_cells().get(("one", n, 1))
    if cell is None:
        known = ", ".join(f"{one:,}" for one in sorted({n for _, n, _ in paper_cells()}))
        raise InputError(
            f"--steps: the paper has no time for n = {n:,}, so its step cannot be scaled",
            remedy=f"give --sizes of {known}, or --steps paper",
        )
    return operations(n) / cell.performance.mean


# ---- Findings


@dataclass(frozen=True, slots=True)
class PaperFinding:
    """A finding of the paper, and whether it holds."""

    claim: str
    holds: Verdict
    figures: str
    """Ours and the paper's."""


def findings(cases: Sequence[ClientsCase], steps: StepKind) -> list[PaperFinding]:
    """Each finding of the paper with what the cases with these steps say."""
    own = _Cases([one for one in cases if one.steps == steps and one.calls])
    few = own.compared(lambda _, clients: clients <= FEW)
    many = own.compared(lambda _, clients: clients >= MANY)
    line = own.compared(lambda n, clients: clients == MANY and n in (1000, 1400))
    return [
        PaperFinding(
            "With few clients, all cores for one call win.",
            few.verdict(yes=lambda r: r > 1, no=lambda r: r < ALIKE),
            few.describe("all cores", "one core", f"with up to {FEW} clients"),
        ),
        PaperFinding(
            "With many clients, one core for each call wins slightly.",
            many.inverse.verdict(yes=lambda r: r > 1, no=lambda r: r <= 1),
            f"{many.inverse.describe('one core', 'all cores', f'from {MANY} clients on')}"
            f"{own.idle(MANY)}",
        ),
        PaperFinding(
            f"The line is at {MANY} clients: for n = 1,000 and 1,400 one core is ahead there.",
            line.inverse.verdict(yes=lambda r: r > 1, no=lambda r: r <= 1),
            line.inverse.describe("one core", "all cores", f"with {MANY} clients"),
        ),
        own.under_load(),
        PaperFinding(
            "So a plain high-performance library is fine as a service.",
            many.verdict(yes=lambda r: r >= _FINE, no=lambda r: r < _FINE),
            many.describe("all cores", "one core", f"from {MANY} clients on"),
        ),
    ]


def policies_compared(cases: Sequence[ClientsCase], steps: StepKind) -> str:
    """`calls that get all cores in turn are 1.31× as fast as calls that get one core each with up
    to 4 clients, and 0.940× from 8 clients on`; empty without a case of both policies."""
    own = _Cases([one for one in cases if one.steps == steps and one.calls])
    parts = {
        f"with up to {FEW} clients": own.compared(lambda _, clients: clients <= FEW),
        f"from {MANY} clients on": own.compared(lambda _, clients: clients >= MANY),
    }
    known = {where: times(ratios.middle) for where, ratios in parts.items() if ratios.all}
    if not known:
        return ""
    (where, first), *others = known.items()
    text = f"calls that get all cores in turn are {first} as fast as calls that get one core each"
    return ", and ".join([f"{text} {where}", *(f"{ratio} {place}" for place, ratio in others)])


@dataclass(frozen=True, slots=True)
class _Ratios:
    """Mean performance with one policy by that with the other, for each round the geometric mean
    of all pairs of cases."""

    counting: Sequence[float]
    """Of undisturbed rounds."""
    all: Sequence[float]
    paper: float | None
    """Of the same cases; None: the paper has none of them."""

    @property
    def middle(self) -> float:
        """The median over undisturbed rounds, or over all if there is none."""
        return statistics.median(self.counting or self.all)

    @property
    def inverse(self) -> _Ratios:
        """The same the other way round."""
        paper = None if self.paper is None else 1 / self.paper
        return _Ratios([1 / one for one in self.counting], [1 / one for one in self.all], paper)

    def verdict(self, *, yes: Callable[[float], bool], no: Callable[[float], bool]) -> Verdict:
        """What all undisturbed rounds say alike; there have to be enough."""
        if len(self.counting) >= ENOUGH:
            if all(map(yes, self.counting)):
                return "yes"
            if all(map(no, self.counting)):
                return "no"
        return "not decided"

    def describe(self, first: str, second: str, where: str) -> str:
        """`all cores / one core, with up to 4 clients: 1.31× to 1.35× in 2 rounds; paper 1.42×`."""
        shown = self.counting or self.all
        if not shown:
            return f"{first} / {second}, {where}: not measured"
        ends = dict.fromkeys(map(times, (min(shown), max(shown))))
        rounds = counted(len(shown), "round")
        state = "" if self.counting else ", disturbed"
        paper = "" if self.paper is None else f"; paper {times(self.paper)}"
        return f"{first} / {second}, {where}: {' to '.join(ends)} in {rounds}{state}{paper}"


@dataclass(frozen=True, slots=True)
class _Cases:
    """Cases with the same kind of step."""

    cases: Sequence[ClientsCase]

    def compared(self, which: Callable[[int, int], bool]) -> _Ratios:
        """The ratios of `all` to `one`, over the orders and clients that are wanted."""
        chosen = [one for one in self.cases if which(one.n, one.clients)]
        pairs = {(one.n, one.clients) for one in chosen}
        known = paper_cells()
        paper = [
            known["all", *pair].performance.mean / known["one", *pair].performance.mean
            for pair in pairs
            if ("all", *pair) in known
        ]
        return _Ratios(
            _ratios([one for one in chosen if not disturbed(one)]),
            _ratios(chosen),
            statistics.geometric_mean(paper) if paper else None,
        )

    def idle(self, clients: int) -> str:
        """That calls rarely meet, if that is so with many clients; else empty."""
        cell = ClientsCell([one for one in self.cases if one.clients >= clients])
        if not cell.cases or not cell.utilisation < _IDLE:
            return ""
        return f". Calls rarely meet: the processors were {percent(cell.utilisation, 0)} busy"

    def under_load(self) -> PaperFinding:
        """Whether the server answers all calls when many clients call at a time."""
        claim = f"The server holds up under the load of {_LOADED} clients."
        paper = max(one.load_average for one in paper_cells().values())
        under = f"paper: load average up to {fixed(paper, 0)}"
        many = [ClientsCell([one]) for one in self.cases if one.clients >= _LOADED]
        loaded = [cell for cell in many if cell.in_progress >= _IN_PROGRESS * cell.cases[0].clients]
        if bad := sum(cell.ended("error", "lost", "wrong") for cell in many):
            calls = sum(len(cell.calls) for cell in many)
            return PaperFinding(claim, "no", f"{bad:,} of {calls:,} calls failed; {under}")
        if restarts := sum(one.restarts for one in self.cases):
            return PaperFinding(
                claim, "no", f"the server ended {counted(restarts, 'time')}; {under}"
            )
        if not many:
            return PaperFinding(claim, "not decided", f"not measured; {under}")
        if not loaded:
            most = max(cell.in_progress for cell in many)
            why = f"not tested: at most {digits(most, 2)} calls were in progress, on average"
            return PaperFinding(claim, "not decided", f"{why}; {under}")
        calls = sum(len(cell.calls) for cell in loaded)
        most = max(cell.in_progress for cell in loaded)
        return PaperFinding(
            claim,
            "yes",
            f"all of {calls:,} calls were answered, with up to {digits(most, 2)} in progress on"
            f" average; {under}",
        )


def _ratios(cases: Sequence[ClientsCase]) -> list[float]:
    """Of each round, over the orders and numbers of clients that both policies have in it."""
    means: dict[int, dict[tuple[int, int], dict[CorePolicy, float]]] = {}
    for one in cases:
        found = ClientsCell([one]).performance
        if found is not None:
            of_round = means.setdefault(one.repeat, {})
            of_round.setdefault((one.n, one.clients), {})[one.policy] = found.mean
    ratios = [
        [both["all"] / both["one"] for both in of_round.values() if len(both) > 1]
        for of_round in means.values()
    ]
    return [statistics.geometric_mean(own) for own in ratios if own]


# ---- Tables


def findings_table(found: Sequence[PaperFinding]) -> Table:
    """A row for each finding."""
    columns: list[Column[PaperFinding]] = [
        Column("finding", lambda one: one.claim, words=True),
        Column("holds today", lambda one: one.holds, words=True),
        Column("figures", lambda one: one.figures, words=True),
    ]
    return table_of(columns, found, style="left")


def comparison_table(cells: Sequence[ClientsCell]) -> Table:
    """The figures of each case by the paper's."""
    paper = paper_cells()

    def of_paper(cell: ClientsCell) -> PaperCell | None:
        return paper.get(cell.key[1:])

    def relative(figure: str) -> Callable[[ClientsCell], str]:
        def describe(cell: ClientsCell) -> str:
            _, policy, n, _ = cell.key
            theirs = of_paper(cell)
            ours = _by_one_client(cell, cells, figure)
            before = None
            if theirs is not None:
                alone = getattr(paper[policy, n, 1], figure)
                before = getattr(theirs, figure).mean / alone.mean
            return _both(ours, before, lambda value: fixed(value, 2))

        return describe

    def both(
        ours: Callable[[ClientsCell], float],
        theirs: Callable[[PaperCell], float],
        shown: Callable[[float], str],
    ) -> Callable[[ClientsCell], str]:
        def describe(cell: ClientsCell) -> str:
            known = of_paper(cell)
            return _both(ours(cell), None if known is None else theirs(known), shown)

        return describe

    def seconds(value: float) -> str:
        return scale(value, "s").text(value)

    columns: list[Column[ClientsCell]] = [
        Column("n", lambda cell: cell.key[2]),
        Column("clients", lambda cell: cell.key[3]),
        Column("performance, relative to one client", relative("performance")),
        Column("throughput, relative", relative("throughput")),
        Column(
            "mean response", both(lambda c: mean_of(c.response), lambda p: p.response.mean, seconds)
        ),
        Column("mean wait", both(lambda c: mean_of(c.wait), lambda p: p.wait.mean, seconds)),
        Column("processors", both(lambda c: c.utilisation, lambda p: p.utilisation, percent)),
        Column(
            "load",
            both(lambda c: c.load_average, lambda p: p.load_average, lambda v: fixed(v, 2)),
        ),
        Column("calls", both(lambda c: len(c.calls), lambda p: p.calls, whole)),
    ]
    return table_of(columns, cells)


def _by_one_client(cell: ClientsCell, cells: Sequence[ClientsCell], figure: str) -> float:
    """A mean figure, by that of one client with the same policy and order; NaN: not measured."""
    alone = next((one for one in cells if one.key == (*cell.key[:3], 1)), None)
    if alone is None:
        return math.nan
    return mean_of(getattr(cell, figure)) / mean_of(getattr(alone, figure))


def _both(ours: float, theirs: float | None, shown: Callable[[float], str]) -> str:
    texts = (
        shown(one) if one is not None and math.isfinite(one) else NOTHING for one in (ours, theirs)
    )
    return " / ".join(texts)

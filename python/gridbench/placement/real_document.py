"""The document about real runs: policies beside the best assignment and beside simulations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from gridbench.formats import NOTHING, counted, percent, signed_percent, times
from gridbench.jsonl_store import Header
from gridbench.machine.judgement import disturbed
from gridbench.pages.document import (
    EVERYWHERE,
    Block,
    Document,
    Section,
    StaticChart,
    TableBlock,
    definitions,
    subheading,
)
from gridbench.pages.svg import Bar, bars
from gridbench.pages.table import Column, Table, table_of
from gridbench.placement.comparison import geometric
from gridbench.placement.record import BEST, PlacedCall, RealPolicy, RealRun
from gridbench.statistics.interval import Interval

WITHIN_BEST = 1.1
"""Target of the total time of `least-time`, by that of the best assignment."""
WITHIN_SIMULATED = 0.1
"""Target of the relative error of simulated total times."""
_SERVER = PlacedCall._fields.index("server")
_NAMED = 5
"""Failed runs that a notice names."""


@dataclass(frozen=True)
class RealPolicyRuns:
    """The rounds of a policy."""

    policy: RealPolicy
    runs: Mapping[int, RealRun]
    """By round; those that count."""
    best: Mapping[int, RealRun]
    """Those of the best assignment."""

    @cached_property
    def total(self) -> Interval:
        """Seconds, with what was learned; the geometric mean."""
        return geometric([one.total for one in self.runs.values()])

    @cached_property
    def first(self) -> Interval:
        """Seconds, with nothing known."""
        return geometric([one.first for one in self.runs.values()])

    @cached_property
    def by_best(self) -> Interval | None:
        """The total time by that of the best assignment in the same round; None: not known."""
        return self._by_best(lambda one: one.total)

    @cached_property
    def first_by_best(self) -> Interval | None:
        """The same of the first time, by the best assignment's second one, which needs to know
        nothing."""
        return self._by_best(lambda one: one.first)

    @property
    def simulated(self) -> float:
        """Seconds."""
        return next(iter(self.runs.values())).simulated

    @property
    def simulated_first(self) -> float:
        """Seconds, with nothing known."""
        return next(iter(self.runs.values())).simulated_first

    @property
    def error(self) -> float:
        """Of the simulated total time, relative to the real one."""
        return self.simulated / self.total.value - 1

    @property
    def first_error(self) -> float:
        """The same of the first time."""
        return self.simulated_first / self.first.value - 1

    def share(self, server: int) -> float:
        """Of the calls, on a server."""
        where = [int(call[_SERVER]) for one in self.runs.values() for call in one.calls]
        return where.count(server) / len(where) if where else math.nan

    def _by_best(self, of: Callable[[RealRun], float]) -> Interval | None:
        pairs = [
            of(self.runs[repeat]) / self.best[repeat].total
            for repeat in sorted(self.runs.keys() & self.best.keys())
        ]
        return geometric(pairs) if pairs else None


def policies_of(runs: Sequence[RealRun]) -> list[RealPolicyRuns]:
    """The policies with the rounds that count, the fastest first: undisturbed ones where there are
    any."""
    done = [one for one in runs if one.status == "done"]
    by_policy: dict[RealPolicy, dict[int, RealRun]] = {}
    for policy in dict.fromkeys(one.policy for one in done):
        own = [one for one in done if one.policy == policy]
        quiet = [one for one in own if not disturbed(one)]
        by_policy[policy] = {one.repeat: one for one in quiet or own}
    best = by_policy.get(BEST, {})
    found = [RealPolicyRuns(policy, own, best) for policy, own in by_policy.items()]
    return sorted(found, key=lambda one: one.total.value)


def document_of(header: Header, runs: Sequence[RealRun]) -> Document:
    """The answer, and tables."""
    policies = policies_of(runs)
    names = [str(one) for one in header.options.get("server_names") or ()]
    return Document(
        kind="gridbench placement run",
        title="gridbench placement run: choosing among real servers",
        heading="Choosing among real servers",
        subheading=subheading(header, str(header.options.get("scenario", ""))),
        sentences=_sentences(policies),
        notices=_notices(runs),
        summary=[
            *_chart(policies),
            TableBlock("Policies", _policies_table(policies), media=EVERYWHERE),
        ],
        sections=[
            Section(
                "first",
                "Nothing known",
                [
                    TableBlock(
                        "The first time",
                        _first_table(policies),
                        about="Clients know announced speeds, and no bandwidths.",
                    )
                ],
                short="First time",
            ),
            Section(
                "servers",
                "Servers",
                [TableBlock("Shares of the calls", _server_table(names, policies))],
                short="Servers",
            ),
            Section("method", "How to read this", [_TERMS], short="Method"),
        ],
        header=header,
    )


def answer_values(runs: Sequence[RealRun]) -> dict[str, Any]:
    """The figures of each policy, for `--json`."""
    return {
        one.policy: {
            "rounds": len(one.runs),
            "total": _finite(one.total),
            "by_best": _finite(one.by_best),
            "simulated": one.simulated,
            "error": one.error,
            "first": _finite(one.first),
            "first_by_best": _finite(one.first_by_best),
            "first_error": one.first_error,
        }
        for one in policies_of(runs)
    }


def _finite(found: Interval | None) -> dict[str, float | None] | None:
    if found is None:
        return None
    return {name: value if math.isfinite(value) else None for name, value in asdict(found).items()}


# ---- Sentences


def _sentences(policies: Sequence[RealPolicyRuns]) -> list[str]:
    if not policies:
        return ["Nothing was run yet."]
    named = {one.policy: one for one in policies}
    found = []
    least = named.get("least-time")
    if least is not None and least.by_best is not None:
        ratio = least.by_best
        found.append(
            f"least-time takes {times(ratio.value)} as long as the best assignment that was found"
            f"{_between(ratio)}{_judged(ratio)}."
        )
    others = [one for one in policies if one.policy not in (BEST, "least-time") and one.by_best]
    if others:
        reported = (f"{one.policy} {times(one.by_best.value)}" for one in others if one.by_best)
        found.append(f"The other policies: {', '.join(reported)}.")
    worst = max(policies, key=lambda one: abs(one.error))
    met = "within" if abs(worst.error) <= WITHIN_SIMULATED else "above"
    found.append(
        f"Simulated total times differ by {percent(abs(worst.error))} at most ({worst.policy}),"
        f" {met} the target of {percent(WITHIN_SIMULATED, 0)}."
    )
    return found


def _judged(ratio: Interval) -> str:
    target = f"the target of {times(WITHIN_BEST)}"
    if ratio.high <= WITHIN_BEST:
        return f", within {target}"
    if ratio.low > WITHIN_BEST:
        return f", above {target}"
    return f"; whether that is within {target} is undecided"


def _between(ratio: Interval) -> str:
    if not math.isfinite(ratio.high):
        return ""
    return f" (95 %: {times(ratio.low)} to {times(ratio.high)})"


def _notices(runs: Sequence[RealRun]) -> list[str]:
    found = [
        "Functions sleep as long as a server of its speed would compute: data, links, directory and"
        " calls are real, processors are not shared."
    ]
    if busy := sum(map(disturbed, runs)):
        found.append(f"Other programs disturbed {busy:,} of {counted(len(runs), 'run')}.")
    left = [f"{one.describe()}, {one.status}: {one.why}." for one in runs if one.status != "done"]
    more = [f"{len(left) - _NAMED:,} more were not done."] if len(left) > _NAMED else []
    return [*found, *left[:_NAMED], *more]


# ---- Chart and tables


def _chart(policies: Sequence[RealPolicyRuns]) -> list[Block]:
    ratios = [(one.policy, _drawn(one.by_best)) for one in policies if one.policy != BEST]
    made = [
        Bar(policy, ratio.value, ratio.low, ratio.high)
        for policy, ratio in ratios
        if ratio is not None
    ]
    caption = "Total time of each policy, by that of the best assignment"
    return [StaticChart(bars(made, "x", caption), caption)] if made else []


def _policies_table(policies: Sequence[RealPolicyRuns]) -> Table:
    columns: list[Column[RealPolicyRuns]] = [
        Column("policy", lambda one: one.policy, words=True),
        Column("rounds", lambda one: len(one.runs)),
        Column("total time", lambda one: _drawn(one.total), "s"),
        Column("by the best assignment", lambda one: _drawn(one.by_best), "x"),
        Column("simulated", lambda one: one.simulated, "s"),
        Column("error", lambda one: signed_percent(one.error)),
    ]
    return table_of(columns, policies)


def _first_table(policies: Sequence[RealPolicyRuns]) -> Table:
    columns: list[Column[RealPolicyRuns]] = [
        Column("policy", lambda one: one.policy, words=True),
        Column("total time", lambda one: _drawn(one.first), "s"),
        Column("by the best assignment", lambda one: _drawn(one.first_by_best), "x"),
        Column("simulated", lambda one: one.simulated_first, "s"),
        Column("error", lambda one: signed_percent(one.first_error)),
    ]
    return table_of(columns, policies)


def _server_table(names: Sequence[str], policies: Sequence[RealPolicyRuns]) -> Table:
    columns: list[Column[int]] = [Column("server", lambda number: names[number], words=True)]
    for one in policies:
        columns.append(Column(one.policy, _share_of(one)))
    return table_of(columns, range(len(names)))


def _share_of(policy: RealPolicyRuns) -> Callable[[int], str]:
    def describe(server: int) -> str:
        share = policy.share(server)
        return percent(share, 0) if math.isfinite(share) else NOTHING

    return describe


def _drawn(found: Interval | None) -> Interval | None:
    """Of a single round, without a range."""
    if found is None or math.isfinite(found.high):
        return found
    return Interval(found.value, found.value, found.value)


_TERMS = definitions(
    """
    Total time = From the first submit to the last result of all clients. Clients make all calls
        twice; this is the second time, with the speeds and bandwidths that they learned the first
        time. Geometric mean of the rounds, with the 95 % interval.
    Best assignment = The servers that a search found for all calls together, with the least
        simulated total time. Clients then send each call to its server. It knows all calls and all
        speeds beforehand, which no policy does.
    By the best assignment = The total time by that of the best assignment in the same round.
    Simulated = The total time of the same calls in a simulation of clients, links and servers, with
        the code by which clients choose.
    Error = By how much the simulated time differs from the real one.
    """
)

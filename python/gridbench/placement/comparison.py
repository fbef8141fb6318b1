"""Policies compared by paired seeds: which one wins, by how much, and how sure that is."""

from __future__ import annotations

import math
import statistics
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from gridbench.placement.record import PlacementCase, PlacementTotals, ServerPolicy
from gridbench.statistics.interval import Interval

_CONFIDENCE = 0.95


@dataclass(frozen=True)
class PolicySetting:
    """A workload on a number of servers and clients, with all policies and seeds."""

    cases: Mapping[ServerPolicy, Mapping[int, PlacementCase]]
    """By policy and seed; those that count."""

    @property
    def first(self) -> PlacementCase:
        """Any of its cases."""
        return next(iter(next(iter(self.cases.values())).values()))

    @property
    def is_batch(self) -> bool:
        """Whether the total time is what counts, and not the response time."""
        return self.first.workload == "batch"

    @property
    def metric(self) -> str:
        """Subject of a comparison."""
        return "total time" if self.is_batch else "mean response"

    def value(self, case: PlacementCase) -> float:
        """Compared quantity of a run, s."""
        totals = _totals(case)
        return totals.total if self.is_batch else totals.mean

    def mean(self, policy: ServerPolicy) -> Interval:
        """The geometric mean of the metric, with the 95 % interval of seeds."""
        return geometric([self.value(one) for one in self.cases[policy].values()])

    def figure(self, policy: ServerPolicy, name: str) -> float:
        """The mean of one of the totals: `median`, `p95`, `calls`."""
        found = (getattr(_totals(one), name) for one in self.cases[policy].values())
        return statistics.fmean(found)

    def slowdown(self, policy: ServerPolicy) -> Interval | None:
        """The metric by the bound that no policy can go below."""
        return geometric(
            [self.value(one) / one.bound for one in self.cases[policy].values() if one.bound]
        )

    def per_server(self, policy: ServerPolicy, name: str) -> list[float]:
        """The mean of `utilisation` or `shares` of each server."""
        rows = [getattr(_totals(one), name) for one in self.cases[policy].values()]
        return [statistics.fmean(column) for column in zip(*rows, strict=True)]

    def ratio(self, slower: ServerPolicy, faster: ServerPolicy, tests: int = 1) -> Interval | None:
        """How many times as long one policy takes as another, by seeds that both have; with a 95 %
        interval of so many comparisons together. None without a common seed."""
        seeds = self.cases[slower].keys() & self.cases[faster].keys()
        pairs = [
            self.value(self.cases[slower][seed]) / self.value(self.cases[faster][seed])
            for seed in sorted(seeds)
        ]
        return geometric(pairs, tests) if pairs else None

    @cached_property
    def ranked(self) -> list[ServerPolicy]:
        """The policies, the fastest first."""
        return sorted(self.cases, key=lambda policy: self.mean(policy).value)

    @cached_property
    def lead(self) -> Interval | None:
        """How many times as long the next policy takes as the fastest; None: there is no other. The
        lower end is that of all others together."""
        best, *others = self.ranked
        ratios = [self.ratio(other, best, len(others)) for other in others]
        known = [one for one in ratios if one is not None]
        if not known:
            return None
        return Interval(known[0].value, min(one.low for one in known), known[0].high)

    @property
    def winner(self) -> ServerPolicy | None:
        """The policy that is faster than all others for certain; None: not decided."""
        lead = self.lead
        return self.ranked[0] if lead is not None and lead.low > 1 else None

    @property
    def alike(self) -> list[ServerPolicy]:
        """The fastest policy, and all that may be as fast."""
        best, *others = self.ranked
        ratios = [(other, self.ratio(other, best, len(others))) for other in others]
        return [best, *(other for other, one in ratios if one is None or one.low <= 1)]


def _totals(case: PlacementCase) -> PlacementTotals:
    assert case.totals is not None
    return case.totals


def geometric(values: Sequence[float], tests: int = 1) -> Interval:
    """The geometric mean, with the 95 % interval by Student's distribution of the logarithms; of
    one value the interval is unbounded. `tests`: comparisons that are to hold together."""
    logs = [math.log(value) for value in values if value > 0]
    if not logs:
        return Interval(math.nan, math.nan, math.nan)
    mean = statistics.fmean(logs)
    if len(logs) < 2:
        return Interval(math.exp(mean), 0.0, math.inf)
    from scipy.special import stdtrit

    tail = (1 - _CONFIDENCE) / 2 / max(1, tests)
    margin = float(stdtrit(len(logs) - 1, 1 - tail)) * statistics.stdev(logs) / len(logs) ** 0.5
    return Interval(math.exp(mean), math.exp(mean - margin), math.exp(mean + margin))


def settings_of(cases: Iterable[PlacementCase]) -> list[PolicySetting]:
    """All settings with the cases that count."""
    found: dict[Hashable, dict[ServerPolicy, dict[int, PlacementCase]]] = {}
    for one in cases:
        if one.totals is not None:
            policies = found.setdefault(one.key_without("policy", "seed"), {})
            policies.setdefault(one.policy, {})[one.seed] = one
    return [PolicySetting(one) for one in found.values()]

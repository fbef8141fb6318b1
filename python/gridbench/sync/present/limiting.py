"""What limited the rounds, as what looks at the hosts' counters tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from gridbench.sync.bottlenecks import Bottleneck
from gridbench.sync.record import Round

Limits = Callable[[Round], Sequence[Bottleneck]]


def remembered(limits: Limits) -> Limits:
    """The same limits, each round's looked for once, as long as its rounds are not let go."""
    known: dict[int, Sequence[Bottleneck]] = {}

    def of(one: Round) -> Sequence[Bottleneck]:
        if id(one) not in known:
            known[id(one)] = limits(one)
        return known[id(one)]

    return of


def limited_by(rounds: Iterable[Round], limits: Limits) -> list[tuple[str, int, str]]:
    """What limited these rounds, in how many of them, and a sentence of the first that has it; the
    most frequent first."""
    count: Counter[str] = Counter()
    told: dict[str, str] = {}
    for one in rounds:
        for limit in {found.what: found for found in limits(one)}.values():
            count[limit.what] += 1
            told.setdefault(limit.what, limit.told)
    return [(what, times, told[what]) for what, times in count.most_common()]

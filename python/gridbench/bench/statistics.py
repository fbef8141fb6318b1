"""Medians, how sure they are, and what can be said of two engines."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from math import comb

from gridbench.bench.series import Series
from gridbench.machine.claims import excludes_equality

_RESAMPLES = 2000
_SURE = 0.95


def interval_of_median(values: Sequence[float]) -> tuple[float, float] | None:
    """A 95 % interval of the median, from the order of the values; None for fewer than three.

    Of three to five values no two hold the median in 95 % of cases; then it is the smallest and
    the largest, which do so in 75 to 94 %.
    """
    ordered = sorted(values)
    count = len(ordered)
    if count < 3:
        return None
    # The median lies below the value of rank r in as many cases as r coins or fewer show heads.
    rank, below = 0, 0.0
    while rank < (count - 1) // 2:
        below += comb(count, rank) / 2**count
        if 2 * below > 1 - _SURE:
            break
        rank += 1
    lowest = max(0, rank - 1)
    return ordered[lowest], ordered[count - 1 - lowest]


def paired_ratios(ours: Series, theirs: Series) -> list[float]:
    """Our value by theirs for each round that both have; without a common one, of the medians."""
    ratios = ours.ratios_to(theirs).values
    if not ratios and ours.values and theirs.values and theirs.median:
        ratios = [ours.median / theirs.median]
    return ratios


def bootstrap_interval(values: Sequence[float], seed: int = 1) -> tuple[float, float] | None:
    """A 95 % interval of the median, by drawing again from the values; None for fewer than two."""
    if len(values) < 2:
        return None
    draw = random.Random(seed)
    medians = sorted(
        statistics.median(draw.choices(values, k=len(values))) for _ in range(_RESAMPLES)
    )
    tail = round(_RESAMPLES * (1 - _SURE) / 2)
    return medians[tail], medians[-1 - tail]


def noise_between(one: Series, other: Series) -> float:
    """The factor, from 1 on, between two series of what is the same engine.

    The larger of two: how far their medians are apart, and the middle one of how far the two
    values of a round are apart.
    """
    by_round = one.difference_to(other)
    if not by_round.values:
        return 1.0
    first, second = (
        statistics.median(side.by_round[number] for number in by_round.by_round)
        for side in (one, other)
    )
    return max(by_round.median, first / second, second / first)


def stands_out(ratios: Sequence[float], noise: float) -> bool:
    """Whether the ratios of undisturbed rounds say more than that the machine is noisy."""
    if not excludes_equality(ratios):
        return False
    ratio = statistics.median(ratios)
    return max(ratio, 1 / ratio) > noise

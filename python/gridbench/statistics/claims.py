"""Claims: when one is ahead of another, and when enough rounds have been run."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Literal

from gridbench.formats import amount, counted, plain
from gridbench.statistics.interval import ratio_bounds

ENOUGH = 2
"""Undisturbed rounds from which on a difference can be claimed."""
FEWEST = 3
"""Rounds below which nothing is decided: of fewer there are no bounds of 95 % confidence."""
MOST = 10
"""Rounds after which what is not decided yet stays open."""
_OF_TWO, _OF_MORE = 9.92, 4.60
"""Quantiles of Student's distribution, 99 % on both sides, for two and three rounds of each."""
ALIKE = 1.05
"""Factor within which two engines are as good as each other."""


def excludes_equality(ratios: Sequence[float]) -> bool:
    """Whether the ratios of undisturbed rounds are enough, and all on one side of 1."""
    return len(ratios) >= ENOUGH and (min(ratios) > 1 or max(ratios) < 1)


def exceeds_noise(ratios: Sequence[float], noise: float) -> bool:
    """Whether the ratios of undisturbed rounds say more than that the machine is noisy."""
    if not excludes_equality(ratios):
        return False
    ratio = statistics.median(ratios)
    return max(ratio, 1 / ratio) > noise


Decision = Literal["first", "second", "alike", "open"]
"""Which of two takes less; or neither, by a factor that matters; or that is not known."""


def decided(first: Sequence[float], second: Sequence[float], alike: float = ALIKE) -> Decision:
    """What the values of undisturbed rounds say, of two quantities where less is better.

    One is ahead if both bounds of the ratio (see `ratio_bounds`) are on one side of 1, and they are
    `apart`: of equals that are looked at after each round, one is then said to be ahead in 1 % of
    cases, and by the bounds alone in 10 to 26 %. They are
    alike if both are within the factor `alike`: a test of equivalence, so that it takes evidence to
    say so, as it takes evidence to say the contrary. One may be ahead by less than that factor.
    """
    if min(len(first), len(second)) < FEWEST or not min(*first, *second) > 0:
        return "open"
    bounds = ratio_bounds(first, second)
    if bounds is None:
        return "open"
    low, high = bounds
    if (high < 1 or low > 1) and apart(first, second):
        return "first" if high < 1 else "second"
    return "alike" if 1 / alike <= low and high <= alike else "open"


def apart(first: Sequence[float], second: Sequence[float]) -> bool:
    """Whether the means of the logarithms are so many standard errors apart as those of equals are
    in a hundredth of cases, for as many rounds as there are. Never for a single round."""
    few = min(len(first), len(second))
    if few < 2 or not min(*first, *second) > 0:
        return False
    logs = [[math.log(value) for value in values] for values in (first, second)]
    error = math.sqrt(sum(statistics.variance(own) / len(own) for own in logs))
    distance = abs(statistics.fmean(logs[0]) - statistics.fmean(logs[1]))
    return distance > (_OF_TWO if few == 2 else _OF_MORE) * error


def settled(values: Sequence[float], within: float = ALIKE) -> bool:
    """Whether the values of undisturbed rounds tell a median well: there are enough of them, and
    none is further from it than by the factor `within`."""
    if len(values) < FEWEST or not min(values) > 0:
        return False
    middle = statistics.median(values)
    return max(values) <= middle * within and min(values) >= middle / within


def undecided(values: Mapping[str, Sequence[float]], alike: float = ALIKE) -> list[str]:
    """The names whose rounds would have to continue, until it is known which of them takes least.

    Of a single one: until its median is settled. Of several: the one with the least median, and all
    others that it may not be ahead of. Nothing if all is decided.
    """
    known = {name: own for name, own in values.items() if own}
    few = [name for name, own in values.items() if len(own) < FEWEST]
    if few:
        return few
    if len(known) == 1:
        return [name for name, own in known.items() if not settled(own, alike)]
    best = min(known, key=lambda name: statistics.median(known[name]))
    rivals = [
        name
        for name, own in known.items()
        if name != best and decided(known[best], own, alike) == "open"
    ]
    return [best, *rivals] if rivals else []


# ---- Provisional answers

PROVISIONAL = "Provisional"


def provisional(indication: str, why: str) -> str:
    """`Provisional: ray 1.1 s, loky 2.2 s (2 times); the machine was busy in 3 of 3 rounds.`"""
    return f"{PROVISIONAL}: {indication.removesuffix('.')}; {why.removesuffix('.')}."


def is_provisional(answer: str) -> bool:
    """Whether a sentence is a provisional answer."""
    return answer.startswith(f"{PROVISIONAL}:")


def answer_record(answer: str) -> dict[str, object]:
    """The answer of a command as its JSON has it."""
    return {"verdict": answer, "provisional": is_provisional(answer)}


def marked(sentences: Sequence[str], why: str) -> list[str]:
    """The same sentences as one provisional answer; nothing if there are none."""
    return [provisional(sentences[0], why), *sentences[1:]] if sentences else []


def in_order(seconds: Mapping[str, float]) -> str:
    """Names with their times, the shortest first, each with how many times the first it takes."""
    names = sorted(seconds, key=lambda name: seconds[name])
    least = seconds[names[0]]
    parts = [f"{names[0]} {amount(least, 's')}"]
    for name in names[1:]:
        ratio = f" ({plain(seconds[name] / least)} times)" if least > 0 else ""
        parts.append(f"{name} {amount(seconds[name], 's')}{ratio}")
    return ", ".join(parts)


def busy_in(disturbed: int, of: int, noun: str) -> str:
    """The reason when other programs disturb: `the machine was busy in 2 of 3 rounds`."""
    return f"the machine was busy in {disturbed:,} of {counted(of, noun)}"

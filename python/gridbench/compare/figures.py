"""Figures of each command, the ratio of each to the fastest, and the answer."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from gridbench.compare.record import Command, Execution
from gridbench.machine.judgement import disturbed
from gridbench.statistics.claims import ALIKE, FEWEST, apart
from gridbench.statistics.interval import interval_of_median, ratio_bounds
from gridbench.statistics.series import Series, noise_between

Relation = Literal["slower", "no difference", "open"]
"""Relation of a command to the fastest one."""


@dataclass(frozen=True, slots=True)
class CommandFigures:
    """One or more runs of a command."""

    command: Command
    runs: tuple[Execution, ...]

    @property
    def wall(self) -> float:
        """Median wall time."""
        return self.median(lambda run: run.wall)

    @property
    def bounds(self) -> tuple[float, float]:
        """95 % interval of the median wall time; of fewer than three runs the extremes."""
        walls = [run.wall for run in self.runs]
        return interval_of_median(walls) or (min(walls), max(walls))

    def median(self, of: Callable[[Execution], float]) -> float:
        """The median of a figure over its runs."""
        return statistics.median(map(of, self.runs))

    @property
    def failures(self) -> int:
        """Runs with an exit status other than 0, which was ignored."""
        return sum(run.exit_status != 0 for run in self.runs)


@dataclass(frozen=True, slots=True)
class RelativeTime:
    """The time of a command by that of the fastest one."""

    figures: CommandFigures
    ratio: float
    """Median over the rounds."""
    low: float
    """95 % interval, up to `high`."""
    high: float
    relation: Relation

    @property
    def difference(self) -> float:
        """The largest difference that the interval allows, as a share."""
        return max(self.high - 1, 1 / self.low - 1)


@dataclass(frozen=True, slots=True)
class CommandComparison:
    """What the rounds show."""

    fastest: CommandFigures
    others: tuple[RelativeTime, ...]
    """From the fastest to the slowest."""
    rounds: int
    """Rounds that the figures are based on."""
    measured: int
    """All rounds, disturbed ones included."""
    disturbed: int
    """Rounds that other programs disturbed."""
    noise: float | None
    """Factor between two series of the same command; None: no A/A check."""

    @property
    def provisional(self) -> bool:
        """Whether too few rounds were undisturbed for a claim."""
        return self.measured - self.disturbed < FEWEST

    @property
    def all(self) -> tuple[CommandFigures, ...]:
        """The figures of all commands, the fastest first."""
        return self.fastest, *(one.figures for one in self.others)


def compare_commands(
    commands: Sequence[Command], runs: Sequence[Execution]
) -> CommandComparison | None:
    """The comparison over all complete rounds; None without any. If enough rounds are undisturbed,
    it uses only these."""
    rounds = complete_rounds(commands, runs)
    if not rounds:
        return None
    sound = {number for number, own in rounds.items() if not any(map(disturbed, own.values()))}
    chosen = sorted(sound if len(sound) >= FEWEST else rounds)
    figures = [
        CommandFigures(one, tuple(rounds[number][one.name] for number in chosen))
        for one in commands
    ]
    figures.sort(key=lambda one: one.wall)
    fastest, *rest = figures
    noise = noise_of(runs)
    return CommandComparison(
        fastest,
        tuple(_slower(fastest, one, noise or 1.0) for one in rest),
        len(chosen),
        len(rounds),
        len(rounds) - len(sound),
        noise,
    )


def noise_of(runs: Sequence[Execution]) -> float | None:
    """The factor between two series of the same command, from the A/A check; None without one."""
    first, second = (
        Series({run.round: run.wall for run in runs if run.phase == "control" and run.twin is twin})
        for twin in (False, True)
    )
    return noise_between(first, second) if first.by_round and second.by_round else None


def precise(answer: CommandComparison | None, *, within: float = ALIKE) -> bool:
    """Whether undisturbed rounds give each ratio within a factor. Stopping then does not favour one
    answer, unlike stopping at the first difference."""
    return (
        answer is not None
        and not answer.provisional
        and all(one.high / one.low <= within for one in answer.others)
    )


def complete_rounds(
    commands: Sequence[Command], runs: Sequence[Execution]
) -> dict[int, dict[str, Execution]]:
    """The rounds of the comparison that have all commands, by number."""
    found: dict[int, dict[str, Execution]] = {}
    for run in runs:
        if run.phase == "compare" and run.wall > 0:
            found.setdefault(run.round, {})[run.command] = run
    names = {one.name for one in commands}
    return {number: own for number, own in found.items() if own.keys() >= names}


def _slower(fastest: CommandFigures, other: CommandFigures, noise: float) -> RelativeTime:
    ratios = [one.wall / best.wall for best, one in zip(fastest.runs, other.runs, strict=True)]
    ratio = statistics.median(ratios)
    low, high = interval_of_median(ratios) or (min(ratios), max(ratios))
    walls = [[run.wall for run in one.runs] for one in (fastest, other)]
    unpaired = ratio_bounds(walls[1], walls[0])
    certain = (
        len(ratios) >= FEWEST
        and low > 1
        and ratio > noise
        and (apart(walls[0], walls[1]) or (unpaired is not None and unpaired[0] > 1))
    )
    limit = max(ALIKE, noise)
    relation: Relation = "open"
    if certain:
        relation = "slower"
    elif len(ratios) >= FEWEST and max(high, 1 / low if low > 0 else math.inf) <= limit:
        relation = "no difference"
    return RelativeTime(other, ratio, low, high, relation)

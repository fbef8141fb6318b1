"""What came of running splits of a work: the advised one beside others, and how good it is."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gridbench.formats import counted, duration, fixed, percent
from gridbench.machine.judgement import disturbed_count, sentence
from gridbench.statistics.claims import busy_in, marked
from gridbench.statistics.interval import ratio_bounds

CLOSE = 1.05
"""Times the best of the others that the advised split may take."""

Verdict = Literal["yes", "not proved", "no"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedSplit:
    """A split that was run. Times are in seconds."""

    tasks: int
    cores: int
    advised: bool
    expected: float
    """Total, by the model."""
    totals: tuple[float, ...]
    """Of each run, in the order of rounds; at least one."""
    again: tuple[float, ...] = ()
    """Of more runs, made when it had turned out to be one of the two to compare."""

    @property
    def median(self) -> float:
        """Of what counts."""
        return statistics.median(self.compared)

    @property
    def smallest(self) -> float:
        """Of what counts."""
        return min(self.compared)

    @property
    def largest(self) -> float:
        """Of what counts."""
        return max(self.compared)

    @property
    def difference(self) -> float:
        """Of what was measured to what was expected, as share of that."""
        return self.median / self.expected - 1

    @property
    def compared(self) -> tuple[float, ...]:
        """Totals that count, in the table as in the verdict. The smallest of many medians favours
        lucky splits; more runs correct that."""
        return self.again or self.totals


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A split that was not run, or that has a failed run."""

    tasks: int
    cores: int
    advised: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """All of them."""

    rounds: int
    seed: int
    """Of the order of the runs."""
    tried: tuple[TriedSplit, ...]
    """By number of tasks, then of cores."""
    left_out: tuple[LeftOut, ...] = ()
    """Splits without any run that counts."""
    failed: tuple[LeftOut, ...] = ()
    """Splits with a failed run; with others that count, they are among `tried` as well."""
    runs: int = 0
    """That did not fail."""
    disturbed: int = 0
    """Of these, by other programs."""
    accepted: bool = False
    """Disturbed runs count, and so nothing is claimed."""
    model_host: str = ""
    """The machine that the model is of, if it is another."""

    @property
    def advised(self) -> TriedSplit | None:
        """None: it could not be run."""
        return next((one for one in self.tried if one.advised), None)

    @property
    def rival(self) -> TriedSplit | None:
        """Of the other splits the one whose totals have the smallest median."""
        return min(
            (one for one in self.tried if not one.advised),
            key=lambda one: statistics.median(one.totals),
            default=None,
        )

    @property
    def best(self) -> float | None:
        """The smallest median of all."""
        return min((one.median for one in self.tried), default=None)

    @property
    def ratio(self) -> float | None:
        """How many times as long as its rival the advised one took; None without one of them."""
        advised, rival = self.advised, self.rival
        if advised is None or rival is None:
            return None
        return advised.median / rival.median

    @property
    def noise(self) -> float | None:
        """From the smallest to the largest run of one split, as share of the median: the larger of
        the two that the ratio is of. None if one of them was run only once."""
        advised, rival = self.advised, self.rival
        if advised is None or rival is None:
            return None
        if min(len(advised.compared), len(rival.compared)) < 2:
            return None
        return max(_spread(advised.compared), _spread(rival.compared))

    @property
    def claims(self) -> bool:
        """Whether the conclusions are complete in spite of other programs."""
        return not self.disturbed or self.close is not None

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Of the ratio: each holds with 95 % confidence. None if there are too few runs."""
        advised, rival = self.advised, self.rival
        if advised is None or rival is None:
            return None
        return ratio_bounds(advised.compared, rival.compared)

    @property
    def close(self) -> Verdict | None:
        """Whether the advised split is at most 5 % behind its rival: a test of non-inferiority.
        "yes" if the upper bound of the ratio is no more than that, "no" if the lower is more.
        None if there are too few runs that nothing disturbed: three of each do."""
        bounds = self.bounds
        if bounds is None or (self.accepted and self.disturbed):
            return None
        if bounds[1] <= CLOSE:
            return "yes"
        return "no" if bounds[0] > CLOSE else "not proved"

    def contradicts(self, low: float, high: float) -> bool:
        """Whether the advised split certainly takes less or more than an interval says, in seconds:
        all of its undisturbed runs lie outside of it, on the same side, and there are at least
        three."""
        if self.advised is None or (self.accepted and self.disturbed):
            return False
        totals = (*self.advised.totals, *self.advised.again)
        return len(totals) >= 3 and (max(totals) < low or min(totals) > high)


def _spread(totals: Sequence[float]) -> float:
    return (max(totals) - min(totals)) / statistics.median(totals)


def trial_sentences(trial: Trial) -> list[str]:
    """How good the advised split is among those that were run; and how sure that is. A provisional
    answer if other programs disturbed too many runs."""
    reported = _compared(trial)
    if trial.claims or not trial.disturbed:
        return reported
    return marked(reported, busy_in(trial.disturbed, trial.runs, "run"))


def _compared(trial: Trial) -> list[str]:
    advised, rival, ratio = trial.advised, trial.rival, trial.ratio
    if advised is None:
        why = next((one.reason for one in trial.left_out if one.advised), "no run of it counts")
        return [f"The advised split could not be tried: {why}."]
    took = f"The advised {split_text(advised)} took {duration(advised.median)}"
    if rival is None or ratio is None:
        return [f"{took}; no other split was tried."]
    best = "the best of the others"
    if rival.again and trial.best is not None and trial.best < min(advised.median, rival.median):
        best += " in the first runs"
    return [
        f"{took}, {fixed(ratio, 2)} times as long as {best}, {split_text(rival)} with"
        f" {duration(rival.median)}.",
        *_noise(trial, advised),
    ]


def trial_warnings(trial: Trial) -> list[str]:
    """Warnings about the comparison."""
    counted_too = {(one.tasks, one.cores) for one in trial.tried}
    found = [
        f"A run of {split_text(one)} failed, and no more were made: {one.reason}."
        for one in trial.failed
        if (one.tasks, one.cores) in counted_too
    ]
    if trial.model_host:
        found.append(f"The model is of another machine, {trial.model_host}: so is what it expects.")
    if trial.disturbed:
        count = disturbed_count(trial.disturbed, trial.runs, "runs")
        found.append(sentence(count))
    return found


def left_out(trial: Trial) -> list[str]:
    """The splits that were not tried, each with the reason."""
    return [f"{split_text(one)}: {one.reason}" for one in trial.left_out]


def split_text(one: TriedSplit | LeftOut) -> str:
    """In words."""
    return f"{counted(one.tasks, 'task')} on {counted(one.cores, 'core')}"


def _noise(trial: Trial, advised: TriedSplit) -> list[str]:
    noise, close, bounds = trial.noise, trial.close, trial.bounds
    if noise is None:
        return ["Each was run only once: how far runs of the same split differ is not known."]
    if trial.accepted and trial.disturbed:  # the warnings say so
        return []
    more = f"Their figures are of {len(advised.again)} more runs of each. " if advised.again else ""
    differ = f"{more}Runs of the same split differ by up to {percent(noise, 0)}"
    if bounds is None or close is None:
        return [f"{differ}, and two runs of each are too few for a verdict: give --rounds 3."]
    low, high = bounds
    within = percent(CLOSE - 1, 0)
    verdict = {
        "yes": f"the advice is within {within} of the best",
        "not proved": f"whether the advice is within {within} of the best is not proved",
        "no": f"the advice is more than {within} off the best",
    }
    return [f"{differ}; the ratio is from {fixed(low, 2)} to {fixed(high, 2)}: {verdict[close]}."]

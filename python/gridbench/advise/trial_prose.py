"""What came of trying splits, in sentences and rows."""

from __future__ import annotations

from gridbench.advise.trial import CLOSE, LeftOut, Trial, Tried
from gridbench.report.text import NOTHING, counted, duration, percent
from gridbench.scenario.one import OVERLOADED

HEAD = ("tasks", "cores", "expected", "measured", "from", "to", "off by", "ratio")
"""Of the columns of `row`: medians, smallest and largest total, ratio to the best."""


def row(trial: Trial, one: Tried) -> list[str]:
    """A split as cells."""
    best = trial.best
    return [
        f"{one.tasks:,}",
        f"{one.cores:,}",
        duration(one.expected),
        duration(one.median),
        duration(one.smallest),
        duration(one.largest),
        f"{one.difference * 100:+.1f} %",
        f"{one.median / best.median:.2f}" if best else NOTHING,
    ]


def trial_sentences(trial: Trial) -> list[str]:
    """How good the advised split is among those that were run; and how sure that is."""
    advised, best, ratio = trial.advised, trial.best, trial.ratio
    if advised is None or best is None or ratio is None:
        why = next((one.reason for one in trial.left_out if one.advised), "no run of it counts")
        return [f"The advised split could not be tried: {why}."]
    took = f"The advised {_split(advised)} took {duration(advised.median)}"
    others = [one for one in trial.tried if one is not advised]
    if not others:
        return [f"{took}; no other split was tried."]
    if best is advised:
        second = min(others, key=lambda one: one.median)
        return [
            f"{took}, the shortest of all that were tried; next {_come(second)} {_split(second)}"
            f" with {duration(second.median)}, {second.median / advised.median:.2f} times as long.",
            *_noise(trial),
        ]
    return [
        f"{took}, {ratio:.2f} times the best that was tried, {_split(best)} with"
        f" {duration(best.median)}.",
        *_noise(trial),
    ]


def trial_warnings(trial: Trial) -> list[str]:
    """What must be known before the comparison is trusted."""
    found = [f"A run failed, and its split was not run again: {text}." for text in trial.failed]
    if trial.others > OVERLOADED:
        found.append(
            f"Other programs used up to {percent(trial.others)} of the processors meanwhile:"
            " differences may be theirs."
        )
    return found


def left_out(trial: Trial) -> list[str]:
    """The splits that were not tried, each with the reason."""
    return [f"{_split(one)}: {one.reason}" for one in trial.left_out]


def _noise(trial: Trial) -> list[str]:
    noise, close = trial.noise, trial.close
    if noise is None or close is None:
        return ["Each was run only once: how far runs of the same split differ is not known."]
    within = percent(CLOSE - 1)
    verdict = {
        "yes": f"and the advice is within {within} of the best",
        "within the noise": "so that these two cannot be told apart",
        "no": f"and the advice is more than {within} off the best",
    }
    return [f"Runs of the same split differ by up to {percent(noise)}, {verdict[close]}."]


def _split(one: Tried | LeftOut) -> str:
    return f"{counted(one.tasks, 'task')} on {counted(one.cores, 'core')}"


def _come(one: Tried) -> str:
    return "comes" if one.tasks == 1 else "come"

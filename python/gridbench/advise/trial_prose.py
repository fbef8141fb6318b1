"""What came of trying splits, in sentences and rows."""

from __future__ import annotations

from gridbench.advise.trial import CLOSE, LeftOut, Trial, TriedSplit
from gridbench.formats import NOTHING, counted, duration, fixed, percent, signed_percent
from gridbench.machine.words import disturbed_count, sentence
from gridbench.provisional import busy_in, marked

HEAD = ("tasks", "cores", "expected", "measured", "from", "to", "off by", "ratio")
"""Of the columns of `row`: medians, smallest and largest total, ratio to the best."""


def row(trial: Trial, one: TriedSplit) -> list[str]:
    """A split as cells."""
    return [
        f"{one.tasks:,}",
        f"{one.cores:,}",
        duration(one.expected),
        duration(one.median),
        duration(one.smallest),
        duration(one.largest),
        signed_percent(one.difference),
        fixed(one.median / trial.best, 2) if trial.best else NOTHING,
    ]


def trial_sentences(trial: Trial) -> list[str]:
    """How good the advised split is among those that were run; and how sure that is. A provisional
    answer if other programs disturbed too many runs."""
    told = _compared(trial)
    if trial.claims or not trial.disturbed:
        return told
    return marked(told, busy_in(trial.disturbed, trial.runs, "run"))


def _compared(trial: Trial) -> list[str]:
    advised, rival, ratio = trial.advised, trial.rival, trial.ratio
    if advised is None:
        why = next((one.reason for one in trial.left_out if one.advised), "no run of it counts")
        return [f"The advised split could not be tried: {why}."]
    took = f"The advised {split_told(advised)} took {duration(advised.median)}"
    if rival is None or ratio is None:
        return [f"{took}; no other split was tried."]
    best = "the best of the others"
    if rival.again and trial.best is not None and trial.best < min(advised.median, rival.median):
        best += " in the first runs"
    return [
        f"{took}, {fixed(ratio, 2)} times {best}, {split_told(rival)} with"
        f" {duration(rival.median)}.",
        *_noise(trial, advised),
    ]


def trial_warnings(trial: Trial) -> list[str]:
    """What must be known before the comparison is trusted."""
    counted_too = {(one.tasks, one.cores) for one in trial.tried}
    found = [
        f"A run of {split_told(one)} failed, and no more were made: {one.reason}."
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
    return [f"{split_told(one)}: {one.reason}" for one in trial.left_out]


def split_told(one: TriedSplit | LeftOut) -> str:
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

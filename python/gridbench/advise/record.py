"""The advice, and what came of trying it, for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from gridbench.advise.advice import Advice, LimitsMap
from gridbench.advise.profiled import Profiled
from gridbench.advise.prose import sentences, undetermined, warnings
from gridbench.advise.trial import Trial, TriedSplit
from gridbench.advise.trial_prose import trial_sentences, trial_warnings
from gridbench.advise.uneven import Recorded
from gridbench.advise.work import DivisibleWork
from gridbench.provisional import answer_record


def to_record(
    advice: Advice, trial: Trial | None = None, maps: Sequence[LimitsMap] = ()
) -> dict[str, Any]:
    """All of it; `tried` is None if nothing was."""
    told = sentences(advice)
    return {
        "engine": advice.model.name,
        "work": _work(advice.work),
        "advised": asdict(advice.split),
        "expected": asdict(advice.expected),
        "within": asdict(advice.within) if advice.within else None,
        "origin": advice.origin or None,
        "parts": dict(advice.parts),
        "limits": advice.limit[0],
        "points": [{"tasks": one.tasks} | asdict(one.prediction) for one in advice.points],
        "helps": [asdict(one) for one in advice.helps],
        "sharing": asdict(advice.sharing) if advice.sharing else None,
        "from_where": asdict(advice.from_where) if advice.from_where else None,
        **answer_record(told[0]),
        "sentences": told,
        "warnings": warnings(advice),
        "undetermined": (
            [] if isinstance(advice.model, Profiled) else undetermined(advice.model.fit)
        ),
        "maps": [one.to_dict() for one in maps],
        "tried": None if trial is None else trial_record(trial),
    }


def _work(work: DivisibleWork) -> dict[str, Any]:
    """Without the time of each task of a log."""
    found = asdict(work)
    if isinstance(work.uneven, Recorded):
        del found["uneven"]["done"]
    return found


def trial_record(trial: Trial) -> dict[str, Any]:
    """Every run's total, in seconds, and what follows from them."""
    return {
        "rounds": trial.rounds,
        "seed": trial.seed,
        "splits": [_split(one) for one in trial.tried],
        "left_out": [asdict(one) for one in trial.left_out],
        "failed": [asdict(one) for one in trial.failed],
        "runs": trial.runs,
        "disturbed": trial.disturbed,
        "model_host": trial.model_host or None,
        "advised": None if trial.advised is None else _split(trial.advised),
        "rival": None if trial.rival is None else _split(trial.rival),
        "ratio": trial.ratio,
        "ratio_bounds": trial.bounds,
        "noise": trial.noise,
        "close": trial.close,
        "sentences": trial_sentences(trial),
        "warnings": trial_warnings(trial),
    }


def _split(one: TriedSplit) -> dict[str, Any]:
    names = ("median", "smallest", "largest", "difference")
    return asdict(one) | {name: getattr(one, name) for name in names}

"""Which run comes next in a calibration, and when there have been enough."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from gridbench.advise.cases import calibrating, first_cases
from gridbench.advise.expected import total_of
from gridbench.advise.search import Split, best_split
from gridbench.advise.work import Work
from gridbench.errors import InputError
from gridbench.model.model import PipelineModel, model_of
from gridbench.model.observation import Observation, Situation
from gridbench.model.terms import Shape
from gridbench.scenario.grids import ScenarioCase

_AT_ONCE = 3
"""Runs between two looks at the answer."""
_REGRET = 1.03
"""Times the best total that the answer of before may take, and still be as good."""
_SAME_TOTAL = 0.1
"""Of the logarithm of its total: that may change by so much, and still be the same."""
_NOISE = 0.1
"""Of a run's overhead, as logarithm: what runs of the same case differ by."""
_LARGER = 2.0
"""Times the largest data that was measured, up to which it takes as long for each byte."""


class Search:
    """Cases that are still to be run, and what is known already.

    First come those without which there is no model. From then on the next is the one that tells
    most about the totals of the advised split and of its neighbours, by the model so far. When
    some more runs have changed neither the advice nor its expected total, it is the answer.
    """

    def __init__(
        self, work: Work, known: Sequence[Observation], workers: int | None = None
    ) -> None:
        """`workers`: no run can have more; None: any number."""
        self.known = list(known)
        """Runs that count; those of the cases that `next` gives are to be added."""
        self._work = work
        done = {_key(one.situation) for one in known}
        every = calibrating(work, workers)
        self.left = [one for one in every if _key(_situation(one, work)) not in done]
        """Cases that may be run."""
        firsts = set(first_cases(work, workers))
        self._first = [one for one in self.left if one in firsts]
        self._chosen: list[ScenarioCase] = []
        self._answer: Split | None = None
        self._shape: Shape | None = None
        """How the engine works, by the first model: trying all takes longer than a run."""
        self.values: Mapping[str, float] = {}
        """Of the terms, by the last model, where the next search begins; empty: there is none."""

    def next(self) -> ScenarioCase | None:
        """The next case to be run; None: there have been enough, or there are no more."""
        queue = self._first or self._chosen
        if not queue and self.left:
            queue = self._chosen = self._choose()
        if not queue:
            return None
        case = queue.pop(0)
        self.left.remove(case)
        return case

    def _choose(self) -> list[ScenarioCase]:
        """The next few; none if the last ones have not changed the answer."""
        try:
            model = model_of(
                self.known, test=False, shape=self._shape, few=True, starts=0, begin=self.values
            )
        except InputError:  # of so many runs that have failed, or were disturbed
            return self.left[:_AT_ONCE]
        self._shape, self.values = model.fit.shape, model.fit.values
        before, self._answer = self._answer, best_split(model, self._work)
        if before is not None and _as_good(model, self._work, before, self._answer):
            return []
        return most_telling(model, self._work, self._answer, self.left)[:_AT_ONCE]


def _as_good(model: PipelineModel, work: Work, before: Split, now: Split) -> bool:
    """Whether the answer of before still holds."""
    total = total_of(model, work, before.tasks, before.cores)
    return total <= now.total * _REGRET and abs(math.log(total / before.total)) <= _SAME_TOTAL


def most_telling(
    model: PipelineModel, work: Work, answer: Split, cases: Sequence[ScenarioCase]
) -> list[ScenarioCase]:
    """The cases, first those whose run would narrow most what is not known of the answer.

    That is the logarithm of the overhead of the advised split, and of splits around it. Of each
    the variance that a run takes away is the square of its covariance with that of the run, by the
    variance of the run.
    """
    around = {
        (answer.tasks, answer.cores),
        (min(2 * answer.tasks, max(work.most_tasks, answer.tasks)), answer.cores),
        (answer.tasks, max(1, answer.cores // 2)),
    }
    wanted = [model.slopes(work.divided(*split)) for split in sorted(around)]
    unsure = np.array(wanted) @ model.fit.covariance

    def gain(case: ScenarioCase) -> float:
        slopes = model.slopes(_situation(case, work))
        own = float(slopes @ model.fit.covariance @ slopes)
        return float(((unsure @ slopes) ** 2).sum()) / (own + _NOISE**2)

    return sorted(cases, key=gain, reverse=True)


def covers(model: PipelineModel, work: Work) -> bool:
    """Whether a model is of runs like those that would be made for the work."""
    measured = model.measured
    if ("warm" if work.warm else "cold") not in measured.starts:
        return False
    cases = [_situation(case, work) for case in calibrating(work)]
    sizes = (
        (measured.bytes_in, max(one.bytes_in for one in cases)),
        (measured.bytes_shared, max(one.bytes_shared for one in cases)),
        (measured.bytes_out, max(one.bytes_out for one in cases)),
    )
    most = max(one.cores for one in cases)
    return (
        measured.cores.low <= most
        and measured.cores.holds(most)
        and all(largest <= span.high * _LARGER for span, largest in sizes)
    )


def _situation(case: ScenarioCase, work: Work) -> Situation:
    return Situation(
        cores=case.cores,
        sleep=np.full(case.tasks, case.sleep),
        bytes_in=case.bytes_in,
        bytes_shared=case.bytes_shared,
        bytes_out=case.bytes_out,
        warm=work.warm,
    )


def _key(situation: Situation) -> tuple[object, ...]:
    sizes = (situation.bytes_in, situation.bytes_shared, situation.bytes_out)
    return (situation.cores, situation.tasks, float(situation.sleep.max()), *sizes, situation.warm)

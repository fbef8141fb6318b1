"""A system that `gridbench simulate` knows, as what advice is made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gridbench.analysis.columns import Floats
from gridbench.model.model import TotalPrediction
from gridbench.model.observation import Situation
from gridbench.model.pipeline import (
    Link,
    Manager,
    MessageCost,
    PipelineCase,
    PipelineParameters,
    figures,
)
from gridbench.simulate.simulation import SimulatedWorkload, case_of, cautions_for, total_of
from gridbench.simulate.systems import System

_START, _SHARED, _IN, _OUT, _HANDLING = "start.all", "shared.all", "in.all", "out.all", "submit"
_LINKS = "way"


@dataclass(frozen=True, slots=True)
class Profiled:
    """The system. A profile has parameters, and no runs that tell how unsure they are."""

    system: System

    @property
    def name(self) -> str:
        """Of the system."""
        return self.system.name

    @property
    def linked(self) -> bool:
        """Whether the workers are behind links."""
        return not self.system.one_host

    @property
    def values(self) -> Mapping[str, float]:
        """What costs time, each as a factor of what the profile says."""
        found = dict.fromkeys((_START, _SHARED, _IN, _OUT, _HANDLING), 1.0)
        return found | {_LINKS: 1.0} if self.linked else found

    def totals(
        self, situations: Sequence[Situation], changed: Mapping[str, float] | None = None
    ) -> Floats:
        """Seconds that each takes, with some of the factors changed, shape (situations,)."""
        factors = dict(self.values) | dict(changed or {})
        system = _changed(self.system, factors)
        cases = [_case(one, system, factors) for one in situations]
        systems = [_started(one, system) for one in situations]
        if system.throttling is None:
            jobs = [(case, own.parameters) for case, own in zip(cases, systems, strict=True)]
            return figures(jobs)[:, 0]
        return np.array([total_of(*one) for one in zip(cases, systems, strict=True)])

    def predict(self, situation: Situation) -> TotalPrediction:
        """What one takes: without an interval."""
        total = float(self.totals([situation])[0])
        return TotalPrediction(
            total=total,
            low=total,
            high=total,
            ideal=situation.ideal,
            extrapolated=self.outside(situation),
        )

    def unsure(self, _: Situation) -> float:
        """A profile does not tell."""
        return 0.0

    def outside(self, situation: Situation) -> tuple[str, ...]:
        """Whether it has more cores than any run that the profile is from."""
        most = self.system.measured_cores
        if most is None or situation.cores <= most:
            return ()
        return (f"the profile is from runs with at most {most:,} cores, and this has more",)

    def cautions(self, situation: Situation) -> tuple[str, ...]:
        """Whether the system's manager throttles in it, or comes near to that: as sentences."""
        system = _started(situation, self.system)
        return cautions_for(_case(situation, system, self.values), system)


def _case(situation: Situation, system: System, factors: Mapping[str, float]) -> PipelineCase:
    work = SimulatedWorkload(
        cores=situation.cores,
        tasks=situation.tasks,
        sleep=0.0,  # The times are given, and may be longer than those that `simulate` takes.
        bytes_in=situation.bytes_in * factors[_IN],
        bytes_shared=situation.bytes_shared * factors[_SHARED],
        bytes_out=situation.bytes_out * factors[_OUT],
    )
    case = case_of(work, system, 0.0 if situation.warm else None, situation.sleep)
    return replace(case, ready=case.ready * factors[_START])


def _started(situation: Situation, system: System) -> System:
    """Without what starts workers, if they run already."""
    if not situation.warm or system.parameters.start is None:
        return system
    return replace(system, parameters=replace(system.parameters, start=None))


def _changed(system: System, factors: Mapping[str, float]) -> System:
    known = _handled(system.parameters, factors[_HANDLING])
    if start := known.start:
        factor = factors[_START]
        start = replace(
            start,
            constant=start.constant * factor,
            prepare=start.prepare * factor,
            serial=start.serial * factor,
            parallel=start.parallel * factor,
            adopt=start.adopt * factor,
        )
        known = replace(known, start=start)
    system = replace(system, parameters=known)
    return system.on_link(system.link / factors[_LINKS]) if _LINKS in factors else system


def _handled(known: PipelineParameters, factor: float) -> PipelineParameters:
    """With so many times the cost of each task and message, besides its bytes."""

    def link(one: Link) -> Link:
        return replace(one, per_message=one.per_message * factor)

    def effort(one: MessageCost) -> MessageCost:
        return replace(one, fixed=one.fixed * factor)

    manager = known.manager
    return replace(
        known,
        manager=manager and Manager(inward=link(manager.inward), outward=link(manager.outward)),
        to_workers=link(known.to_workers),
        from_workers=link(known.from_workers),
        submit_cost=known.submit_cost * factor,
        retrieve_cost=known.retrieve_cost * factor,
        start_latency=known.start_latency * factor,
        return_latency=known.return_latency * factor,
        take=effort(known.take),
        make=effort(known.make),
    )

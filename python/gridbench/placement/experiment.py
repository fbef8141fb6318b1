"""Simulated placement as an `Experiment`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from gridbench.experiment import Bench, Experiment
from gridbench.placement.options import PlacementParameters
from gridbench.placement.record import FORM, PlacementCase, PlannedPlacementCase
from gridbench.placement.result_kind import SIMULATED
from gridbench.placement.scenario import OPEN_WORKLOADS, PlacementScenario
from gridbench.placement.simulation import (
    PlannedCalls,
    best_assignment,
    mean_bound,
    planned_calls,
    simulate,
    total_bound,
)


class SimulatedPlacement(Experiment[PlannedPlacementCase, PlacementCase]):
    """All cases of a scenario, with all policies and seeds."""

    kind = SIMULATED
    form = FORM
    name = "placement"
    needs_quiet = False

    def __init__(self, parameters: PlacementParameters) -> None:
        """InputError for what cannot be simulated."""
        self.parameters = parameters
        self.seed = parameters.seed
        self._base = parameters.base()
        self._scenarios = {setting_of(one): one for one in parameters.cases()}
        self._plan: tuple[tuple[object, ...], PlannedCalls] | None = None
        self._bound: tuple[tuple[object, ...], float, bool] | None = None

    def record(self) -> dict[str, Any]:
        """The scenario."""
        return self._base.described()

    def batches(
        self, bench: Bench, records: Sequence[PlacementCase]
    ) -> Iterator[Sequence[PlannedPlacementCase]]:
        """All policies of a seed one after the other, as they have the same calls."""
        del bench, records
        own = self.parameters
        yield [
            PlannedPlacementCase(**dict(setting), policy=policy, seed=seed)
            for setting in self._scenarios
            for seed in range(own.seed, own.seed + own.seeds)
            for policy in own.policies
        ]

    def run(self, case: PlannedPlacementCase, bench: Bench) -> PlacementCase:
        """Simulate a case."""
        scenario = self._scenarios[setting_of_case(case)]

        def watch(*_: object) -> None:
            bench.interrupt.check()
            if bench.steps is not None:
                bench.steps.glance()

        plan = self._planned(scenario, case)
        began = time.monotonic()
        run = simulate(scenario, case.policy, case.seed, plan=plan, watch=watch)
        took = time.monotonic() - began
        if case.workload == "batch":
            bound, best = self._batch_bound(scenario, case, plan, watch)
        else:
            bound, best = mean_bound(scenario, run.calls), False
        return case.recorded_as(
            PlacementCase,
            status="done",
            totals=run.totals,
            bound=bound,
            best=best,
            seconds=round(took, 4),
        )

    def outcome(self, record: PlacementCase) -> str:
        """Nothing: the table has it."""
        del record
        return ""

    def _planned(self, scenario: PlacementScenario, case: PlannedPlacementCase) -> PlannedCalls:
        """The calls, which do not depend on the policy."""
        key = case.key_without("policy", "interval")
        if self._plan is None or self._plan[0] != key:
            self._plan = key, planned_calls(scenario, case.seed)
        return self._plan[1]

    def _batch_bound(
        self,
        scenario: PlacementScenario,
        case: PlannedPlacementCase,
        plan: PlannedCalls,
        watch: Any,
    ) -> tuple[float, bool]:
        """The best total time of a batch that was found, or a bound of it."""
        key = case.key_without("policy", "interval")
        if self._bound is None or self._bound[0] != key:
            found = best_assignment(scenario, plan, watch)
            bound = total_bound(scenario, plan) if found is None else found.total
            self._bound = key, bound, found is not None
        return self._bound[1:]


def setting_of(scenario: PlacementScenario) -> tuple[tuple[str, Any], ...]:
    """The fields of a planned case that the scenario decides, sorted."""
    is_open = scenario.workload.kind in OPEN_WORKLOADS
    return (
        ("workload", scenario.workload.kind),
        ("offered", scenario.workload.load if is_open else None),
        ("interval", scenario.interval),
        ("servers", scenario.server_count),
        ("clients", scenario.client_count),
    )


def setting_of_case(case: PlannedPlacementCase) -> tuple[tuple[str, Any], ...]:
    """The same of a case."""
    fields = case.planned_fields
    names = ("workload", "offered", "interval", "servers", "clients")
    return tuple((name, fields[name]) for name in names)

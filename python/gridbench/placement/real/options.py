"""The parameters and the command of `gridbench placement run`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from gridbench.command_line import CommandWithExamples
from gridbench.machine.options import Policy
from gridbench.placement.real.record import BEST, RealPolicy
from gridbench.placement.record import POLICIES
from gridbench.placement.scenario import (
    MOST_CALLS,
    ClientGroup,
    PlacementScenario,
    PlacementWorkload,
    ScenarioFunction,
    ScenarioServer,
    ServerLink,
    read_scenario,
)
from gridbench.printing import Printing
from gridbench.quantities import PATH, Choice, Count, ListOf
from gridbench.schema import argument, group, option, read_parameters
from gridbench.shared_options import (
    ResultsOptions,
    experiment_options,
    rounds_option,
    seed_option,
)

REAL_SCENARIO = PlacementScenario(
    name="four real servers",
    servers=(
        ScenarioServer(name="near", cores=2, speed=1e9, link=ServerLink(rate=500e6)),
        ScenarioServer(
            name="wide", cores=4, speed=0.5e9, link=ServerLink(rate=200e6, latency=0.001)
        ),
        ScenarioServer(
            name="far", cores=2, speed=2e9, link=ServerLink(rate=50e6, latency=0.01)
        ),
        ScenarioServer(
            name="slow", cores=1, speed=0.25e9, link=ServerLink(rate=100e6, latency=0.002)
        ),
    ),
    clients=(ClientGroup(name="clients", count=2),),
    functions=(
        ScenarioFunction(name="solve", bytes_in=1 << 20, bytes_out=16 << 10, operations=5e8),
        ScenarioFunction(name="price", bytes_in=8 << 10, bytes_out=8 << 10, operations=2e8),
        ScenarioFunction(name="filter", bytes_in=1 << 20, bytes_out=1 << 20, operations=1e8),
    ),
    workload=PlacementWorkload(kind="batch", calls=160),
    interval=1.0,
)  # fmt: skip
"""Four servers of different speed and link, two clients, and functions with much and little data.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RealPlacementParameters:
    """Which policies make the calls of a scenario."""

    scenario: Path | None = argument(PATH, metavar="[SCENARIO.toml]", in_files=False)
    policies: tuple[RealPolicy, ...] = option(
        "--policies",
        ListOf(Choice[RealPolicy]({name: name for name in POLICIES})),
        metavar="LIST",
        help=f"How clients choose the server of a call: {', '.join(POLICIES)}. The best assignment"
        " is always run as well.",
        default=("least-time", "least-load", "round-robin", "random"),
    )
    calls: int | None = option(
        "--calls",
        Count(1, MOST_CALLS),
        metavar="N",
        help="Number of calls of all clients together.",
        default_text="the scenario's",
    )
    rounds: int = rounds_option("How often each policy is run.", 5)
    seed: int = seed_option()
    results: ResultsOptions = group(ResultsOptions, out="runs/placement-run-<time>")

    @property
    def all_policies(self) -> tuple[RealPolicy, ...]:
        """With the best assignment."""
        return (*self.policies, BEST)

    def base(self) -> PlacementScenario:
        """The scenario, with all calls at once. InputError for a file that is none."""
        found = REAL_SCENARIO if self.scenario is None else read_scenario(self.scenario)
        return found.with_workload(kind="batch", calls=self.calls or found.workload.calls)


@click.command(
    "run",
    cls=CommandWithExamples,
    short_help="Run clients and servers behind links on this machine.",
    examples=(
        "gridbench placement run",
        "gridbench placement run scenario.toml --policies least-time --rounds 10",
        "gridbench placement run --calls 40 --rounds 1",
    ),
)
@experiment_options(RealPlacementParameters)
def run(*, given: dict[str, Any], policy: Policy, printing: Printing) -> None:
    """Run clients that choose among real servers, and compare with the best assignment.

    Servers run in network namespaces behind links of the scenario's rate and latency, and announce
    themselves to a directory. Clients are programs that name only the directory. All calls begin at
    once. A search finds the assignment of calls to servers with the least total time, which is run
    like the policies, and a simulation stands beside each run. Functions sleep as long as a server
    of its speed would compute, so that a small machine is enough. Needs root.

    DIR then holds placement-run.jsonl and report.html. The same command with the same --out
    resumes.

    Exit status 1: a run failed. 2: the options or the scenario cannot be followed. 3: other
    programs disturbed all runs.
    """
    from gridbench.experiment import run_experiment
    from gridbench.placement.real.experiment import RealPlacement

    parameters = read_parameters(RealPlacementParameters, given)
    experiment = RealPlacement(parameters)
    sys.exit(run_experiment(experiment, parameters.results, policy, printing))

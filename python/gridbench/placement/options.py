"""The parameters and the commands of `gridbench placement`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from gridbench.command_line import CommandWithExamples
from gridbench.errors import InputError
from gridbench.machine.options import Policy
from gridbench.placement.record import BEST, POLICIES, RealPolicy, ServerPolicy
from gridbench.placement.scenario import (
    DEFAULT_SCENARIO,
    INTERVAL,
    MOST_CALLS,
    MOST_CLIENTS,
    MOST_SERVERS,
    OPEN_WORKLOADS,
    RUN_TIME,
    WORKLOADS,
    ClientGroup,
    PlacementScenario,
    PlacementWorkload,
    ScenarioFunction,
    ScenarioServer,
    ServerLink,
    SystemLoad,
    WorkloadKind,
    read_scenario,
)
from gridbench.printing import Printing, printing_options
from gridbench.quantities import PATH, Choice, Count, Counts, ListOf
from gridbench.schema import argument, group, option, options_of, read_parameters
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
    from gridbench.placement.real_experiment import RealPlacement

    parameters = read_parameters(RealPlacementParameters, given)
    experiment = RealPlacement(parameters)
    sys.exit(run_experiment(experiment, parameters.results, policy, printing))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementParameters:
    """Varied parameters of a scenario. All combinations are simulated."""

    scenario: Path | None = argument(PATH, metavar="[SCENARIO.toml]", in_files=False)
    policies: tuple[ServerPolicy, ...] = option(
        "--policies",
        ListOf(Choice[ServerPolicy]({name: name for name in POLICIES})),
        metavar="LIST",
        help=f"How clients choose the server of a call: {', '.join(POLICIES)}.",
        default=("least-time", "least-load", "two-choices", "round-robin", "random"),
    )
    workloads: tuple[WorkloadKind, ...] = option(
        "--workloads",
        ListOf(Choice[WorkloadKind]({name: name for name in WORKLOADS})),
        metavar="LIST",
        help="When clients call: "
        + "; ".join(f"`{name}`, {reported}" for name, reported in WORKLOADS.items())
        + ".",
        default_text="poisson,bursts,steps,batch; with a file its own",
    )
    loads: tuple[float, ...] = option(
        "--load",
        ListOf(SystemLoad(), ascending=True),
        metavar="LIST",
        help="Loads of poisson and bursts: work that arrives, as a share of what all servers can"
        " do.",
        default_text="30%,60%,90%; with a file its own",
    )
    intervals: tuple[float, ...] = option(
        "--interval",
        ListOf(INTERVAL, ascending=True),
        metavar="LIST",
        help="Times between two announcements of a server; 0: clients always know all loads.",
        default_text="0,3,30; with a file its own",
    )
    servers: tuple[int, ...] = option(
        "--servers",
        Counts("number of servers", MOST_SERVERS),
        metavar="LIST",
        help="Numbers of servers, in the shares that the scenario has.",
        default_text="as the scenario has them",
    )
    clients: tuple[int, ...] = option(
        "--clients",
        Counts("number of clients", MOST_CLIENTS),
        metavar="LIST",
        help="Numbers of clients, such as 10 or 1,10,100.",
        default_text="as the scenario has them",
    )
    duration: float | None = option(
        "--duration",
        RUN_TIME,
        metavar="S",
        help="Time in which the clients of a case begin calls.",
        default_text="the scenario's",
    )
    seeds: int = option(
        "--seeds",
        Count(1, 1000),
        metavar="N",
        help="How often each case is simulated, with other calls.",
        default=10,
    )
    seed: int = seed_option()
    results: ResultsOptions = group(ResultsOptions, out="runs/placement-<time>")

    def base(self) -> PlacementScenario:
        """The scenario. InputError for a file that is none."""
        return DEFAULT_SCENARIO if self.scenario is None else read_scenario(self.scenario)

    def cases(self) -> list[PlacementScenario]:
        """The scenario with all combinations of varied parameters. InputError if it cannot be."""
        base, found = self.base(), list[PlacementScenario]()
        kinds, loads, intervals = self.workloads, self.loads, self.intervals
        if self.scenario is None:
            kinds, loads = kinds or tuple(WORKLOADS), loads or (0.3, 0.6, 0.9)
            intervals = intervals or (0.0, 3.0, 30.0)
        kinds = kinds or (base.workload.kind,)
        if self.loads and not set(kinds) & set(OPEN_WORKLOADS):
            raise InputError(
                f"--load is of the workloads {' and '.join(OPEN_WORKLOADS)}, and"
                f" {', '.join(kinds)} have none",
                remedy="leave it out, or add --workloads poisson",
            )
        for servers in self.servers or (None,):
            for clients in self.clients or (None,):
                scaled = base.scaled(servers, clients)
                for kind in kinds:
                    is_open = kind in OPEN_WORKLOADS
                    for load in (loads if is_open else ()) or (base.workload.load,):
                        for interval in intervals or (base.interval,):
                            changed = scaled.with_workload(
                                kind=kind,
                                load=load,
                                duration=self.duration or base.workload.duration,
                            )
                            found.append(changed.with_interval(interval))
        for one in found:
            one.check()
        return found


@click.group(short_help="Choose among servers of a network.")
def placement() -> None:
    """Compare the policies by which clients choose the server of a call."""


@placement.command(
    "simulate",
    cls=CommandWithExamples,
    short_help="Simulate clients, servers and links.",
    examples=(
        "gridbench placement simulate",
        "gridbench placement simulate scenario.toml --load 30%,60% --seeds 20",
        "gridbench placement simulate --workloads poisson --interval 0,1,3,10,30",
        "gridbench placement simulate big.toml --servers 1000 --clients 100000",
    ),
)
@options_of(PlacementParameters)
@printing_options
def simulate(*, given: dict[str, Any], printing: Printing) -> None:
    """Simulate clients that choose among servers, and say which policy answers first.

    Clients choose by the code that a client with a directory runs: from announced loads, which are
    old, from calls of their own since, and from speeds and bandwidths that they have measured. All
    policies get the same calls. SCENARIO.toml describes servers, links, clients, functions and the
    workload; without one, there are four servers of different speed and link.

    DIR then holds placement.jsonl and report.html. The same command with the same --out resumes.

    Exit status 1: a case failed. 2: the options or the scenario cannot be followed.
    """
    from gridbench.experiment import run_experiment
    from gridbench.placement.experiment import SimulatedPlacement

    parameters = read_parameters(PlacementParameters, given)
    experiment = SimulatedPlacement(parameters)
    # Simulated times do not depend on what else the machine does.
    policy = Policy(accept=True, wait=0.0)
    sys.exit(run_experiment(experiment, parameters.results, policy, printing))


placement.add_command(run)

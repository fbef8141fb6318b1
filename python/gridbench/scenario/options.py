"""The options of `gridbench scenario`. What it needs is imported when it is called."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import click

from gridbench.command_with_examples import CommandWithExamples
from gridbench.engines.default import default_engine
from gridbench.links.link_option import link_option
from gridbench.machine.policy import Policy
from gridbench.printing import Printing
from gridbench.quantities import SECONDS, Count
from gridbench.resume_options import results_options
from gridbench.run.options import (
    check_option,
    engines_option,
    grid_option,
    limit_option,
    rounds_given,
    rounds_option,
    servers_option,
    start_option,
    start_timeout_option,
    time_scale_option,
)
from gridbench.shared_options import dry_run_option
from gridbench.workload.options import parse_body, seed_option, stddev_option, task_option


@click.command(
    cls=CommandWithExamples,
    examples=(
        "gridbench scenario startup --time-scale 0.01",
        "gridbench scenario all --quick             # in minutes",
        "gridbench scenario shared --dry-run        # what it would take",
        "gridbench scenario startup --cores 1,2 --task spin --time-scale 0.1",
        "gridbench scenario input --cores 1,10,100 --sizes 0,1MB --engine process-pool",
        "gridbench scenario shared --nodes 4 --link 1gbit --time-scale 0.1",
        "gridbench scenario 1-3,split --grid grid.toml --server cluster",
        "gridbench scenario 3 6 --engine emulated-slurm --engine emulated-slurm-jobs",
    ),
)
@click.argument("scenarios", nargs=-1, required=True, metavar="SCENARIO...")
@engines_option
@click.option("--cores", metavar="LIST", help="Instead of the grid's, such as 1,10,100.")
@click.option("--sizes", metavar="LIST", help="Instead of the grid's, such as 0,10KB,1MB.")
@time_scale_option
@task_option
@click.option("--quick", is_flag=True, help="Fewer and shorter measurements.")
@stddev_option
@click.option(
    "--slides/--report",
    default=False,
    help="The grids as the slides have them, or as the report does. [default: --report]",
)
@click.option(
    "--split-data",
    is_flag=True,
    help="Scenario 6: the input is that of the whole job, and divided among its tasks.",
)
@click.option("--optional", is_flag=True, help="Scenario 1: two more cases, of 120 s.")
@click.option(
    "--nodes",
    type=Count(1, 250),
    metavar="K",
    help="Nodes that gridbench emulates on this machine; needs root. [default: none]",
)
@link_option
@grid_option
@servers_option
@start_option
@start_timeout_option
@rounds_option
@click.option("--case-limit", type=SECONDS, metavar="S", help="Seconds that a case may take.")
@limit_option
@check_option
@dry_run_option
@seed_option
@results_options("runs/scenario-<number>-<time>")
def scenario(
    *,
    scenarios: tuple[str, ...],
    engines: tuple[str, ...],
    cores: str | None,
    sizes: str | None,
    time_scale: float | None,
    body_name: str,
    quick: bool,
    stddev: str | None,
    slides: bool,
    split_data: bool,
    optional: bool,
    nodes: int | None,
    link: str | None,
    grid: Path | None,
    servers: tuple[str, ...],
    start: str,
    start_timeout: float,
    rounds: int | Literal["auto"] | None,
    case_limit: float | None,
    limit: float | None,
    check: bool,
    dry_run: bool,
    seed: int,
    out: Path | None,
    fresh: bool,
    retry_failed: bool,
    policy: Policy,
    printing: Printing,
) -> None:
    """Run the cases of one or more scenarios, and report what they tell.

    \b
    1 shared      cores against shared data
    2 task-time   task time against data
    3 startup     cost of starting
    4 input       delay by input data
    5 output      delay by output data
    6 split       work split into n tasks

    SCENARIO is a number, a name, a range such as 1-3, a list such as 1,split, or `all`.

    With --nodes the workers are on that many emulated nodes, behind links of the rate --link.

    With --grid or --server the workers run on the servers of a grid, such as the nodes of a
    cluster; each case uses as many as it has cores.

    Cases that do not fit into memory, or into the time allowed, are skipped, and the results say
    why. Each result is saved at once, so the same command with the same --out goes on where the one
    before stopped, without cases that failed, if --retry-failed does not say otherwise. DIR then
    holds cases.jsonl, report.html and the runs; with several scenarios, a
    folder for each of them, and a report on all.

    No case begins while other programs use the machine: gridbench names them and waits. Cases that
    they disturb do not count (invalid). Exit status 1 says that a case failed, 3 that no case
    counts for that reason.
    """
    from gridbench.engines.servers import names_in
    from gridbench.quantities import (
        limit_of,
        parse_cores,
        parse_list,
        parse_size,
        parse_stddev,
        scale_of,
    )
    from gridbench.scenario.command import run_scenarios
    from gridbench.scenario.grids import Choice, parse_scenarios
    from gridbench.scenario.plan import TimeLimits
    from gridbench.scenario.request import ScenarioRequest, place_of
    from gridbench.scenario.workloads import Times

    body = parse_body(body_name)
    named = engines or (default_engine(body),)
    place = place_of(nodes, link, servers=bool(grid or servers))
    seconds, share = parse_stddev("--stddev", stddev) if stddev is not None else (0.0, 0.0)
    sys.exit(
        run_scenarios(
            ScenarioRequest(
                scenarios=parse_scenarios(scenarios),
                engines=named,
                choice=Choice(
                    slides=slides,
                    split_data=split_data,
                    optional=optional,
                    quick=quick,
                    cores=parse_list("--cores", cores, parse_cores) if cores is not None else (),
                    sizes=parse_list("--sizes", sizes, parse_size) if sizes is not None else (),
                ),
                times=Times(
                    scale=scale_of(time_scale, quick=quick),
                    stddev=seconds,
                    stddev_share=share,
                    seed=seed,
                    body=body,
                ),
                place=place,
                grid=grid,
                names=names_in(servers),
                start_timeout=start_timeout,
                limits=TimeLimits(
                    case=limit_of("--case-limit", case_limit), whole=limit_of("--limit", limit)
                ),
                rounds=rounds_given(rounds, several=len(named) > 1),
                warm=start == "warm",
                check=check,
                folder=out,
                fresh=fresh,
                retry_failed=retry_failed,
                dry_run=dry_run,
                policy=policy,
                printing=printing,
            )
        )
    )

"""The options of `gridbench micro`. What it needs is imported when it is called."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Literal

import click

from gridbench.command_with_examples import CommandWithExamples
from gridbench.machine.options import load_options
from gridbench.machine.policy import Policy
from gridbench.printing import Printing, printing_options
from gridbench.resume_options import going_on_options
from gridbench.run.options import grid_option, rounds_given, rounds_option, servers_option
from gridbench.workload.options import task_option


@click.command(
    cls=CommandWithExamples,
    examples=(
        "gridbench micro --quick               # a few minutes",
        "gridbench micro                       # less than an hour with all engines",
        "gridbench micro null_call start --engine gridrpc-python --engine process-pool",
        "gridbench micro work --task prices:book    # your function, on all engines",
        "gridbench micro null_call argument --grid grid.toml --server lab",
        "gridbench micro --list",
    ),
)
@click.argument("workloads", nargs=-1, metavar="[WORKLOAD]...")
@click.option(
    "--engine",
    "engines",
    multiple=True,
    metavar="NAME",
    help="Engine to measure; may be given several times. [default: all but those on batch systems]",
)
@grid_option
@servers_option
@click.option("--quick", is_flag=True, help="Fewer and shorter measurements.")
@task_option
@rounds_option
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("runs", "micro"),
    show_default=True,
    metavar="DIR",
    help="Folder for the results.",
)
@load_options
@printing_options
@going_on_options
@click.option("--list", "list_only", is_flag=True, help="List what can be named, and exit.")
def micro(
    *,
    workloads: tuple[str, ...],
    engines: tuple[str, ...],
    grid: Path | None,
    servers: tuple[str, ...],
    quick: bool,
    body_name: str,
    rounds: int | Literal["auto"] | None,
    out: Path,
    fresh: bool,
    retry_failed: bool,
    list_only: bool,
    policy: Policy,
    printing: Printing,
) -> None:
    """Measure calls, arrays, start-up and memory on all installed engines.

    Engines and repetitions are interleaved in random order, each in a fresh process; gridrpc and
    the process pool are measured twice, and no difference is claimed that is smaller than the
    difference between two equals. The limits of the machine are measured beside the engines.

    With --grid or --server gridrpc is measured with two workers on the servers of a grid as well,
    beside the engines on this machine. What needs all processes on one machine is left out there:
    start, tasks_100, shared_100MB and null_rate_4_clients.

    Each is measured five times, with --quick twice, and less often if it takes long. Every result
    is saved at once, so the same command goes on where the one before stopped, without
    what failed before, if --retry-failed does not say otherwise. DIR then holds points.jsonl,
    results.json, report.html and performance.md. Exit status 1 says that something could not be
    measured, 3 that other programs used the machine, so that nothing can be claimed. Disturbed
    measurements are repeated, as far as time allows. A claim takes at least two undisturbed rounds,
    in all of which the same engine is ahead.
    """
    if list_only:
        from gridbench.micro.listing import listing

        listed = listing()
        printing.document(listed.to_dict)
        if not printing.as_json:
            click.echo(listed.told())
        return
    from gridbench.engines.servers import names_in
    from gridbench.micro.command import MicroRequest, run_micro
    from gridbench.micro.sizes import FULL, QUICK
    from gridbench.workload.options import parse_body

    sys.exit(
        run_micro(
            MicroRequest(
                workloads=workloads,
                engines=engines,
                sizes=replace(QUICK if quick else FULL, body=parse_body(body_name)),
                grid=grid,
                servers=names_in(servers),
                rounds=rounds_given(rounds, several=True),
                folder=out,
                fresh=fresh,
                retry_failed=retry_failed,
                policy=policy,
                printing=printing,
            )
        )
    )

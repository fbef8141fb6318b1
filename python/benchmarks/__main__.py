"""`python -m benchmarks`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gridbench.command_line import CommandWithExamples, run_command
from gridbench.machine.options import Policy, load_options
from gridbench.printing import Printing, printing_options
from gridbench.quantities import Count


@click.command(
    cls=CommandWithExamples,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    examples=(
        "python -m benchmarks                       # all areas, in a few minutes",
        "python -m benchmarks modules --full --out figures.json",
        "python -m benchmarks hosts --case null     # one part of an area that has several",
        "python -m benchmarks cluster --out figures.json --markdown cluster.md",
        "python -m benchmarks hosts --quick         # does all of it work here?",
    ),
)
@click.argument("areas", nargs=-1, metavar="[AREA]...")
@click.option(
    "--case",
    "cases",
    multiple=True,
    metavar="NAME",
    help="Only this part of hosts, cluster, sync, data, server or linpack; repeatable.",
)
@click.option("--full", is_flag=True, help="More runs, also of cases that take long.")
@click.option(
    "--quick",
    is_flag=True,
    help="One run, with the smallest sizes of hosts, cluster, sync, data, server, linpack.",
)
@click.option(
    "--runs",
    type=Count(1, 1000),
    metavar="N",
    help="Runs of each case. [default: 5, with --full 7, with --quick 1]",
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE.json", help="Keep all values."
)
@load_options
@printing_options
@click.option("--fresh", is_flag=True, help="Forget what FILE.json has of an interrupted call.")
@click.option("--retry-failed", is_flag=True, help="Try again what has failed in an earlier call.")
@click.option(
    "--markdown", type=click.Path(path_type=Path), metavar="FILE.md", help="Keep the tables."
)
def measure_areas(
    *,
    areas: tuple[str, ...],
    cases: tuple[str, ...],
    full: bool,
    quick: bool,
    runs: int | None,
    out: Path | None,
    fresh: bool,
    retry_failed: bool,
    markdown: Path | None,
    policy: Policy,
    printing: Printing,
) -> None:
    """Benchmark gridrpc-specific features against the limits of this machine.

    The areas are grain (how large chunks of a map should be), modules (functions of compiled
    modules, also from C), large (inputs that do not fit into memory at once), libraries (joblib,
    SciPy, executors and other Python libraries), journal (a map that keeps its results), starts (of
    engines, beside plain scripts), hosts (many machines, beside the network and other engines: some
    cases need root, or the engines), cluster (workers that batch systems start, beside plain jobs
    and other engines), sync (tasks that begin at one instant, beside parallel ssh and MPI, and
    disks, Gfarm and Redis under them), data (tasks on data grids, and what the driver itself
    takes), server (a server that many clients share, beside bare TLS, gRPC, Pyro5, Ray Serve
    and MLServer) and linpack (systems of equations solved by a server, beside the client itself,
    gRPC and Ray Serve). The default is all areas. Runs alternate, each in a fresh
    process. The tables show medians with the smallest and largest value, and targets. Each run is
    saved in FILE.json as it ends, so the same command resumes an interrupted run,
    without what failed before, if --retry-failed does not say otherwise. A
    part of cluster takes five minutes at most, with as many rounds as fit; for a case that reaches
    its limit, the table says how far it came. A ratio to a peer is claimed if at least two rounds
    were undisturbed and all of them had ratios on one side of 1. Exit status 1 says that something
    could not be measured, 3 that other programs used the machine, so that nothing can be claimed.
    `gridbench micro` compares gridrpc with other engines.
    """
    from benchmarks.figures import Extent
    from benchmarks.runner import AreaRequest, run_areas
    from gridbench.errors import InputError

    if full and quick:
        raise InputError("--full and --quick exclude each other", remedy="leave one of them out")
    extent = Extent.FULL if full else Extent.TRIAL if quick else Extent.USUAL
    request = AreaRequest(
        areas=areas, cases=cases, extent=extent, runs=runs, out=out, markdown=markdown, fresh=fresh,
        retry_failed=retry_failed, policy=policy, printing=printing,
    )  # fmt: skip
    sys.exit(run_areas(request))


if __name__ == "__main__":
    run_command(measure_areas, "python -m benchmarks")

"""The program `gridbench`.

Each command imports what it needs when it is called, so that help comes at once.
"""

from __future__ import annotations

import math
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from gridbench.advise.options import advise
from gridbench.command_with_examples import CommandWithExamples as _Examples
from gridbench.engines.default import DEFAULT_ENGINE
from gridbench.errors import InputError
from gridbench.links.options import links
from gridbench.model.options import model
from gridbench.simulate.options import simulate


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point: exit status 2 for bad input, with one message and no traceback."""
    try:
        cli.main(args=arguments, prog_name="gridbench")
    except InputError as error:
        print(f"gridbench: {error}", file=sys.stderr)
        sys.exit(2)


class _Program(click.Group):
    """A program that Ctrl-C ends with the status that a shell expects, where nothing else is said.

    Click itself has it end with 1, which is the status of a run in which something failed.
    """

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print("gridbench: interrupted", file=sys.stderr)
            sys.exit(128 + signal.SIGINT)


def _print_version(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    del parameter
    if value and not context.resilient_parsing:
        from importlib import metadata

        try:
            click.echo(f"gridbench {metadata.version('gridrpc')}")
        except metadata.PackageNotFoundError:
            click.echo("gridbench, not installed")
        context.exit()


@click.group(
    cls=_Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """Run one workload on any engine, and see where the time goes.

    The workload is that of the compute-grid benchmark: tasks that receive data, sleep, and
    return data. Every engine gets the same tasks and the same timestamps.
    """


def _time_scale(context: click.Context, parameter: click.Parameter, value: float) -> float:
    del context, parameter
    if not math.isfinite(value) or not 0 <= value <= 1e6:
        raise click.BadParameter(f"{value:g} is not in the range from 0 to 1,000,000.")
    return value


def _time_limit(context: click.Context, parameter: click.Parameter, value: float) -> float:
    del context, parameter
    # Sockets take no time of more than 300 years.
    if not 0 < value < 1e10:
        raise click.BadParameter(f"{value:g} is not a time.")
    return value


@cli.command(
    cls=_Examples,
    examples=(
        "gridbench run examples/compute/setup.xml",
        "gridbench run setup.xml --engine process-pool --start warm --out runs/warm",
        "gridbench run setup.xml --engine gridrpc-python --engine process-pool",
        "gridbench run setup.xml --time-scale 0.1     # every task sleeps a tenth",
    ),
)
@click.argument("setup", type=click.Path(path_type=Path), metavar="SETUP.xml")
@click.option(
    "--engine",
    "engines",
    multiple=True,
    metavar="NAME",
    help=f"Engine to measure; may be given several times. [default: {DEFAULT_ENGINE}]",
)
@click.option(
    "--start",
    type=click.Choice(["cold", "warm"]),
    default="cold",
    show_default=True,
    help="Whether starting the workers counts (cold), or all have answered before t = 0 (warm).",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder for the results; it must be new or empty. [default: runs/<time>]",
)
@click.option(
    "--time-scale",
    type=float,
    default=1.0,
    show_default=True,
    metavar="F",
    callback=_time_scale,
    help="Multiply the time of every task by F; 0 makes them not sleep at all.",
)
@click.option(
    "--check/--no-check",
    default=True,
    show_default=True,
    help="Check every byte in a second, untimed pass.",
)
@click.option(
    "--start-timeout",
    type=float,
    default=180.0,
    show_default=True,
    metavar="S",
    callback=_time_limit,
    help="Seconds after which an engine that has not started is ended.",
)
@click.option("--force", is_flag=True, help="Replace the run that DIR holds.")
def run(
    *,
    setup: Path,
    engines: tuple[str, ...],
    start: str,
    out: Path | None,
    time_scale: float,
    check: bool,
    start_timeout: float,
    force: bool,
) -> None:
    """Measure the workload of SETUP.xml.

    DIR then holds run.json (configuration, machine, summary), timeline.parquet (all stamps
    of all tasks), tasks.log (the same in the benchmark's own format) and report.html. With
    several engines these lie in DIR/<engine>, and DIR/report.html compares them.

    Ctrl-C ends a run and keeps what was measured; a second one ends the program at once.
    """
    from gridbench.run.command import Request, run_benchmark
    from gridbench.run.runner import Options

    sys.exit(
        run_benchmark(
            Request(
                setup_file=setup,
                engines=engines or (DEFAULT_ENGINE,),
                folder=out,
                time_scale=time_scale,
                replace=force,
                options=Options(warm=start == "warm", check=check, start_timeout=start_timeout),
            )
        )
    )


@cli.command(
    "list-times",
    short_help="Write a list of task times for a set-up file.",
    cls=_Examples,
    examples=(
        "gridbench list-times --tasks 200 --mean 1 --stddev 0.1 --out input.200.1.0.1",
        "gridbench list-times --tasks 1200 --mean 30 --stddev 0 --seed 7 --out input.30",
    ),
)
@click.option("--tasks", type=int, required=True, metavar="N", help="How many times.")
@click.option("--mean", type=float, required=True, metavar="M", help="Mean, in seconds.")
@click.option(
    "--stddev",
    type=float,
    default=0.0,
    show_default=True,
    metavar="S",
    help="Standard deviation, in seconds.",
)
@click.option(
    "--seed", type=int, default=1, show_default=True, metavar="K", help="Same seed, same list."
)
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="FILE")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
def list_times(
    *, tasks: int, mean: float, stddev: float, seed: int, out: Path, force: bool
) -> None:
    """Write a list of task times, for the InputFile of a set-up file.

    Times are drawn from a normal distribution that is truncated at 0.
    """
    from gridbench.workload.task_times import write_task_times

    times = write_task_times(out, tasks, mean, stddev, seed, replace=force)
    click.echo(
        f"{out}: {tasks:,} times, {times.min():.3f} to {times.max():.3f} s,"
        f" mean {times.mean():.3f} s"
    )


@cli.command(
    cls=_Examples,
    examples=(
        "gridbench report runs/2031-05-04T10-30-00",
        "gridbench report runs/a runs/b old/tasks.log --out compare.html",
        "gridbench report old/*.log --scenario 4 --out delay.html",
    ),
)
@click.argument(
    "sources", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="DIR_OR_LOG..."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The page to write. [default: DIR/report.html, for a single DIR]",
)
@click.option(
    "--scenario",
    "as_scenario",
    metavar="N",
    help="Take the runs and logs for the cases of a scenario, 1 to 6, and answer its question.",
)
def report(sources: tuple[Path, ...], out: Path | None, as_scenario: str | None) -> None:
    """Make a report, side by side, from run folders and task logs.

    A folder can be of a run that was interrupted or killed. A log can come from any program
    that writes the benchmark's format. The folder of `gridbench micro`, or its results.json,
    has a report of its own; so has the folder of a scenario, and several of these have one
    together.
    """
    if out is None:
        if len(sources) != 1 or not sources[0].is_dir():
            raise InputError(
                "several sources or a log need the name of the page to write",
                remedy="add --out FILE",
            )
        out = sources[0] / "report.html"
    if as_scenario is not None:
        _report_as_scenario(sources, as_scenario, out)
        return
    from gridbench.micro.figures import holds_results

    if any(map(holds_results, sources)):
        _report_micro(sources, out)
        return
    from gridbench.scenario.results import folders_of_results

    if any(map(folders_of_results, sources)):
        _report_scenarios(sources, out)
        return
    from gridbench.report.build import write_report
    from gridbench.run.folders import run_folders

    places: list[Path] = []
    for source in sources:
        # The folder of a run on several engines stands for all of them.
        places += (run_folders(source) if source.is_dir() else []) or [source]
    try:
        write_report(places, out)
    except OSError as error:
        raise InputError(
            f"cannot write the report: {error.strerror or error}",
            file=out,
            remedy="choose another --out, in a folder that can be written",
        ) from error
    click.echo(f"report: {out}")


def _report_micro(sources: Sequence[Path], out: Path) -> None:
    if len(sources) > 1:
        raise InputError(
            "the results of `gridbench micro` cannot stand in one report with others",
            remedy="make a report of them alone",
        )
    from gridbench.micro.figures import load_results
    from gridbench.micro.present import write_report

    write_report(load_results(sources[0]), out)
    click.echo(f"report: {out}")


def _report_as_scenario(sources: Sequence[Path], name: str, out: Path) -> None:
    from gridbench.report.files import write_page
    from gridbench.scenario.grids import parse_scenarios
    from gridbench.scenario.logs import results_of_runs
    from gridbench.scenario.present.page import render

    (scenario,) = parse_scenarios([name])
    write_page(out, render(*results_of_runs(sources, scenario)))
    click.echo(f"report: {out}")


def _report_scenarios(sources: Sequence[Path], out: Path) -> None:
    from gridbench.scenario.present import write_overall, write_report
    from gridbench.scenario.results import folders_of_results

    folders = []
    for source in sources:
        found = folders_of_results(source)
        if not found:
            raise InputError(
                "holds no results of a scenario, and they cannot stand in one report with others",
                file=source,
                remedy="make a report of scenarios alone",
            )
        folders += found
    if folders == list(sources) and len(folders) == 1:
        write_report(folders[0], out)
    else:
        write_overall(folders, out)
    click.echo(f"report: {out}")


@cli.command(
    cls=_Examples,
    short_help="Measure what only gridrpc does, beside the machine's limits.",
    examples=(
        "gridbench bench                       # all areas, in a few minutes",
        "gridbench bench modules --full --out figures.json",
    ),
)
@click.argument("areas", nargs=-1, metavar="[AREA]...")
@click.option("--full", is_flag=True, help="More runs, and all of them for what takes long.")
@click.option(
    "--runs",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="Runs of each case. [default: 5, with --full 7]",
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE.json", help="Keep all values."
)
def bench(*, areas: tuple[str, ...], full: bool, runs: int | None, out: Path | None) -> None:
    """Measure what only gridrpc does, beside the limits of this machine.

    The areas are grain (how large chunks of a map should be), modules (functions of compiled
    modules, also from C) and large (inputs that do not fit into memory at one time); without any,
    all are measured. Runs alternate, each in a fresh process. Shown are medians with the smallest
    and largest value, and what is to be reached. Exit status 1 says that something could not be
    measured. `gridbench micro` compares gridrpc with other engines.
    """
    from gridbench.bench.runner import Request, run_bench

    sys.exit(run_bench(Request(areas=areas, full=full, runs=runs, out=out)))


@cli.command(
    cls=_Examples,
    short_help="Measure small workloads on all engines, side by side.",
    examples=(
        "gridbench micro --quick               # a few minutes",
        "gridbench micro                       # less than an hour with all engines",
        "gridbench micro null_call start --engine gridrpc-python --engine process-pool",
        "gridbench micro --list",
    ),
)
@click.argument("workloads", nargs=-1, metavar="[WORKLOAD]...")
@click.option(
    "--engine",
    "engines",
    multiple=True,
    metavar="NAME",
    help="Engine to measure; may be given several times. [default: all]",
)
@click.option("--quick", is_flag=True, help="Fewer and shorter measurements.")
@click.option(
    "--rounds",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="How often each is measured. [default: 5, with --quick 2; fewer for what takes long]",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("runs", "micro"),
    show_default=True,
    metavar="DIR",
    help="Folder for the results.",
)
@click.option("--fresh", is_flag=True, help="Forget the results that DIR holds.")
@click.option("--list", "list_only", is_flag=True, help="List workloads and engines, and exit.")
def micro(
    *,
    workloads: tuple[str, ...],
    engines: tuple[str, ...],
    quick: bool,
    rounds: int | None,
    out: Path,
    fresh: bool,
    list_only: bool,
) -> None:
    """Measure calls, arrays, start-up and memory on all installed engines.

    Engines and repetitions are interleaved in random order, each in a fresh process; gridrpc and
    the process pool are measured twice, and no difference is claimed that is smaller than what
    lies between equals. The limits of the machine are measured beside them.

    Every result is saved at once: the same command goes on where the one before stopped. DIR
    then holds points.jsonl, results.json, report.html and performance.md. Exit status 1 says that
    something could not be measured.
    """
    if list_only:
        from gridbench.micro.listing import listing

        click.echo(listing())
        return
    from gridbench.micro.command import Request, run_micro
    from gridbench.micro.sizes import FULL, QUICK

    sys.exit(
        run_micro(
            Request(
                workloads=workloads,
                engines=engines,
                sizes=QUICK if quick else FULL,
                rounds=rounds,
                folder=out,
                fresh=fresh,
            )
        )
    )


@cli.command(
    cls=_Examples,
    short_help="Run the grids of cases that the benchmark asks its questions with.",
    examples=(
        "gridbench scenario 3 --time-scale 0.01",
        "gridbench scenario 1 2 3 4 5 6 --quick     # all of them, fewer values, in minutes",
        "gridbench scenario 1 --dry-run             # what it would take",
        "gridbench scenario 4 --cores 1,10,100 --sizes 0,1MB --engine process-pool",
        "gridbench scenario 1 --nodes 4 --link 1gbit --time-scale 0.1",
    ),
)
@click.argument("scenarios", nargs=-1, required=True, metavar="1..6...")
@click.option(
    "--engine",
    "engines",
    multiple=True,
    metavar="NAME",
    help=f"Engine to measure; may be given several times. [default: {DEFAULT_ENGINE}]",
)
@click.option("--cores", metavar="LIST", help="Instead of the grid's, such as 1,10,100.")
@click.option("--sizes", metavar="LIST", help="Instead of the grid's, such as 0,10KB,1MB.")
@click.option(
    "--time-scale",
    type=float,
    metavar="F",
    help="Multiply the time of every task by F; nothing else. [default: 1, with --quick 0.01]",
)
@click.option("--quick", is_flag=True, help="Every other value of each axis, and short tasks.")
@click.option(
    "--stddev", metavar="S", help="Uneven task times: seconds, such as 5, or a share, such as 20%."
)
@click.option(
    "--slides/--report",
    default=False,
    help="The grids as the slides have them, or as the report does. [default: --report]",
)
@click.option(
    "--split-data",
    is_flag=True,
    help="Scenario 6: the input is of the whole work and divided among its tasks.",
)
@click.option("--optional", is_flag=True, help="Scenario 1: two more cases, of 120 s.")
@click.option(
    "--nodes",
    type=click.IntRange(1, 250),
    metavar="K",
    help="Put the workers behind K shaped links; needs root and iproute2. [default: beside the"
    " client, on one host]",
)
@click.option(
    "--link", metavar="RATE", help="Rate of each of these links, and the client's. [default: 1gbit]"
)
@click.option(
    "--start",
    type=click.Choice(["cold", "warm"]),
    default="cold",
    show_default=True,
    help="Whether starting the workers counts (cold), or all have answered before t = 0 (warm).",
)
@click.option(
    "--rounds",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    metavar="N",
    help="How often each case is measured.",
)
@click.option("--case-limit", type=float, metavar="S", help="Seconds that a case may take.")
@click.option("--limit", type=float, metavar="S", help="Seconds that all of it may take.")
@click.option("--check", is_flag=True, help="Check every byte in a second, untimed pass.")
@click.option("--dry-run", is_flag=True, help="List the cases and what they need, and exit.")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31 - 1),
    default=1,
    show_default=True,
    metavar="K",
    help="Of the order of the cases, and of uneven task times.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder for the results. [default: runs/scenario-<number>-<time>]",
)
@click.option("--fresh", is_flag=True, help="Forget the results that DIR holds.")
def scenario(
    *,
    scenarios: tuple[str, ...],
    engines: tuple[str, ...],
    cores: str | None,
    sizes: str | None,
    time_scale: float | None,
    quick: bool,
    stddev: str | None,
    slides: bool,
    split_data: bool,
    optional: bool,
    nodes: int | None,
    link: str | None,
    start: str,
    rounds: int,
    case_limit: float | None,
    limit: float | None,
    check: bool,
    dry_run: bool,
    seed: int,
    out: Path | None,
    fresh: bool,
) -> None:
    """Run the cases of one or more scenarios, and report what they tell.

    1: cores against shared data. 2: task time against data. 3: what starting costs. 4: delay by
    input data. 5: delay by output data. 6: work split into n tasks.

    Cases that do not fit into memory, or into the time allowed, are skipped, and the results say
    why. Each result is saved at once: the same command with the same --out goes on where the one
    before stopped. DIR then holds cases.jsonl, report.html and the runs; with several scenarios,
    a folder for each of them, and a report on all.
    """
    from gridbench.scenario.command import run_scenarios
    from gridbench.scenario.options import request_of

    sys.exit(
        run_scenarios(
            request_of(
                scenarios=scenarios,
                engines=engines or (DEFAULT_ENGINE,),
                cores=cores,
                sizes=sizes,
                time_scale=time_scale,
                quick=quick,
                stddev=stddev,
                slides=slides,
                split_data=split_data,
                optional=optional,
                nodes=nodes,
                link=link,
                warm=start == "warm",
                rounds=rounds,
                case_limit=case_limit,
                limit=limit,
                check=check,
                dry_run=dry_run,
                seed=seed,
                folder=out,
                fresh=fresh,
            )
        )
    )


@cli.command(
    cls=_Examples,
    short_help="Show the figures of the original report beside ours.",
    examples=(
        "gridbench published                   # all tables",
        "gridbench published 5.5.4 text        # those of section 5.5.4, and figures in the text",
        "gridbench published model --json",
    ),
)
@click.argument("tables", nargs=-1, metavar="[TABLE]...")
@click.option("--json", "as_json", is_flag=True, help="Print all values as JSON.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE.md",
    help="Write a page in Markdown instead of printing tables.",
)
def published(*, tables: tuple[str, ...], as_json: bool, out: Path | None) -> None:
    """Show the figures of the original report beside ours.

    Figures that follow from others are worked out again from their inputs, such as transfer
    rates, lines and estimates: TABLE is the number of a table in the report, such as 5.5.4-2, or
    `text`. The totals of two systems are predicted by the pipeline model, beside the report's
    own predictions: model-symphony and model-ninfg. A beginning, such as 5.5.4 or model, stands for
    all that continue it.

    Exit status 1 says that a figure differs from ours and it is not known why.
    """
    from gridbench.published.command import Request, show_published

    sys.exit(show_published(Request(tables=tables, as_json=as_json, out=out)))


for _command in (links, model, simulate, advise):
    cli.add_command(_command)


@cli.group(invoke_without_command=True)
@click.pass_context
def engines(context: click.Context) -> None:
    """List the engines, and what of them is installed.

    Engines whose dependencies conflict with others' live in Python environments of their own, in
    $GRIDBENCH_ENGINES, by default in share/gridbench/engines of this Python.
    """
    if context.invoked_subcommand is None:
        from gridbench.engines.commands import list_engines

        list_engines()


@engines.command(
    cls=_Examples,
    examples=("gridbench engines install ray dask", "gridbench engines install --all"),
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--all", "everything", is_flag=True, help="All that need an environment.")
def install(*, names: tuple[str, ...], everything: bool) -> None:
    """Make the environments of engines, or repair them.

    What is up to date is not touched.
    """
    from gridbench.engines.commands import install_engines

    sys.exit(install_engines(names, everything=everything))


@engines.command(cls=_Examples, examples=("gridbench engines remove ray",))
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def remove(names: tuple[str, ...]) -> None:
    """Remove the environments of engines."""
    from gridbench.engines.commands import remove_engines

    sys.exit(remove_engines(names))

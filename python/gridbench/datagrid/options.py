"""The commands `gridbench data`. What they need is imported when they are called."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gridbench.command_with_examples import CommandWithExamples
from gridbench.datagrid.crossover.options import crossover
from gridbench.datagrid.engines.options import engines
from gridbench.errors import InputError
from gridbench.going_on import results_options
from gridbench.hosts.options import hosts_options
from gridbench.machine.policy import Policy
from gridbench.printing import Printing
from gridbench.quantities import SECONDS

if TYPE_CHECKING:
    from gridbench.datagrid.request import Request

_DEFAULT = "run"


class DefaultToRun(click.Group):
    """A group whose first word may also be a set-up file, an option of `run`, or missing: then
    `run` is meant."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `run` before the words that are for it."""
        completing = not args and ctx.resilient_parsing
        if not completing and not set(args[:1]) & set(ctx.help_option_names):
            args = self.with_command(args)
        return super().parse_args(ctx, args)

    def with_command(self, words: list[str]) -> list[str]:
        """The words with that of a command before them, if they have none. InputError for a command
        that is misspelt."""
        if words and words[0] in self.commands:
            return words
        if words and not words[0].startswith("-"):
            self._refuse_misspelt(words[0])
        return [_DEFAULT, *words]

    def _refuse_misspelt(self, word: str) -> None:
        near = difflib.get_close_matches(word.lower(), self.commands, n=1, cutoff=0.7)
        if near and not os.path.exists(word):
            raise InputError(
                f"`{word}` is neither a file nor a command of `gridbench data`",
                remedy=f"did you mean `{near[0]}`?",
            )


_OPTIONS = (
    click.option(
        "--engine",
        "engines",
        multiple=True,
        metavar="NAME",
        help="Data grid to measure, or the path of your own engine.toml; may be given several"
        " times. `all`: those with members. [default: embedded]",
    ),
    click.option(
        "--open",
        "open_rates",
        multiple=True,
        metavar="RATE",
        help="Measure each case in an open loop as well, in which so many operations begin in each"
        " second: such as 5000, or 50% of what the closed loop does; may be a list, or given"
        " several times.",
    ),
    click.option(
        "--updates",
        type=click.Choice(["plain", "atomic"]),
        default="plain",
        show_default=True,
        help="How an object is updated. plain: it is read, then written. atomic: it is written only"
        " if nobody has changed it meanwhile, and else read again.",
    ),
    click.option(
        "--kill-node",
        "kill",
        metavar="N[,M]",
        help="Kill these members, which are counted from 0, once half of the tasks have ended.",
    ),
    click.option(
        "--warm",
        type=SECONDS,
        metavar="S",
        help="Seconds of warm-up at most, before each case; it ends when throughput is steady."
        " [default: 20]",
    ),
    click.option("--no-warm", is_flag=True, help="Measure without warm-up: no run is valid then."),
    click.option(
        "--processes",
        type=click.IntRange(1, 64),
        metavar="N",
        help="Processes, the threads of which are the clients. [default: 4, or as many as there"
        " are clients or cores, if these are fewer]",
    ),
    click.option(
        "--member-memory",
        metavar="SIZE",
        help="Memory of each member, such as 512MB. [default: a quarter of what is available, for"
        " all members together, and 128MB to 2GB for each; on other hosts 1GB for each]",
    ),
    click.option(
        "--backups",
        type=click.IntRange(0, 6),
        default=1,
        show_default=True,
        metavar="N",
        help="Copies of each object on other members, beside the object itself.",
    ),
    hosts_options,
    click.option(
        "--start-timeout",
        type=SECONDS,
        metavar="S",
        help="Seconds that hosts may take to come, and members to join. [default: 180]",
    ),
    click.option(
        "--rounds",
        type=click.IntRange(1, 1000),
        default=1,
        show_default=True,
        metavar="N",
        help="How often each case is measured: two or more for claims, which come from repeats.",
    ),
    click.option("--dry-run", is_flag=True, help="List the cases and what they need, and exit."),
    results_options("runs/data-<what>-<time>"),
)
_SCALE = (
    click.option("--members", metavar="LIST", help="Numbers of members, such as 3 or 1,2,4."),
    click.option("--clients", metavar="LIST", help="Numbers of clients, such as 10 or 1,10,100."),
    click.option("--object-sizes", metavar="LIST", help="Sizes of objects, such as 1KB,100KB."),
    click.option(
        "--operations",
        type=click.IntRange(1, 1_000_000_000),
        metavar="N",
        help="Operations of each task.",
    ),
    click.option(
        "--tasks-per-client",
        type=click.IntRange(1, 10_000),
        default=3,
        show_default=True,
        metavar="N",
        help="How many tasks each client processes, one after the other.",
    ),
)


def _with(
    *options: Callable[[Any], Any],
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options, in this order of its help."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


@click.group(cls=DefaultToRun, short_help="Measure data grids: tasks read and update objects.")
def data() -> None:
    """Measure data grids: tasks read, update and insert objects of a cluster.

    `gridbench data SETUP.xml` runs one case, as `gridbench data run SETUP.xml` does, and `gridbench
    data` without a file a small one, for the first look.
    """


@data.command(
    cls=CommandWithExamples,
    short_help="Run the case of a set-up file.",
    examples=(
        "gridbench data examples/data/setup.xml",
        "gridbench data setup.xml --engine hazelcast --engine geode",
        "gridbench data setup.xml --engine all --open 50%,80%",
        "gridbench data setup.xml --engine hazelcast --kill-node 1",
        "gridbench data setup.xml --engine redis --emulate ssh --nodes 4",
    ),
)
@click.argument("setup", type=click.Path(path_type=Path), metavar="[SETUP.xml]", required=False)
@_with(*_OPTIONS)
def run(
    *,
    setup: Path | None,
    dry_run: bool,
    policy: Policy,
    printing: Printing,
    **given: Any,
) -> None:
    """Run the case of SETUP.xml: the twelve parameters of the data-grid benchmark. Without a file:
    a small case, for the first look.

    Members and clients are processes of their own; the data grid `embedded` is a map in the
    client's process, and needs no members. Objects are stored beforehand and checked afterwards.
    Each case is saved at once, so the same command with the same --out goes on where the one before
    stopped, without cases that failed, if --retry-failed does not say otherwise. DIR then holds
    datagrid.jsonl, report.html and timelines.

    Exit status 1 says that a case failed or that data were wrong, 2 that the command cannot be
    followed or that a data grid does not start, 3 that other programs use the machine, so that
    nothing was measured, or disturbed all cases.
    """
    from gridbench.datagrid.asked import request_of_setup

    _run_or_list(request_of_setup(setup, given, policy=policy, printing=printing), dry_run=dry_run)


@data.command(
    cls=CommandWithExamples,
    short_help="Run the benchmark's three scenarios.",
    examples=(
        "gridbench data scenario 1 2 3 --dry-run           # what it would take",
        "gridbench data scenario 1 2 3 --engine all",
        "gridbench data scenario 2 --engine hazelcast --members 3 --operations 100",
        "gridbench data scenario 1 --engine geode --object-sizes 1KB,1MB",
        "gridbench data scenario 1 --full --member-memory 8GB --engine hazelcast",
    ),
)
@click.argument("scenarios", nargs=-1, required=True, metavar="1..3...")
@_with(*_SCALE)
@click.option(
    "--full",
    is_flag=True,
    help="Refuse cases that do not fit into the members, instead of making them smaller.",
)
@_with(*_OPTIONS)
def scenario(
    *,
    scenarios: tuple[str, ...],
    full: bool,
    dry_run: bool,
    policy: Policy,
    printing: Printing,
    **given: Any,
) -> None:
    """Run the cases of one or more scenarios; each reads, updates and inserts.

    1: size of objects, 1 KB to 10 MB, on 8 members with 10 clients. 2: 1, 10 and 100 clients.
    3: 1, 4 and 8 members with 100 clients.

    Options replace what a scenario has, and results say so. Cases whose objects do not fit into the
    members get fewer operations and objects, if --full does not forbid it. Results and exit status
    are those of `gridbench data run`.
    """
    from gridbench.datagrid.asked import request_of_scenarios

    request = request_of_scenarios(scenarios, given, full=full, policy=policy, printing=printing)
    _run_or_list(request, dry_run=dry_run)


@data.command(
    cls=CommandWithExamples,
    short_help="Run core workloads of YCSB.",
    examples=(
        "gridbench data ycsb all --engine all",
        "gridbench data ycsb a f --engine hazelcast --clients 1,10,100",
        "gridbench data ycsb c --engine redis --records 1000000 --member-memory 2GB",
    ),
)
@click.argument("workloads", nargs=-1, required=True, metavar="a..f|all...")
@_with(*_SCALE)
@click.option(
    "--records",
    type=click.IntRange(1, 10_000_000_000),
    default=10_000,
    show_default=True,
    metavar="N",
    help="Objects that are stored beforehand.",
)
@_with(*_OPTIONS)
def ycsb(
    *,
    workloads: tuple[str, ...],
    records: int,
    dry_run: bool,
    policy: Policy,
    printing: Printing,
    **given: Any,
) -> None:
    """Run core workloads of the Yahoo! Cloud Serving Benchmark, to set figures beside its.

    a: 50 % reads, 50 % overwrites. b: 95 % and 5 %. c: reads. d: 95 % reads of the latest objects,
    5 % inserts. e: 95 % scans, 5 % inserts. f: 50 % reads, 50 % updates. Keys have a Zipf
    distribution. Objects have 1 KB, on 3 members with 10 clients, and a task makes 1000 operations,
    if options say nothing else. Results and exit status are those of `gridbench data run`.
    """
    from gridbench.datagrid.asked import request_of_ycsb

    request = request_of_ycsb(workloads, given, records=records, policy=policy, printing=printing)
    _run_or_list(request, dry_run=dry_run)


data.add_command(engines)
data.add_command(crossover)


def _run_or_list(request: Request, *, dry_run: bool) -> None:
    if dry_run:
        from gridbench.datagrid.listing import list_cases

        list_cases(request)
        return
    from gridbench.datagrid.command import run_data

    for caution in request.cautions():
        request.printing.say(caution)
    sys.exit(run_data(request))

"""The parameters and the commands of `gridbench data`."""

from __future__ import annotations

import difflib
import functools
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gridbench.command_line import CommandWithExamples
from gridbench.datagrid.crossover.options import crossover
from gridbench.datagrid.engines_command import engines
from gridbench.datagrid.presets import RECORDS, DataGridScale
from gridbench.datagrid.record import Updates
from gridbench.datagrid.workload import LIMITS
from gridbench.errors import InputError
from gridbench.machine.options import Policy
from gridbench.printing import Printing
from gridbench.quantities import (
    FLAG,
    MB,
    Count,
    Duration,
    ListOf,
    Quantity,
    Size,
    text_or_texts,
    words,
)
from gridbench.schema import group, option, read_parameters
from gridbench.shared_options import (
    HostOptions,
    ResultsOptions,
    dry_run_option,
    experiment_options,
    rounds_option,
)
from gridbench.workload.numbers import parse_real, shown

if TYPE_CHECKING:
    from gridbench.datagrid.engine import DataGridEngine
    from gridbench.datagrid.experiment import DataGridExperiment

P = TypeVar("P", "DataGridParameters", "DataScenarioParameters", "YcsbParameters")
_DEFAULT = "run"
_ALL = "all"
_LEAST_MEMORY = 64 * MB  # no Java process with a product in it has less
_MOST_MEMORY = 1 << 40
_HIGHEST_RATE = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """The rate of an open loop, of all clients together; either of both."""

    rate: float | None = None
    """Operations per second."""
    share: float | None = None
    """Of the throughput of the closed loop, which is measured before."""


class DataGrids(Quantity[tuple["DataGridEngine", ...]]):
    """Data grids by their names or files; `all` are those of gridbench that have members."""

    name = "data grids"

    def read(self, value: Any, folder: Path | None = None) -> tuple[DataGridEngine, ...]:
        """The data grids, no two of the same name."""
        from gridbench.datagrid.engine import find_engine, own_engines

        del folder
        found: list[DataGridEngine] = []
        for name in value:
            if name == _ALL:
                found += [one for one in own_engines() if one.manifest.members]
            else:
                found.append(find_engine(name))
        if not found:
            raise InputError(
                "no data grid with members comes with gridbench", remedy="name one by --engine"
            )
        once = list({one.file: one for one in found}.values())
        names = [one.name for one in once]
        if twice := [name for name in names if names.count(name) > 1]:
            raise InputError(
                f"two data grids are called `{twice[0]}`, and their results could not be told"
                " apart",
                remedy="rename the folder of one of them, after which it is called",
            )
        return tuple(once)


class OpenRates(Quantity[tuple[Offered, ...]]):
    """Rates of open loops, such as `5000`, `1000,2000` or `50%`."""

    name = "rates"

    def read(self, value: Any, folder: Path | None = None) -> tuple[Offered, ...]:
        """The rates, each once."""
        del folder
        given = text_or_texts(value)
        texts = [
            part.strip()
            for one in ([given] if isinstance(given, str) else given)
            for part in one.split(",")
        ]
        return tuple(dict.fromkeys(map(_rate, texts)))


def _rate(text: str) -> Offered:
    share = text.endswith("%")
    try:
        value = parse_real(text.removesuffix("%").rstrip(), 0.0, _HIGHEST_RATE)
        if value == 0:
            raise ValueError("must be above 0")
    except ValueError as error:
        raise InputError(
            f"`{shown(text)}` is no rate: it {error}",
            remedy="give operations per second, such as 5000, or a share of what the closed loop"
            " does, such as 50%",
        ) from None
    return Offered(share=value / 100) if share else Offered(rate=value)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataGridParameters:
    """How cases are measured, whichever they are."""

    engines: tuple[DataGridEngine, ...] = option(
        "--engine",
        DataGrids(),
        metavar="NAME",
        help="Data grid to measure, or the path of your own engine.toml; may be given several"
        " times. `all`: those with members.",
        default=(),
        default_text="embedded",
        multiple=True,
    )
    offered: tuple[Offered, ...] = option(
        "--open",
        OpenRates(),
        metavar="RATE",
        help="Measure each case in an open loop as well, in which so many operations begin in each"
        " second: such as 5000, or 50% of what the closed loop does; may be a list, or given"
        " several times.",
        default=(),
        multiple=True,
    )
    updates: Updates = option(
        "--updates",
        words("plain", "atomic"),
        help="How an object is updated. plain: it is read, then written. atomic: it is written only"
        " if nothing changed it since; otherwise it is read again.",
        default="plain",
    )
    kill: tuple[int, ...] = option(
        "--kill-node",
        ListOf(Count(0, int(LIMITS["MNodes"][1]) - 1), ascending=True),
        metavar="N[,M]",
        help="Kill these members, counted from 0, once half of the tasks have ended.",
        default=(),
    )
    warm: float | None = option(
        "--warm",
        Duration(1e-3, 3600.0),
        metavar="S",
        help="Warm-up at most, before each case; it ends when throughput is steady.",
        default_text="20",
    )
    no_warm: bool = option(
        "--no-warm",
        FLAG,
        help="Measure without warm-up: no run is valid then.",
        default=False,
    )
    processes: int | None = option(
        "--processes",
        Count(1, 64),
        metavar="N",
        help="Number of client processes; each client is a thread.",
        default_text="4, or as many as there are clients or cores, if these are fewer",
        record="processes",
    )
    member_memory: int | None = option(
        "--member-memory",
        Size(_LEAST_MEMORY, _MOST_MEMORY),
        metavar="SIZE",
        help="Memory of each member, such as 512MB.",
        default_text="a quarter of what is available, for all members together, and 128MB to 2GB"
        " for each; on other hosts 1GB for each",
        record="member_memory",
    )
    backups: int = option(
        "--backups",
        Count(0, 6),
        metavar="N",
        help="Copies of each object on other members, beside the object itself.",
        default=1,
        record="backups",
    )
    hosts: HostOptions = group(HostOptions)
    rounds: int = rounds_option(
        "How often each case is measured: two or more for claims, which come from repeats.", 1
    )
    results: ResultsOptions = group(ResultsOptions, out="runs/data-<what>-<time>")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataScenarioParameters:
    """The parameters of `gridbench data scenario`."""

    scale: DataGridScale = group(DataGridScale)
    full: bool = option(
        "--full",
        FLAG,
        help="Refuse cases that do not fit into the members, instead of making them smaller.",
        default=False,
    )
    measuring: DataGridParameters = group(DataGridParameters)


@dataclass(frozen=True, slots=True, kw_only=True)
class YcsbParameters:
    """The parameters of `gridbench data ycsb`."""

    scale: DataGridScale = group(DataGridScale)
    records: int = option(
        "--records",
        Count(1, 10_000_000_000),
        metavar="N",
        help="Objects that are stored beforehand.",
        default=RECORDS,
    )
    measuring: DataGridParameters = group(DataGridParameters)


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


@click.group(cls=DefaultToRun, short_help="Measure data grids: tasks read and update objects.")
def data() -> None:
    """Measure data grids: tasks read, update and insert objects of a cluster.

    `gridbench data SETUP.xml` runs one case, as `gridbench data run SETUP.xml` does, and `gridbench
    data` without a file a small one, for the first look.
    """


def _measuring(
    schema: type[P],
) -> Callable[[Callable[..., DataGridExperiment]], Callable[..., None]]:
    """Give a command the options of a schema. The experiment that it returns is run, or listed."""

    def decorate(command: Callable[..., DataGridExperiment]) -> Callable[..., None]:
        @experiment_options(schema)
        @dry_run_option
        @functools.wraps(command)
        def measure(
            *,
            dry_run: bool,
            policy: Policy,
            printing: Printing,
            given: dict[str, Any],
            **arguments: Any,
        ) -> None:
            experiment = command(read_parameters(schema, given), **arguments)
            _run_or_list(experiment, policy, printing, dry_run=dry_run)

        return measure

    return decorate


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
@_measuring(DataGridParameters)
def run(parameters: DataGridParameters, setup: Path | None) -> DataGridExperiment:
    """Run the case of SETUP.xml: the twelve parameters of the data-grid benchmark. Without a file:
    a small case, for the first look.

    Members and clients are processes of their own; the data grid `embedded` is a map in the
    client's process, and needs no members. Objects are stored beforehand and checked afterwards.
    The same command with the same --out resumes; --retry-failed repeats cases that failed. DIR then
    holds datagrid.jsonl, report.html and timelines.

    Exit status 1 says that a case failed or that data were wrong, 2 that the command cannot be
    followed or that a data grid does not start, 3 that other programs use the machine, so that
    nothing was measured, or disturbed all cases.
    """
    from gridbench.datagrid.experiment import of_setup

    return of_setup(setup, parameters)


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
@_measuring(DataScenarioParameters)
def scenario(parameters: DataScenarioParameters, scenarios: tuple[str, ...]) -> DataGridExperiment:
    """Run the cases of one or more scenarios; each reads, updates and inserts.

    1: size of objects, 1 KB to 10 MB, on 8 members with 10 clients. 2: 1, 10 and 100 clients.
    3: 1, 4 and 8 members with 100 clients.

    Options replace what a scenario has, and results say so. Cases whose objects do not fit into the
    members get fewer operations and objects, if --full does not forbid it. Results and exit status
    are those of `gridbench data run`.
    """
    from gridbench.datagrid.experiment import of_scenarios

    return of_scenarios(scenarios, parameters)


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
@_measuring(YcsbParameters)
def ycsb(parameters: YcsbParameters, workloads: tuple[str, ...]) -> DataGridExperiment:
    """Run core workloads of the Yahoo! Cloud Serving Benchmark, to set figures beside its.

    a: 50 % reads, 50 % overwrites. b: 95 % and 5 %. c: reads. d: 95 % reads of the latest objects,
    5 % inserts. e: 95 % scans, 5 % inserts. f: 50 % reads, 50 % updates. Keys have a Zipf
    distribution. Objects have 1 KB, on 3 members with 10 clients, and a task makes 1000 operations,
    if options say nothing else. Results and exit status are those of `gridbench data run`.
    """
    from gridbench.datagrid.experiment import of_ycsb

    return of_ycsb(workloads, parameters)


data.add_command(engines)
data.add_command(crossover)


def _run_or_list(
    experiment: DataGridExperiment, policy: Policy, printing: Printing, *, dry_run: bool
) -> None:
    from gridbench.datagrid.experiment import list_cases
    from gridbench.experiment import run_experiment

    work = experiment.work
    if dry_run:
        list_cases(work, printing)
        return
    for caution in work.cautions():
        printing.say(caution)
    sys.exit(run_experiment(experiment, work.parameters.results, policy, printing))

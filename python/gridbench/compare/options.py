"""The parameters and the command of `gridbench compare`."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click

from gridbench.command_line import CommandWithExamples
from gridbench.compare.record import Command, commands_of, needs_shell
from gridbench.errors import InputError
from gridbench.machine.options import Policy
from gridbench.printing import Printing
from gridbench.quantities import (
    AUTO,
    FLAG,
    PATH,
    ROUNDS,
    TEXT,
    Count,
    Duration,
    Each,
    PathText,
    Quantity,
)
from gridbench.schema import argument, option, read_parameters, record_of
from gridbench.shared_options import ResultsOptions, experiment_options, seed_option
from gridbench.workload.numbers import LONGEST_TIME


class ParameterLists(Quantity[Mapping[str, tuple[str, ...]]]):
    """Parameters with their values, each as `threads=1,2,4`."""

    name = "parameters"

    def read(self, value: Any, folder: Path | None = None) -> Mapping[str, tuple[str, ...]]:
        """Each parameter with its values."""
        del folder
        found: dict[str, tuple[str, ...]] = {}
        for text in value:
            name, equals, listed = text.partition("=")
            values = tuple(one.strip() for one in listed.split(","))
            if not equals or not re.fullmatch(r"\w+", name) or not all(values):
                raise InputError(
                    f"`{text[:60]}` is not a parameter",
                    remedy="give a name and its values, such as threads=1,2,4",
                )
            if name in found:
                raise InputError(f"{name} is given twice", remedy="give all values at once")
            found[name] = tuple(dict.fromkeys(values))
        return found


class InputFile(PathText):
    """The path of a file that can be read."""

    def read(self, value: Any, folder: Path | None = None) -> str:
        """The path."""
        path = super().read(value, folder)
        if not os.path.isfile(path):
            raise InputError(f"there is no file `{path}`", remedy="give the path of a file")
        return path


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonParameters:
    """Which commands are compared, and how they are run."""

    lines: tuple[str, ...] = argument(Each(TEXT), metavar="COMMAND...", default=(), multiple=True)
    names: tuple[str, ...] = option(
        "--name",
        Each(TEXT),
        metavar="NAME",
        help="Name of a command in the results; give one for each.",
        default=(),
        default_text="the command",
        multiple=True,
    )
    values: Mapping[str, tuple[str, ...]] = option(
        "--parameter",
        ParameterLists(),
        metavar="NAME=LIST",
        help="Run each command with each of these values in place of {NAME}, such as threads=1,2,4;"
        " may be given several times, for all combinations.",
        multiple=True,
    )
    rounds: int | Literal["auto"] = option(
        "--rounds",
        ROUNDS,
        metavar="N",
        help="How often each command is measured; auto: 10 to 50 times, until each ratio is known"
        " to 5 %.",
        default=AUTO,
    )
    limit: float = option(
        "--limit",
        Duration(1e-3, LONGEST_TIME),
        metavar="S",
        help="Seconds after which no further round begins.",
        default=300.0,
    )
    warm_up: int = option(
        "--warm-up",
        Count(0, 1000),
        metavar="N",
        help="Runs of each command before those that count.",
        default=1,
    )
    control: int = option(
        "--control",
        Count(0, 1000),
        metavar="N",
        help="Rounds of the A/A check: the first command against itself, to know the machine's"
        " noise.",
        default=5,
    )
    prepare: str = option(
        "--prepare",
        TEXT,
        metavar="COMMAND",
        help="Run this before each run; it is not timed.",
        default="",
        record="prepare",
    )
    cleanup: str = option(
        "--cleanup",
        TEXT,
        metavar="COMMAND",
        help="Run this after each run; it is not timed.",
        default="",
        record="cleanup",
    )
    input: str = option(
        "--input",
        InputFile(),
        metavar="FILE",
        help="Standard input of the commands.",
        default="",
        default_text="empty",
        record="input",
    )
    output: str = option(
        "--output",
        TEXT,
        metavar="null|pipe|inherit|FILE",
        help="Standard output of the commands: dropped, read through a pipe and dropped, shown, or"
        " written to FILE.",
        default="null",
        record="output",
    )
    in_shell: bool | None = option(
        "--shell/--no-shell",
        FLAG,
        help="Run the commands in /bin/sh, or without.",
        default_text="in a shell if one of them needs it",
    )
    ignore_failure: bool = option(
        "--ignore-failure",
        FLAG,
        help="Count runs that end with an exit status other than 0.",
        default=False,
        record="ignore_failure",
    )
    seed: int = seed_option()
    out: Path | None = option(
        "--out",
        PATH,
        metavar="DIR",
        help="Folder for the results.",
        default_text="runs/compare-<time>",
    )
    fresh: bool = option("--fresh", FLAG, help="Forget the results that DIR holds.", default=False)

    @property
    def commands(self) -> tuple[Command, ...]:
        """Each command with each combination of its parameters. InputError if they cannot be
        compared."""
        return commands_of(self.lines, self.names, self.values or {})

    @property
    def shell(self) -> bool:
        """Whether commands run in a shell."""
        return needs_shell(self.commands) if self.in_shell is None else self.in_shell

    def record(self) -> dict[str, Any]:
        """The resume key: what all rounds of a folder have in common."""
        commands = [
            {"name": one.name, "line": one.line, "parameters": one.parameters}
            for one in self.commands
        ]
        return {"commands": commands, "shell": self.shell, **record_of(self)}


@click.command(
    cls=CommandWithExamples,
    examples=(
        "gridbench compare './solve-old mesh.dat' './solve-new mesh.dat'",
        "gridbench compare --parameter n=1,2,4 'OMP_NUM_THREADS={n} ./solve'",
        "gridbench compare --rounds 20 --prepare 'rm -rf cache' './a' './b'",
        "gridbench compare --input data.csv --name old --name new './old' './new'",
    ),
)
@experiment_options(ComparisonParameters)
def compare(*, given: dict[str, Any], policy: Policy, printing: Printing) -> None:
    """Benchmark your own executables against each other.

    The commands run in turn, in a random order in each round, so that a machine that is slow for a
    while slows all of them. Before that, the first command runs against itself (A/A): a difference
    that is no larger than this noise is not claimed. Measured are wall, user and system time, and
    the peak memory of the largest process.

    DIR then holds compare.jsonl and report.html. The same command with the same --out resumes.

    Exit status 1: a command failed. 2: the options cannot be followed. 3: other programs disturbed
    the measurement, and the answer is provisional.
    """
    from gridbench.compare.experiment import ComparisonExperiment
    from gridbench.experiment import run_experiment

    parameters = read_parameters(ComparisonParameters, given)
    results = ResultsOptions(out=parameters.out, fresh=parameters.fresh)
    experiment = ComparisonExperiment(parameters, policy)
    sys.exit(run_experiment(experiment, results, policy, printing))

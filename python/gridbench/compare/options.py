"""The options of `gridbench compare`. What it needs is imported when it is called."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Literal

import click

from gridbench.command_with_examples import CommandWithExamples
from gridbench.errors import InputError
from gridbench.machine.options import load_options
from gridbench.machine.policy import Policy
from gridbench.printing import Printing, printing_options
from gridbench.quantities import AUTO, ROUNDS, SECONDS


@click.command(
    cls=CommandWithExamples,
    examples=(
        "gridbench compare './solve-old mesh.dat' './solve-new mesh.dat'",
        "gridbench compare --parameter n=1,2,4 'OMP_NUM_THREADS={n} ./solve'",
        "gridbench compare --rounds 20 --prepare 'rm -rf cache' './a' './b'",
        "gridbench compare --input data.csv --name old --name new './old' './new'",
    ),
)
@click.argument("lines", nargs=-1, required=True, metavar="COMMAND...")
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="NAME",
    help="What a command is called in the results; give one for each. [default: the command]",
)
@click.option(
    "--parameter",
    "parameters",
    multiple=True,
    metavar="NAME=LIST",
    help="Run each command with each of these values in place of {NAME}, such as threads=1,2,4; may"
    " be given several times, for all combinations.",
)
@click.option(
    "--rounds",
    type=ROUNDS,
    default=AUTO,
    show_default=True,
    metavar="N",
    help="How often each command is measured; auto: 10 to 50 times, until each ratio is known to"
    " 5 %.",
)
@click.option(
    "--limit",
    type=SECONDS,
    default=300.0,
    show_default=True,
    metavar="S",
    help="Seconds after which no further round begins.",
)
@click.option(
    "--warm-up",
    type=click.IntRange(0, 1000),
    default=1,
    show_default=True,
    metavar="N",
    help="Runs of each command before those that count.",
)
@click.option(
    "--control",
    type=click.IntRange(0, 1000),
    default=5,
    show_default=True,
    metavar="N",
    help="Rounds of the A/A check: the first command against itself, to know the machine's noise.",
)
@click.option(
    "--prepare", default="", metavar="COMMAND", help="Run this before each run; it is not timed."
)
@click.option(
    "--cleanup", default="", metavar="COMMAND", help="Run this after each run; it is not timed."
)
@click.option(
    "--input",
    "input_file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Standard input of the commands. [default: empty]",
)
@click.option(
    "--output",
    default="null",
    show_default=True,
    metavar="null|pipe|inherit|FILE",
    help="Standard output of the commands: dropped, read through a pipe and dropped, shown, or"
    " written to FILE.",
)
@click.option(
    "--shell/--no-shell",
    default=None,
    help="Run the commands in /bin/sh, or without. [default: in a shell if one of them needs it]",
)
@click.option(
    "--ignore-failure",
    is_flag=True,
    help="Count runs that end with an exit status other than 0.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31 - 1),
    default=1,
    show_default=True,
    metavar="K",
    help="Seed of what is random: the same seed gives the same order and times.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder for the results. [default: runs/compare-<time>]",
)
@click.option("--fresh", is_flag=True, help="Forget the results that DIR holds.")
@load_options
@printing_options
def compare(
    *,
    lines: tuple[str, ...],
    names: tuple[str, ...],
    parameters: tuple[str, ...],
    rounds: int | Literal["auto"],
    limit: float,
    warm_up: int,
    control: int,
    prepare: str,
    cleanup: str,
    input_file: Path | None,
    output: str,
    shell: bool | None,
    ignore_failure: bool,
    seed: int,
    out: Path | None,
    fresh: bool,
    policy: Policy,
    printing: Printing,
) -> None:
    """Benchmark your own executables against each other.

    The commands run in turn, in a random order in each round, so that a machine that is slow for a
    while slows all of them. Before that, the first command runs against itself (A/A): a difference
    that is no larger than this noise is not claimed. Measured are wall, user and system time, and
    the peak memory of the largest process.

    DIR then holds compare.jsonl and report.html. The same command with the same --out resumes.

    Exit status 1: a command failed. 2: the options cannot be followed. 3: other programs disturbed
    the measurement, and the answer is provisional.
    """
    from gridbench.compare.command import ComparisonPlan, run_compare
    from gridbench.compare.record import Setting, commands_of, needs_shell

    if not limit > 0:
        raise InputError("--limit must be above 0", remedy="give seconds, or such as 10min")
    commands = commands_of(lines, names, _values(parameters))
    setting = Setting(
        commands=commands,
        shell=needs_shell(commands) if shell is None else shell,
        prepare=prepare,
        cleanup=cleanup,
        input="" if input_file is None else str(input_file),
        output=output,
        ignore_failure=ignore_failure,
    )
    sys.exit(
        run_compare(
            ComparisonPlan(
                setting=setting,
                rounds=rounds,
                warm_up=warm_up,
                control=control,
                limit=limit,
                seed=seed,
                folder=out,
                fresh=fresh,
                policy=policy,
                printing=printing,
            )
        )
    )


def _values(parameters: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Each parameter with its values. InputError for what is none."""
    found: dict[str, tuple[str, ...]] = {}
    for text in parameters:
        name, equals, listed = text.partition("=")
        values = tuple(value.strip() for value in listed.split(","))
        if not equals or not re.fullmatch(r"\w+", name) or not all(values):
            raise InputError(
                f"--parameter: `{text[:60]}` is not a parameter",
                remedy="give a name and its values, such as threads=1,2,4",
            )
        if name in found:
            raise InputError(f"--parameter {name} is given twice", remedy="give all values at once")
        found[name] = tuple(dict.fromkeys(values))
    return found

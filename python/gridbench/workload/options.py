"""The options of `gridbench list-times`. What it needs is imported when it is called."""

from __future__ import annotations

from pathlib import Path

import click

from gridbench.command_with_examples import CommandWithExamples
from gridbench.printing import json_option, print_json
from gridbench.quantities import Count
from gridbench.workload.task_options import seed_option, stddev_option


@click.command(
    "list-times",
    cls=CommandWithExamples,
    examples=(
        "gridbench list-times --tasks 200 --mean 1 --stddev 0.1 --out input.200.1.0.1",
        "gridbench list-times --tasks 1200 --mean 30 --stddev 0 --seed 7 --out input.30",
    ),
)
@click.option(
    "--tasks", type=Count(1, 10_000_000), required=True, metavar="N", help="Number of tasks."
)
@click.option("--mean", type=float, required=True, metavar="M", help="Mean, in seconds.")
@stddev_option
@seed_option
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="The list to write.",
)
@click.option("--force", is_flag=True, help="Replace what is there.")
@json_option
def list_times(
    *, tasks: int, mean: float, stddev: str | None, seed: int, out: Path, force: bool, as_json: bool
) -> None:
    """Write a list of task times, for the InputFile of a set-up file.

    Times are drawn from a normal distribution that is truncated at 0.
    """
    from gridbench.formats import counted, duration, spread
    from gridbench.quantities import parse_stddev
    from gridbench.workload.task_times import write_task_times

    seconds, share = parse_stddev("--stddev", stddev or "0")
    deviation = seconds + share * mean
    times = write_task_times(out, tasks, mean, deviation, seed, replace=force)
    least, most, average = (float(one) for one in (times.min(), times.max(), times.mean()))
    if as_json:
        print_json({"file": out, "tasks": tasks, "min": least, "max": most, "mean": average})
        return
    click.echo(
        f"{out}: {counted(tasks, 'time')}, {spread([least, most])}, mean {duration(average)}"
    )

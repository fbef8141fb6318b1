"""The program `gridbench`.

The options of each command stand beside what it does. What that needs is imported when the command
is called, so that help comes at once.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from typing import Any

import click

from gridbench.advise.options import advise
from gridbench.bench.areas.options import bench
from gridbench.bench.micro.options import micro
from gridbench.check.options import check
from gridbench.completion import completion
from gridbench.datagrid.options import data
from gridbench.encodings import replace_missing_signs
from gridbench.engines.options import engines
from gridbench.errors import InputError
from gridbench.links.options import links
from gridbench.model.options import model
from gridbench.published.options import published
from gridbench.results.options import report
from gridbench.run.options import run
from gridbench.scenario.options import scenario
from gridbench.services.options import services
from gridbench.simulate.options import simulate
from gridbench.sync.options import sync
from gridbench.workload.options import list_times

_COMMANDS = (
    advise,
    bench,
    check,
    completion,
    data,
    engines,
    links,
    list_times,
    micro,
    model,
    published,
    report,
    run,
    scenario,
    services,
    simulate,
    sync,
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point: exit status 2 for bad input and 3 for a busy machine, with one message and no
    traceback."""
    for stream in (sys.stdout, sys.stderr):
        replace_missing_signs(stream)
    try:
        cli.main(args=arguments, prog_name="gridbench")
    except InputError as error:
        print(f"gridbench: {error}", file=sys.stderr)
        sys.exit(error.exit_status)


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
    cls=_Program,
    commands=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
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

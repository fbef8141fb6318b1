"""The commands `gridbench engines`. What they need is imported when they are called."""

from __future__ import annotations

import sys

import click

from gridbench.command_line import CommandWithExamples
from gridbench.printing import json_option, quiet_option


@click.group(invoke_without_command=True)
@click.option("--where", is_flag=True, help="Show where each of them is, instead of what it is.")
@json_option
@click.pass_context
def engines(context: click.Context, *, where: bool, as_json: bool) -> None:
    """List the engines, and which of them are installed.

    Engines whose dependencies conflict with others' live in Python environments of their own, in
    $GRIDBENCH_ENGINES, by default in share/gridbench/engines of this Python.
    """
    if context.invoked_subcommand is None:
        from gridbench.engines.commands import list_engines

        list_engines(where=where, as_json=as_json)


@engines.command(
    cls=CommandWithExamples,
    examples=("gridbench engines install ray dask", "gridbench engines install --all"),
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--all", "everything", is_flag=True, help="Install all of them.")
@quiet_option
def install(*, names: tuple[str, ...], everything: bool, quiet: bool) -> None:
    """Make the environments of engines, or repair them.

    Environments that are up to date are not touched.
    """
    from gridbench.engines.commands import install_engines

    sys.exit(install_engines(names, everything=everything, quiet=quiet))


@engines.command(cls=CommandWithExamples, examples=("gridbench engines remove ray",))
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@quiet_option
def remove(names: tuple[str, ...], *, quiet: bool) -> None:
    """Remove the environments of engines."""
    from gridbench.engines.commands import remove_engines

    sys.exit(remove_engines(names, quiet=quiet))

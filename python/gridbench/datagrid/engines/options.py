"""The commands `gridbench data engines`. What they need is imported when they are called."""

from __future__ import annotations

import sys

import click

from gridbench.command_with_examples import CommandWithExamples
from gridbench.printing import json_option, quiet_option


@click.group(invoke_without_command=True)
@click.option("--where", is_flag=True, help="Show where each of them is, instead of what it is.")
@json_option
@click.pass_context
def engines(context: click.Context, *, where: bool, as_json: bool) -> None:
    """List the data grids, and which of them are installed.

    Maven fetches and builds them, for Java 17 or newer. They lie in the folder datagrid below
    $GRIDBENCH_ENGINES, or below share/gridbench/engines of this Python.
    """
    if context.invoked_subcommand is None:
        from gridbench.datagrid.engines.commands import list_engines

        list_engines(where=where, as_json=as_json)


@engines.command(
    cls=CommandWithExamples,
    examples=(
        "gridbench data engines install hazelcast geode",
        "gridbench data engines install --all",
    ),
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--all", "everything", is_flag=True, help="Install all of them.")
@quiet_option
def install(*, names: tuple[str, ...], everything: bool, quiet: bool) -> None:
    """Fetch and build data grids, or repair what is there.

    Those that are up to date are not touched. `gridbench data` builds what it needs by itself; this
    is for doing it beforehand, on a host or where the network is.
    """
    from gridbench.datagrid.engines.commands import install_engines

    sys.exit(install_engines(names, everything=everything, quiet=quiet))


@engines.command(cls=CommandWithExamples, examples=("gridbench data engines remove geode",))
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@quiet_option
def remove(names: tuple[str, ...], *, quiet: bool) -> None:
    """Remove what was built of data grids.

    What Maven has fetched stays in its own repository, ~/.m2.
    """
    from gridbench.datagrid.engines.commands import remove_engines

    sys.exit(remove_engines(names, quiet=quiet))


@engines.command(
    "class-path",
    cls=CommandWithExamples,
    examples=('javac -cp "$(gridbench data engines class-path)" -d classes mine/*.java',),
)
def class_path() -> None:
    """Print the class path that a data grid of your own is compiled with.

    What it names is built if that has not been done yet.
    """
    from gridbench.datagrid.engines.commands import print_class_path

    print_class_path()

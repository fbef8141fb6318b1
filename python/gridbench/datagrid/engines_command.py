"""The commands `gridbench data engines`. Imports are deferred until they run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from gridbench.command_line import CommandWithExamples
from gridbench.errors import InputError
from gridbench.printing import json_option, quiet_option

if TYPE_CHECKING:
    from gridbench.datagrid.engine import DataGridEngine
    from gridbench.datagrid.engine_build import Build


@click.group(invoke_without_command=True)
@click.option("--where", is_flag=True, help="Show where each of them is, instead of what it is.")
@json_option
@click.pass_context
def engines(context: click.Context, *, where: bool, as_json: bool) -> None:
    """List the data grids, and which of them are installed.

    Maven fetches and builds them, for Java 17 or newer. They lie in the folder datagrid below
    $GRIDBENCH_ENGINES, or below share/gridbench/engines of this Python.
    """
    if context.invoked_subcommand is not None:
        return
    from gridbench.datagrid.engine import own_engines
    from gridbench.datagrid.engine_build import Build
    from gridbench.engines.commands import ListedEngine, print_listed

    listed = []
    for engine in own_engines():
        state = engine.build.state()
        kind, problem = state.kind, ""
        if kind != "installed":
            problem = f"{engine.name} {state.what}: {state.remedy}"
        else:
            try:
                engine.require()
            except InputError as error:
                kind, problem = "half installed", f"{engine.name} is half installed: {error}"
        manifest, folder = engine.manifest, str(engine.build.folder)
        listed.append(
            ListedEngine(engine.name, kind, manifest.version, manifest.title, folder, problem)
        )
    print_listed(listed, Build.commands, where=where, as_json=as_json)


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
    from gridbench.datagrid.engine import own_engines
    from gridbench.datagrid.engine_build import Build
    from gridbench.datagrid.engine_build import install as build
    from gridbench.engines.commands import act_on_each, none_named

    if not everything and not names:
        raise none_named(Build.commands)
    chosen = own_engines() if everything else map(_own_engine, names)
    sys.exit(act_on_each(_builds(chosen), build, quiet=quiet))


@engines.command(cls=CommandWithExamples, examples=("gridbench data engines remove geode",))
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@quiet_option
def remove(names: tuple[str, ...], *, quiet: bool) -> None:
    """Remove what was built of data grids.

    What Maven has fetched stays in its own repository, ~/.m2.
    """
    from gridbench.engines.commands import act_on_each
    from gridbench.engines.installing import remove as remove_build

    sys.exit(act_on_each(_builds(map(_own_engine, names)), remove_build, quiet=quiet))


@engines.command(
    "class-path",
    cls=CommandWithExamples,
    examples=('javac -cp "$(gridbench data engines class-path)" -d classes mine/*.java',),
)
def class_path() -> None:
    """Print the class path that a data grid of your own is compiled with.

    What it names is built if that has not been done yet.
    """
    from gridbench.datagrid.engine import find_engine
    from gridbench.datagrid.engine_build import CORE

    core = find_engine(CORE)
    core.ensure(lambda line: print(f"{CORE}: {line}", file=sys.stderr))
    print(*core.class_path(), sep=os.pathsep)


def _builds(engines: Iterable[DataGridEngine]) -> list[Build]:
    """The builds of some data grids; some share one."""
    return list({build.name: build for build in (engine.build for engine in engines)}.values())


def _own_engine(name: str) -> DataGridEngine:
    """A data grid that gridbench builds. InputError for a user's own."""
    from gridbench.datagrid.engine import find_engine

    engine = find_engine(name)
    if not engine.own:
        raise InputError(
            "is the file of a data grid of your own, which gridbench does not build",
            file=engine.file,
            remedy="build what its `classpath` names, and use it: `gridbench data --engine FILE`",
        )
    return engine

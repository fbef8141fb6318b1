"""The commands `gridbench engines`, `gridbench engines install` and `gridbench engines remove`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import EntryPoint
from itertools import starmap

import click

from gridbench.command_line import CommandWithExamples
from gridbench.engines.environments import Environment, environment, install_environment
from gridbench.engines.installing import InstallableT, Tell
from gridbench.engines.installing import remove as remove_folder
from gridbench.engines.names import OWN_CLUSTER, RENAMED
from gridbench.engines.registry import find_engine, installed_engines, provider, what_it_is
from gridbench.errors import InputError, print_error
from gridbench.printing import json_option, print_json, quiet_option

# ---- The command line


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
    sys.exit(install_engines(names, everything=everything, quiet=quiet))


@engines.command(cls=CommandWithExamples, examples=("gridbench engines remove ray",))
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@quiet_option
def remove(names: tuple[str, ...], *, quiet: bool) -> None:
    """Remove the environments of engines."""
    sys.exit(remove_engines(names, quiet=quiet))


# ---- What it does


@dataclass(frozen=True, slots=True)
class ListedEngine:
    """A line of the list."""

    name: str
    state: str
    version: str
    what: str
    where: str
    problem: str = ""
    """Why it cannot be used, and the remedy."""


def print_listed(
    listed: Sequence[ListedEngine], commands: str, *, where: bool, as_json: bool, note: str = ""
) -> None:
    """Print a line for each engine, or all of it as JSON: name, state, version, and description or
    place. `commands`: the command that installs them. `note`: printed at the end."""
    if as_json:
        print_json([asdict(one) for one in listed])
        return
    rows = [("NAME", "STATE", "VERSION", "WHERE" if where else "WHAT")]
    rows += [(one.name, one.state, one.version, one.where if where else one.what) for one in listed]
    missing = any(one.state == "missing" for one in listed)
    problems = [one.problem for one in listed if one.problem and one.state != "missing"]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [f"{cell:{width}}" for cell, width in zip(row, widths, strict=False)]
        print("  ".join([*cells, row[-1]]).rstrip())
    if missing:
        problems.append(f"`{commands} install NAME...`, or --all, installs what is missing")
    if note:
        problems.append(note)
    if problems:
        print()
        print(*problems, sep="\n")


def act_on_each(
    chosen: Sequence[InstallableT], act: Callable[[InstallableT, Tell], None], *, quiet: bool
) -> int:
    """Install or remove engines in parallel, also after one has failed; the exit status."""

    def notify(one: InstallableT, line: str) -> None:
        if not quiet:
            print(f"{one.name}: {line}\n", end="", flush=True)

    def acted(one: InstallableT) -> bool:
        try:
            act(one, partial(notify, one))
        except InputError as error:
            print_error(error)
            return False
        return True

    # pip and Maven use one processor each. Threads print whole lines.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            failed = not all(list(pool.map(acted, chosen)))
        except BaseException:
            # Do not wait for those that have not begun.
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    if failed:
        print(f"{chosen[0].kind}s are in {chosen[0].root}", file=sys.stderr)
    return 2 if failed else 0


def none_named(commands: str) -> InputError:
    """The error for an installation without names."""
    return InputError(
        "no engine is named", remedy=f"name one or several, or use --all; see `{commands}`"
    )


def list_engines(*, where: bool, as_json: bool = False) -> None:
    """Print a line for each engine, or all of it as JSON."""
    found = installed_engines()
    if not found:
        raise InputError("no engines are installed", remedy="install the package with pip")
    listed = list(starmap(_listed, found.items()))
    emulated = RENAMED.values() & found.keys()
    note = f"emulated-*: gridbench starts the batch system; {OWN_CLUSTER}" if emulated else ""
    print_listed(listed, Environment.commands, where=where, as_json=as_json, note=note)


def _listed(name: str, point: EntryPoint) -> ListedEngine:
    own = environment(name)
    if own is None:
        version = point.dist.version if point.dist else "unknown"
        where = f"{point.value} ({provider(point)})"
        return ListedEngine(name, "installed", version, what_it_is(point), where)
    state = own.state()
    version = state.version or own.required()[0].version
    problem = "" if state.kind == "installed" else f"{name} {state.what}: {state.remedy}"
    return ListedEngine(name, state.kind, version, what_it_is(point), str(own.folder), problem)


def install_engines(names: Sequence[str], *, everything: bool, quiet: bool = False) -> int:
    """Install engines in parallel, also after one has failed; the exit status."""
    if everything:
        every = [own for name in installed_engines() if (own := environment(name)) is not None]
        # Some engines share an environment.
        chosen = list({own.name: own for own in every}.values())
    elif names:
        chosen = [own for name in names if (own := _own(name)) is not None]
    else:
        raise none_named(Environment.commands)
    return act_on_each(chosen, install_environment, quiet=quiet)


def remove_engines(names: Sequence[str], *, quiet: bool = False) -> int:
    """Remove the environments of engines; the exit status."""
    chosen = [own for name in names if (own := _own(name)) is not None]
    return act_on_each(chosen, remove_folder, quiet=quiet)


def _own(name: str) -> Environment | None:
    """The environment of a known engine; None, with a message, if it needs none.

    Some are peers of `python -m benchmarks` instead of engines (requirements/NAME.txt).
    """
    own = environment(name)
    if own is None:
        point = find_engine(name)
        print(f"{name}: comes with {provider(point)}, and has no environment of its own")
    return own

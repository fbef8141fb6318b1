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

from gridbench.engines.environments import Environment, environment, environments_folder
from gridbench.engines.installation import install, remove
from gridbench.engines.registry import find_engine, installed_engines, provider, what_it_is
from gridbench.errors import InputError
from gridbench.printing import print_json


@dataclass(frozen=True, slots=True)
class _Listed:
    """What the list says of an engine."""

    name: str
    state: str
    version: str
    what: str
    where: str
    problem: str = ""
    """Why it cannot be used, and what to do about it."""


def list_engines(*, where: bool, as_json: bool = False) -> None:
    """Print a line for each engine: name, state, version, and what it is, or where; or all of this
    as JSON."""
    found = installed_engines()
    if not found:
        raise InputError("no engines are installed", remedy="install the package with pip")
    listed = list(starmap(_listed, found.items()))
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
        problems.append("`gridbench engines install NAME...`, or --all, installs what is missing")
    if problems:
        print()
        print(*problems, sep="\n")


def _listed(name: str, point: EntryPoint) -> _Listed:
    own = environment(name)
    if own is None:
        version = point.dist.version if point.dist else "unknown"
        where = f"{point.value} ({provider(point)})"
        return _Listed(name, "installed", version, what_it_is(point), where)
    state = own.state()
    version = state.version or own.required()[0].version
    problem = "" if state.kind == "installed" else f"{name} {state.what}: {state.remedy}"
    return _Listed(name, state.kind, version, what_it_is(point), str(own.folder), problem)


def install_engines(names: Sequence[str], *, everything: bool, quiet: bool = False) -> int:
    """Install engines side by side, going on with the others when one fails; the exit status."""
    if everything:
        every = [own for name in installed_engines() if (own := environment(name)) is not None]
        # Some engines share one.
        chosen = list({own.name: own for own in every}.values())
    elif names:
        chosen = [own for name in names if (own := _own(name)) is not None]
    else:
        raise InputError(
            "no engine is named",
            remedy="name one or several, or use --all; see `gridbench engines`",
        )
    return _each(chosen, install, quiet=quiet)


def remove_engines(names: Sequence[str], *, quiet: bool = False) -> int:
    """Remove the environments of engines; the exit status."""
    chosen = [own for name in names if (own := _own(name)) is not None]
    return _each(chosen, remove, quiet=quiet)


def _own(name: str) -> Environment | None:
    """The environment of an engine that is known; None, and told, if it needs none."""
    point = find_engine(name)
    own = environment(name)
    if own is None:
        print(f"{name}: comes with {provider(point)}, and has no environment of its own")
    return own


def _each(
    chosen: list[Environment],
    act: Callable[[Environment, Callable[[str], None]], None],
    *,
    quiet: bool,
) -> int:
    def tell(own: Environment, line: str) -> None:
        if not quiet:
            print(f"{own.name}: {line}\n", end="", flush=True)

    def acted(own: Environment) -> bool:
        try:
            act(own, partial(tell, own))
        except InputError as error:
            print(f"gridbench: {error}\n", end="", file=sys.stderr, flush=True)
            return False
        return True

    # pip keeps one processor busy. Lines are written whole: several threads tell.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            failed = not all(list(pool.map(acted, chosen)))
        except BaseException:
            # Those that have not begun need not be waited for.
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    if failed:
        print(f"environments are in {environments_folder()}", file=sys.stderr)
    return 2 if failed else 0

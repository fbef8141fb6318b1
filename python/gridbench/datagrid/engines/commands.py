"""The commands `gridbench data engines`, and `install` and `remove` below it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

from gridbench.datagrid.engines.build import Build
from gridbench.datagrid.engines.engine import Engine, find_engine, own_engines
from gridbench.datagrid.engines.installation import install
from gridbench.datagrid.engines.sources import CORE
from gridbench.engines.installing import remove
from gridbench.engines.listing import Listed, act_on_each, none_named, print_listed
from gridbench.errors import InputError


def list_engines(*, where: bool, as_json: bool = False) -> None:
    """Print a line for each data grid: name, state, version, and what it is, or where; or all of
    this as JSON."""
    listed = [_listed(engine) for engine in own_engines()]
    print_listed(listed, Build.commands, where=where, as_json=as_json)


def _listed(engine: Engine) -> Listed:
    state = engine.build.state()
    kind, problem = state.kind, ""
    if kind != "installed":
        problem = f"{engine.name} {state.what}: {state.remedy}"
    else:
        try:
            engine.require()
        except InputError as error:
            kind, problem = "half installed", f"{engine.name} is half installed: {error}"
    described = engine.described
    where = str(engine.build.folder)
    return Listed(engine.name, kind, described.version, described.title, where, problem)


def install_engines(names: Sequence[str], *, everything: bool, quiet: bool = False) -> int:
    """Build data grids, going on with the others when one fails; the exit status."""
    if everything:
        chosen = _builds(own_engines())
    elif names:
        chosen = _builds(map(_own, names))
    else:
        raise none_named(Build.commands)
    return act_on_each(chosen, install, quiet=quiet)


def remove_engines(names: Sequence[str], *, quiet: bool = False) -> int:
    """Remove what was built of data grids; the exit status."""
    return act_on_each(_builds(map(_own, names)), remove, quiet=quiet)


def print_class_path() -> None:
    """Print where the core's interfaces are, for Java's compiler."""
    core = find_engine(CORE)
    core.ensure(lambda line: print(f"{CORE}: {line}", file=sys.stderr))
    print(*core.class_path(), sep=os.pathsep)


def _builds(engines: Iterable[Engine]) -> list[Build]:
    """What they live in: some share one."""
    return list({build.name: build for build in (engine.build for engine in engines)}.values())


def _own(name: str) -> Engine:
    engine = find_engine(name)
    if not engine.own:
        raise InputError(
            "is the file of a data grid of your own, which gridbench does not build",
            file=engine.file,
            remedy="build what its `classpath` names, and use it: `gridbench data --engine FILE`",
        )
    return engine

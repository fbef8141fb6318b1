"""The commands `gridbench engines`, `gridbench engines install` and `gridbench engines remove`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import EntryPoint
from itertools import starmap

from gridbench.engines.environments import Environment, environment
from gridbench.engines.installation import install
from gridbench.engines.installing import remove
from gridbench.engines.listing import Listed, act_on_each, none_named, print_listed
from gridbench.engines.names import OWN_CLUSTER, RENAMED
from gridbench.engines.registry import find_engine, installed_engines, provider, what_it_is
from gridbench.errors import InputError


def list_engines(*, where: bool, as_json: bool = False) -> None:
    """Print a line for each engine: name, state, version, and what it is, or where; or all of this
    as JSON."""
    found = installed_engines()
    if not found:
        raise InputError("no engines are installed", remedy="install the package with pip")
    listed = list(starmap(_listed, found.items()))
    emulated = RENAMED.values() & found.keys()
    note = f"emulated-*: gridbench starts the batch system; {OWN_CLUSTER}" if emulated else ""
    print_listed(listed, Environment.commands, where=where, as_json=as_json, note=note)


def _listed(name: str, point: EntryPoint) -> Listed:
    own = environment(name)
    if own is None:
        version = point.dist.version if point.dist else "unknown"
        where = f"{point.value} ({provider(point)})"
        return Listed(name, "installed", version, what_it_is(point), where)
    state = own.state()
    version = state.version or own.required()[0].version
    problem = "" if state.kind == "installed" else f"{name} {state.what}: {state.remedy}"
    return Listed(name, state.kind, version, what_it_is(point), str(own.folder), problem)


def install_engines(names: Sequence[str], *, everything: bool, quiet: bool = False) -> int:
    """Install engines side by side, going on with the others when one fails; the exit status."""
    if everything:
        every = [own for name in installed_engines() if (own := environment(name)) is not None]
        # Some engines share one.
        chosen = list({own.name: own for own in every}.values())
    elif names:
        chosen = [own for name in names if (own := _own(name)) is not None]
    else:
        raise none_named(Environment.commands)
    return act_on_each(chosen, install, quiet=quiet)


def remove_engines(names: Sequence[str], *, quiet: bool = False) -> int:
    """Remove the environments of engines; the exit status."""
    chosen = [own for name in names if (own := _own(name)) is not None]
    return act_on_each(chosen, remove, quiet=quiet)


def _own(name: str) -> Environment | None:
    """The environment of an engine that is known; None, and told, if it needs none.

    Some are no engines, but peers of `python -m benchmarks` (requirements/NAME.txt).
    """
    own = environment(name)
    if own is None:
        point = find_engine(name)
        print(f"{name}: comes with {provider(point)}, and has no environment of its own")
    return own

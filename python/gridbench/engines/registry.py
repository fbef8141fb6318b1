"""Finding engines by name, among all installed packages.

A package adds an engine by an entry point of the group `gridbench.engines`. Its code is imported
only when the engine is chosen, so heavy or missing libraries do not affect other engines.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Sequence
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint, entry_points
from typing import IO

from gridbench.engines.base import Cannot, Engine
from gridbench.engines.functions import one_line
from gridbench.engines.names import OWN_CLUSTER, RENAMED
from gridbench.errors import InputError
from gridbench.program import with_pandas

GROUP = "gridbench.engines"


def installed_engines() -> dict[str, EntryPoint]:
    """The entry point of every installed engine, by name, sorted. Imports none of them."""
    found: dict[str, EntryPoint] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        other = found.setdefault(point.name, point)
        # A package can be twice on the path; two different ones cannot share a name.
        if other.value != point.value:
            raise InputError(
                f"two packages provide an engine `{point.name}`: {other.value} and {point.value}",
                remedy="uninstall one of them",
            )
    return found


def find_engine(name: str) -> EntryPoint:
    """The entry point of the engine `name`; InputError if there is none."""
    known = installed_engines()
    if name not in known and name in RENAMED:
        raise InputError(
            f"the engine `{name}` is now `{RENAMED[name]}`",
            remedy=f"use that name; {OWN_CLUSTER}",
        )
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
        guess = f"did you mean `{near[0]}`? " if near else ""
        names = ", ".join(known) if known else "none; install the package with pip"
        remedy = f"{guess}known engines: {names}; `gridbench engines` shows which can be used"
        raise InputError(f"unknown engine `{name}`", remedy=remedy)
    return known[name]


def load_engine(point: EntryPoint) -> type[Engine]:
    """Import the class of an engine. InputError if it cannot be used."""
    if not point.module.startswith("gridbench."):
        with_pandas()
    try:
        engine = point.load()
    except Exception as error:  # foreign code
        raise InputError(
            f"the engine `{point.name}` cannot be loaded: {one_line(error)}",
            remedy=f"install what {provider(point)} needs, or choose another engine",
        ) from error
    if not (isinstance(engine, type) and issubclass(engine, Engine)):
        raise InputError(
            f"the entry point `{point.name}` is not an engine: {point.value} does not subclass"
            " gridbench.engines.base.Engine",
            remedy=f"correct the entry point in {provider(point)}",
        )
    return engine


def make_engine(point: EntryPoint) -> Engine:
    """A new engine, not started. InputError if it cannot be created."""
    try:
        return load_engine(point)()
    except InputError:
        raise
    except Cannot as error:
        remedy = OWN_CLUSTER if point.name in RENAMED.values() else ""
        raise InputError(
            f"the engine `{point.name}` cannot be set up: {error}", remedy=remedy
        ) from error
    except Exception as error:
        raise InputError(
            f"the engine `{point.name}` cannot be set up: {one_line(error)}",
            remedy="see the engine's own manual for what it needs",
        ) from error


def provider(point: EntryPoint) -> str:
    """The package that an entry point comes from, with its version."""
    dist = point.dist
    return f"{dist.name} {dist.version}" if dist else "an unknown package"


def what_it_is(point: EntryPoint) -> str:
    """The first line of the engine's docstring, read from its source without running it."""
    try:
        with _source(point.module) as file:
            body = ast.parse(file.read()).body
    except (ImportError, OSError, SyntaxError, ValueError):
        return ""
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name == point.attr:
            lines = (ast.get_docstring(node) or "").splitlines()
            return lines[0] if lines else ""
    return ""


def _source(module: str) -> IO[bytes]:
    """The source of a module, opened; ImportError without one. Imports no package."""
    path: Sequence[str] | None = None
    spec = None
    names = module.split(".")
    for number in range(1, len(names) + 1):
        spec = PathFinder.find_spec(".".join(names[:number]), path)
        if spec is None:
            raise ImportError(module)
        path = spec.submodule_search_locations
    if spec is None or spec.origin is None:
        raise ImportError(module)
    return open(spec.origin, "rb")

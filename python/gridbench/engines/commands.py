"""The commands `gridbench engines`, `gridbench engines install` and `gridbench engines remove`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from gridbench.engines.environments import Environment, environment, environments_folder
from gridbench.engines.installation import install, remove
from gridbench.engines.registry import find_engine, installed_engines, provider, what_it_is
from gridbench.errors import InputError


def list_engines(*, where: bool) -> None:
    """Print a line for each engine: name, state, version, and what it is, or where."""
    found = installed_engines()
    if not found:
        raise InputError("no engines are installed", remedy="install the package with pip")
    rows = [("NAME", "STATE", "VERSION", "WHERE" if where else "WHAT")]
    problems: list[str] = []
    missing: list[str] = []
    for name, point in found.items():
        own = environment(name)
        if own is None:
            version = point.dist.version if point.dist else "unknown"
            told = f"{point.value} ({provider(point)})" if where else what_it_is(point)
            rows.append((name, "installed", version, told))
            continue
        state = own.state()
        version = state.version or own.required()[0].version
        told = str(own.folder) if where else what_it_is(point)
        rows.append((name, state.kind, version, told))
        if state.kind == "missing":
            missing.append(name)
        elif state.kind != "installed":
            problems.append(f"{name} {state.what}: {state.remedy}")
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [f"{cell:{width}}" for cell, width in zip(row, widths, strict=False)]
        print("  ".join([*cells, row[-1]]).rstrip())
    if missing:
        problems.append("`gridbench engines install NAME...`, or --all, installs what is missing")
    if problems:
        print()
        print(*problems, sep="\n")


def install_engines(names: Sequence[str], *, everything: bool) -> int:
    """Install engines, going on with the others when one fails; the exit status."""
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
    return _each(chosen, install)


def remove_engines(names: Sequence[str]) -> int:
    """Remove the environments of engines; the exit status."""
    return _each([own for name in names if (own := _own(name)) is not None], remove)


def _own(name: str) -> Environment | None:
    """The environment of an engine that is known; None, and told, if it needs none."""
    point = find_engine(name)
    own = environment(name)
    if own is None:
        print(f"{name}: comes with {provider(point)}, and has no environment of its own")
    return own


def _each(
    chosen: list[Environment], act: Callable[[Environment, Callable[[str], None]], None]
) -> int:
    failed = False
    for own in chosen:

        def tell(line: str, name: str = own.name) -> None:
            print(f"{name}: {line}", flush=True)

        try:
            act(own, tell)
        except InputError as error:
            print(f"gridbench: {error}", file=sys.stderr, flush=True)
            failed = True
    if failed:
        print(f"environments are in {environments_folder()}", file=sys.stderr)
    return 2 if failed else 0

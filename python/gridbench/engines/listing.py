"""Listing engines with what state they are in, and acting on several at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial

from gridbench.engines.installing import One, Tell
from gridbench.errors import InputError, print_error
from gridbench.printing import print_json


@dataclass(frozen=True, slots=True)
class Listed:
    """What the list says of an engine."""

    name: str
    state: str
    version: str
    what: str
    where: str
    problem: str = ""
    """Why it cannot be used, and what to do about it."""


def print_listed(
    listed: Sequence[Listed], commands: str, *, where: bool, as_json: bool, note: str = ""
) -> None:
    """Print a line for each engine: name, state, version, and what it is, or where; or all of this
    as JSON. `commands`: the command below which they are installed. `note`: printed below."""
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


def act_on_each(chosen: Sequence[One], act: Callable[[One, Tell], None], *, quiet: bool) -> int:
    """Install or remove them side by side, going on with the others when one fails; the exit
    status."""

    def tell(one: One, line: str) -> None:
        if not quiet:
            print(f"{one.name}: {line}\n", end="", flush=True)

    def acted(one: One) -> bool:
        try:
            act(one, partial(tell, one))
        except InputError as error:
            print_error(error)
            return False
        return True

    # pip and Maven keep one processor busy. Lines are written whole: several threads tell.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        try:
            failed = not all(list(pool.map(acted, chosen)))
        except BaseException:
            # Those that have not begun need not be waited for.
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    if failed:
        print(f"{chosen[0].kind}s are in {chosen[0].root}", file=sys.stderr)
    return 2 if failed else 0


def none_named(commands: str) -> InputError:
    """For who asks to install, and does not say what."""
    return InputError(
        "no engine is named", remedy=f"name one or several, or use --all; see `{commands}`"
    )

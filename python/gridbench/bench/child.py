"""Runs one case in a fresh process, so that each starts with the same imports and clean memory.

    python -m gridbench.bench.child DESCRIPTOR MODULE:FUNCTION ARGUMENTS

The child imports NumPy and the module, runs the function, and sends its numbers: all at once, or
each dictionary that the function yields, so that what it had found stays if it is cut off. SIGTERM
asks it to end what it has made, processes and networks, and to end.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from gridbench.bench.figures import LimitReached, Values
from gridbench.engines.environments import our_launch
from gridbench.links.owners import remove_leftovers
from gridbench.process.child import Child, Ended
from gridbench.process.inside import GRACE, serve
from gridbench.process.leftovers import Leftovers
from gridbench.process.lines import Lines


class CaseFailed(Exception):
    """A run that gave no numbers, or not all, and why."""

    def __init__(self, why: str, values: Values, *, at_limit: bool = False) -> None:
        super().__init__(why)
        self.values = values
        """Those that it had given by then."""
        self.at_limit = at_limit
        """It did not end in time."""


def run_in_child(
    function: Callable[..., Any],
    arguments: dict[str, Any],
    *,
    timeout: float = math.inf,
    glance: Callable[[int], object],
) -> Values:
    """The function's numbers. Raises CaseFailed, and what `glance` raises; no process is left.

    `glance` is called ten times a second with the id of the process.
    """
    name = f"{function.__module__}:{function.__name__}"
    with Leftovers() as leftovers:
        child = Child(__name__, [name, json.dumps(arguments)], launch=our_launch())
        try:
            return _values(child, timeout, lambda: glance(child.process.pid))
        finally:
            _end(child, leftovers)


def _values(child: Child, timeout: float, glance: Callable[[], object]) -> Values:
    values: Values = {}
    until = time.monotonic() + timeout
    try:
        while True:
            message = child.receive(until, glance)
            if why := message.get("limit"):
                raise CaseFailed(why, values, at_limit=True)
            values |= message["values"]
    except TimeoutError:
        why = f"gave no result in {timeout:g} s"
        raise CaseFailed(why, values, at_limit=True) from None
    except Ended:
        how = child.ending()
        if child.process.returncode != 0:
            raise CaseFailed(": ".join([how, *child.last_lines(1)]), values) from None
    return values


def _end(child: Child, leftovers: Leftovers) -> None:
    """Have the child end what it has made, and then itself; if it does not, do that for it."""
    if not child.wait(0):
        child.ask_to_end(signal.SIGTERM)
    in_time = child.wait(GRACE)
    child.end(leftovers)
    if not in_time and os.geteuid() == 0:
        remove_leftovers()


def _end_when_told() -> None:
    """Have SIGTERM unwind this process, once, so that all that it has made is taken down."""
    measured = os.getpid()

    def end(number: int, frame: FrameType | None) -> None:
        del frame
        if os.getpid() != measured:  # one that was forked from it
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        signal.signal(number, signal.SIG_IGN)
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)


def main(descriptor: str, name: str, arguments: str) -> None:
    """The child: import everything, then measure."""
    lines = Lines(serve(descriptor, threads=False))
    _end_when_told()
    importlib.import_module("numpy")
    module, _, function = name.partition(":")
    measure = getattr(importlib.import_module(module), function)
    try:
        found = measure(**json.loads(arguments))
        for values in [found] if isinstance(found, dict) else found:
            lines.send({"values": values})
    except LimitReached as reached:
        lines.send({"limit": str(reached)})


if __name__ == "__main__":
    main(*sys.argv[1:])

"""What a task does between taking its data and making its output: its body, by name.

`sleep` waits and loads nothing. `spin` uses that much time of a processor, so that tasks that share
one take longer. `MODULE:FUNCTION` calls a function of the user with the seconds, the data of the
task and the shared data; `FOLDER/MODULE:FUNCTION` finds its module in a folder.

Workers import this, so it imports next to nothing.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from functools import cache
from typing import Any

SLEEP = "sleep"
SPIN = "spin"

Body = Callable[[float, Any, Any], object]


def keeps_time(name: str) -> bool:
    """Whether a body of that name takes the seconds that it is given; a user's takes its own."""
    return name in (SLEEP, SPIN)


@cache
def body(name: str) -> Body:
    """The body of that name. What importing a user's module raises comes through.

    Raises TypeError if what is there cannot be called.
    """
    known: dict[str, Body] = {SLEEP: _sleep, SPIN: _spin}
    if name in known:
        return known[name]
    place, _, function = name.rpartition(":")
    folder, _, module = place.rpartition("/")
    if folder and folder not in sys.path:
        sys.path.insert(0, folder)
    found: Body = getattr(importlib.import_module(module), function)
    if not callable(found):
        raise TypeError(f"{name} is not a function")
    return found


def _sleep(seconds: float, data: Any, shared: Any) -> None:
    del data, shared
    if seconds > 0:
        time.sleep(seconds)


def _spin(seconds: float, data: Any, shared: Any) -> None:
    del data, shared
    # Time of this thread alone: what others use of the processor makes it last longer.
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass

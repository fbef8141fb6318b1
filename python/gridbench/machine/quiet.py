"""Looking at the machine before anything is measured: going on, waiting, or stopping."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable

from rich.console import Console
from rich.markup import escape

from gridbench.errors import BusyMachine
from gridbench.formats import as_given
from gridbench.machine.judgement import accepted, busy, judged, remedy
from gridbench.machine.load import LoadSample, SampleStart, take_sample
from gridbench.machine.options import Policy
from gridbench.machine.processes import mark
from gridbench.terminal import say

_LOOK = 1.0  # seconds
_GLANCE = 0.25  # the same where the answer changes nothing


def settle(
    policy: Policy,
    console: Console,
    *,
    stopped: Callable[[], bool] = lambda: False,
    begun: SampleStart | None = None,
) -> LoadSample:
    """Return what was seen when the machine was quiet, or was accepted as it is, or when the user
    has `stopped` it. `begun`: a look that this ends; None: it begins one.

    Raises BusyMachine, with who uses it, if it is still busy when the time to wait is over.
    """
    mark()
    found = take_sample(_GLANCE if policy.accept and not policy.wait else _LOOK, begun)
    if judged(found.load) == "undisturbed":
        return found
    if policy.wait:
        found = _wait(found, policy.wait, console, stopped)
    if judged(found.load) == "undisturbed" or stopped():
        return found
    if not policy.accept:
        raise BusyMachine(busy(found), remedy=remedy(policy.wait))
    say(console, accepted(found))
    return found


def _wait(
    found: LoadSample, seconds: float, console: Console, stopped: Callable[[], bool]
) -> LoadSample:
    """What is seen in the end; the busiest are shown meanwhile."""
    until = time.monotonic() + seconds
    limit = "" if math.isinf(seconds) else f" for up to {as_given(seconds)}"
    head = f"waiting{limit} until the machine is quiet; "
    with contextlib.ExitStack() as stack:
        if console.is_terminal:
            status = stack.enter_context(console.status(escape(head + busy(found))))
        else:
            say(console, head + busy(found))
        while judged(found.load) != "undisturbed" and not stopped():
            left = until - time.monotonic()
            if left <= 0:
                break
            found = take_sample(min(_LOOK, max(_GLANCE, left)))
            if console.is_terminal:
                status.update(escape(head + busy(found)))
    return found

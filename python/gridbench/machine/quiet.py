"""Wait for a quiet machine before a measurement, or stop."""

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
    """Wait until the machine is quiet, or busy and accepted, or the user has `stopped`; the last
    sample. `begun`: a sample to end; None: begin one.

    Raises BusyMachine, with the busiest processes, if the machine is still busy after the wait.
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
    """Wait and show the busiest processes; the last sample."""
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

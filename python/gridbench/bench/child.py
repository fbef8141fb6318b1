"""The client process of a session: it measures, one item after the other, what its parent asks.

    python -m gridbench.bench.child DESCRIPTOR SESSION

SESSION is JSON. For each item the child sends {"ready": number}, waits for a message, and on
`measure` measures it and sends what it found; it does so again until the message is `pass`. On
`end` it leaves out what is left. It imports next to nothing before an item needs it, as bringing up
an engine from nothing is among what is measured.

A session without an engine may make processes and networks: SIGTERM asks it to end them, and then
to end.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import time
from functools import partial

from gridbench.bench.client import EngineClient, LimitReached, NotStarted, Unable, one_line
from gridbench.process.inside import LineChannel, serve

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from gridbench.bench.client import MeasuredValues


def main(descriptor: str, session: str) -> None:
    """Measure all items of the session."""
    description = json.loads(session)
    lines = LineChannel(serve(descriptor, unwinds=not description["client"]))
    for name in description["imports"]:
        importlib.import_module(name)
    if not description["client"]:
        _unwind_on_sigterm()
        _serve(None, description["items"], lines)
        lines.send({"closing": True})
        return
    adopt_orphans()
    client = EngineClient(**description["client"])
    try:
        _serve(client, description["items"], lines)
    finally:
        lines.send({"closing": True})
        client.close()
    # What an engine leaves in threads or exit handlers is not waited for.
    sys.stdout.flush()
    os._exit(0)


def _serve(client: EngineClient | None, items: list[dict[str, Any]], lines: LineChannel) -> None:
    described = False
    for number, item in enumerate(items):
        while True:
            lines.send({"ready": number})
            wish = lines.receive()
            if wish == "end":
                return
            if wish == "pass":
                break
            began = time.monotonic()
            found = _measure(client, item, lambda part: lines.send({"part": part}))
            found["seconds"] = time.monotonic() - began
            if client and client.made and not described and not found.get("over"):
                described = True
                found["version"] = client.made.describe().version
            lines.send({"item": number} | found)
            if found.get("over"):
                return


def _measure(
    client: EngineClient | None, item: dict[str, Any], notify: Callable[[dict[str, float]], object]
) -> dict[str, Any]:
    """The result of the item's function, or why there is none; `tell` gets parts of it."""
    module, _, name = item["measure"].partition(":")
    function = getattr(importlib.import_module(module), name)
    try:
        if client is not None:
            return _with_engine(client, function, item["arguments"])
        found = function(**item["arguments"])
        for part in [found] if isinstance(found, dict) else found:
            notify(part)
    except LimitReached as reached:
        return {"status": "failed", "why": str(reached), "at_limit": True}
    except Exception as error:  # a measurement can fail in any way
        return {"status": "failed", "why": one_line(error)}
    return {"status": "ok"}


def _with_engine(
    client: EngineClient, function: Callable[..., MeasuredValues], arguments: dict[str, Any]
) -> dict[str, Any]:
    from gridbench.engines.base import Cannot

    try:
        found = function(client, **arguments)
    except (Cannot, Unable) as error:
        return {"status": "cannot", "why": str(error)}
    except NotStarted as error:
        return {"status": "failed", "why": str(error), "over": True}
    return {"status": "ok", "values": found.values, "samples": found.samples}


def _unwind_on_sigterm() -> None:
    """Unwind this process on SIGTERM, once, so that it cleans up. Processes forked from it end."""

    def end(number: int, frame: FrameType | None) -> None:
        del frame
        signal.signal(number, signal.SIG_IGN)
        sys.exit(128 + number)

    def in_child() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        unblock()

    block, unblock = (
        partial(signal.pthread_sigmask, how, {signal.SIGTERM})
        for how in (signal.SIG_BLOCK, signal.SIG_UNBLOCK)
    )
    signal.signal(signal.SIGTERM, end)
    # Python forgets signals that a new child gets before it has run, and runs no handler while a
    # process waits for a semaphore, as workers of multiprocessing do: a pool that ends its workers
    # at once would wait for them forever.
    os.register_at_fork(before=block, after_in_parent=unblock, after_in_child=in_child)


def adopt_orphans() -> None:
    """Adopt processes whose parent ended, so that engines that detach are counted."""
    import ctypes

    set_child_subreaper = 36
    ctypes.CDLL(None, use_errno=True).prctl(set_child_subreaper, 1, 0, 0, 0)


if __name__ == "__main__":
    main(*sys.argv[1:])

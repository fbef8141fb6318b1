"""The client process of a session: it measures, one item after the other, what its parent asks.

    python -m gridbench.micro.child DESCRIPTOR SESSION

SESSION is JSON. For each item the child sends {"ready": number}, waits for a message, and on
`measure` measures it and sends what it found; it does so again until the message is `pass`. On
`end` it leaves out what is left. It imports next to nothing before an item needs it, as bringing up
an engine from nothing is among what is measured.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from typing import Any

from gridbench.micro.client import Client, NotStarted, Unable, one_line
from gridbench.process.inside import serve
from gridbench.process.lines import Lines


def main(descriptor: str, session: str) -> None:
    """Measure all items of the session."""
    lines = Lines(serve(descriptor))
    adopt_orphans()
    description = json.loads(session)
    client = Client(**description["client"])
    try:
        _serve(client, description["items"], lines)
    finally:
        lines.send({"closing": True})
        client.close()
    # What an engine leaves in threads or exit handlers is not waited for.
    sys.stdout.flush()
    os._exit(0)


def _serve(client: Client, items: list[dict[str, Any]], lines: Lines) -> None:
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
            found = _measure(client, item)
            found["seconds"] = time.monotonic() - began
            if client.made is not None and not described and not found.get("over"):
                described = True
                found["version"] = client.made.describe().version
            lines.send({"item": number} | found)
            if found.get("over"):
                return


def _measure(client: Client, item: dict[str, Any]) -> dict[str, Any]:
    """The point that the item's function found, or why there is none."""
    from gridbench.engines.base import Cannot

    module, _, name = item["measure"].partition(":")
    function = getattr(importlib.import_module(module), name)
    try:
        found = function(client, **item["arguments"])
    except (Cannot, Unable) as error:
        return {"status": "cannot", "why": str(error)}
    except NotStarted as error:
        return {"status": "failed", "why": str(error), "over": True}
    except Exception as error:  # an engine is foreign code: it can fail in any way
        return {"status": "failed", "why": one_line(error)}
    return {"status": "ok", "values": found.values, "samples": found.samples}


def adopt_orphans() -> None:
    """Have processes whose parent ended become ours, so that engines that detach are counted."""
    import ctypes

    set_child_subreaper = 36
    ctypes.CDLL(None, use_errno=True).prctl(set_child_subreaper, 1, 0, 0, 0)


if __name__ == "__main__":
    main(*sys.argv[1:])

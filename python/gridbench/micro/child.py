"""The client process of a session: it measures, one item after the other, what its parent asks.

    python -m gridbench.micro.child REPORTS COMMANDS SESSION

REPORTS and COMMANDS are descriptors, SESSION is JSON. For each item the child writes
{"ready": number}, waits for a line, and on `measure` measures it and writes what it found; it does
so again until the line is `pass`. It imports next to nothing before an item needs it, as bringing
up an engine from nothing is among what is measured.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
import time
from typing import Any, TextIO

from gridbench.micro.client import Client, NotStarted, Unable, one_line


def main(reports: str, commands: str, session: str) -> None:
    """Measure all items of the session."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    adopt_orphans()
    with os.fdopen(int(reports), "w") as out, os.fdopen(int(commands)) as orders:
        # Neither is for the engine's processes.
        os.set_inheritable(out.fileno(), False)
        os.set_inheritable(orders.fileno(), False)
        description = json.loads(session)
        client = Client(**description["client"])
        try:
            _serve(client, description["items"], out, orders)
        finally:
            _tell(out, {"closing": True})
            client.close()
    # What an engine leaves in threads or exit handlers is not waited for.
    sys.stdout.flush()
    os._exit(0)


def _serve(client: Client, items: list[dict[str, Any]], out: TextIO, orders: TextIO) -> None:
    described = False
    for number, item in enumerate(items):
        while True:
            _tell(out, {"ready": number})
            if orders.readline().strip() != "measure":
                break
            began = time.monotonic()
            found = _measure(client, item)
            found["seconds"] = time.monotonic() - began
            if client.made is not None and not described and not found.get("over"):
                described = True
                found["version"] = client.made.describe().version
            _tell(out, {"item": number} | found)
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


def _tell(out: TextIO, message: dict[str, Any]) -> None:
    out.write(json.dumps(message) + "\n")
    out.flush()


def adopt_orphans() -> None:
    """Have processes whose parent ended become ours, so that engines that detach are counted."""
    import ctypes

    set_child_subreaper = 36
    ctypes.CDLL(None, use_errno=True).prctl(set_child_subreaper, 1, 0, 0, 0)


def _end_with_parent() -> None:
    """Standard input stays open, and empty, as long as whoever started us lives."""
    while os.read(0, 1):
        pass
    if os.getpgrp() == os.getpid():
        import signal

        os.killpg(0, signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])

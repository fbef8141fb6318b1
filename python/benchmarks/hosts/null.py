"""A blocking call of a function without arguments, from C to a host, beside a bare round trip.

Both ends are on this machine, over its loopback interface. A bare round trip wakes one process at
each end; which of ours wake up, their counts of voluntary context switches tell.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from benchmarks.extent import Extent
from benchmarks.figures import Area, AreaCase, Row, Target, Values, noise_row
from benchmarks.hosts.places import ENCRYPTION, Kind, Wire, local, places, programs, shuffled
from gridbench.bench.programs import numbers
from gridbench.bench.series import Points
from gridbench.process.memory import tree

_CALLS = {Extent.TRIAL: 200, Extent.USUAL: 5_000, Extent.FULL: 20_000}
_TRIPS = "null calls and round trips"
_WAKING = "processes that wake up, "
_NAMES: dict[Kind, str] = {"tcp": "TCP", "tls": "TLS"}
_ROLES = ("client", "agent", "spawner", "worker")


def trips(folder: str, count: int) -> Values:
    """Median us of a call and of a round trip, each over TCP and TLS, in random order."""

    def call(kind: Kind) -> float:
        return numbers(folder, "far", "null", count, places=places([local(1, 1, kind)]))[0]

    with Wire(folder) as wire:
        return shuffled(
            {
                "ours tcp": lambda: call("tcp"),
                "ours tcp again": lambda: call("tcp"),
                "ours tls": lambda: call("tls"),
                "tcp": lambda: wire.ping("tcp", count),
                "tcp again": lambda: wire.ping("tcp", count),
                "tls": lambda: wire.ping("tls", count),
            }
        )


def wake_ups(folder: str, count: int, kind: Kind) -> Values:
    """How often a process of each role goes to sleep for each call; and us per call meanwhile."""
    environment = {**os.environ, "GRIDRPC_MODULE_PATH": folder, **places([local(1, 1, kind)])}
    with subprocess.Popen(
        [f"{folder}/far", "null", str(count)], env=environment, stdout=subprocess.PIPE, text=True
    ) as client:
        first: dict[str, int] = {}
        last: dict[str, int] = {}
        began = ended = 0.0
        while client.poll() is None:
            found = _sleeps(client.pid)
            if len(found) == len(_ROLES):
                if not first:
                    first, began = found, time.monotonic()
                last, ended = found, time.monotonic()
            time.sleep(0.02)
        took = float(client.stdout.read()) if client.stdout else 0.0
    if ended == began:
        raise RuntimeError("the calls ended before anything was seen of them")
    calls = (ended - began) / (took * 1e-6)
    return {"us": took} | {role: (last[role] - first[role]) / calls for role in _ROLES}


def _sleeps(pid: int) -> dict[str, int]:
    """Voluntary context switches so far, of all threads of the processes of each role."""
    found: dict[str, int] = {}
    for process in tree(pid):
        try:
            role = "client" if process == pid else _role(process)
            files = list(Path(f"/proc/{process}/task").glob("*/status"))
            texts = [file.read_text(encoding="utf-8", errors="replace") for file in files]
        except OSError:  # it has just ended
            continue
        lines = [line for text in texts for line in text.splitlines()]
        counts = [line.split()[1] for line in lines if line.startswith("voluntary_ctxt_switches")]
        found[role] = found.get(role, 0) + sum(map(int, counts))
    return found


def _role(pid: int) -> str:
    words = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace").split("\0")
    name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace")
    if name.startswith("gridrpc-w"):
        return "worker"
    return words[1] if len(words) > 1 and words[1] in _ROLES else "other"


def area(extent: Extent) -> Area:
    """Both kinds of connection."""
    folder, missing = programs()
    count = _CALLS[extent]
    arguments = {"folder": folder, "count": count}
    cases = [AreaCase(_TRIPS, trips, arguments, missing=missing)]
    for kind in ENCRYPTION:
        more = {"folder": folder, "count": max(count, 5_000), "kind": kind}
        cases.append(AreaCase(_WAKING + kind, wake_ups, more, missing=missing, most_runs=3))
    title = "Null call from C to a host, blocking; limit: a bare round trip (C, sleeping reads)"
    return Area("hosts/null", title, tuple(cases), _rows, part="null")


def _rows(samples: Points) -> list[Row]:
    rows = []
    for what, name in (("bare round trip over TCP", "tcp"), ("null call over TCP", "ours tcp")):
        once, again = samples.of(_TRIPS, name), samples.of(_TRIPS, f"{name} again")
        rows.append(noise_row(f"{what} by itself", once, again))
    for kind, name in _NAMES.items():
        rows.append(
            Row(
                f"null call over {name}",
                "us",
                samples.of(_TRIPS, f"ours {kind}"),
                limit=samples.of(_TRIPS, kind),
                target=Target(1.3, of_limit=True),
                digits=1,
            )
        )
    for kind, name in _NAMES.items():
        for role in _ROLES:
            rows.append(
                Row(
                    f"times that the {role} goes to sleep for a call over {name}",
                    "",
                    samples.of(_WAKING + kind, role),
                    digits=2,
                )
            )
    return rows

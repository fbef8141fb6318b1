"""What a server shows during a case: when it accepted calls, and its load and memory."""

from __future__ import annotations

import json
import statistics
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from gridbench.hosts.host_group import ask_clock, clock_between
from gridbench.linpack.clients.record import ServedCall, ServerSample
from gridbench.machine.processes import descendants, processes
from gridbench.machine.processors import available_processors, unused_of
from gridbench.process.memory import footprint
from gridbench_testbed.services.gridrpc_server import GridrpcServer

_GLANCE = 0.1
"""Seconds between looks at the threads that run."""
_AUDIT = 5.0
"""Seconds until the audit log of the server has to have all calls."""
_ROUNDED = 1e-5
"""Seconds by which rounded stamps may contradict each other,"""
_LATE = 2e-3
"""and by which those of the audit log may be late: threads lose their processor."""


# ---- Accepted calls


class AuditLog:
    """The part of a server's audit log that a case adds: when it accepted each call."""

    def __init__(self, server: GridrpcServer) -> None:
        self._path = server.folder / "state" / "audit.jsonl"
        self._begin = self._path.stat().st_size
        self._clock = ask_clock(time.time_ns)

    def accepted(self, start: float, calls: int) -> tuple[list[tuple[float, float]], float]:
        """When calls that returned a result were accepted and when they ended, in seconds after
        the `start` of the monotonic clock, and the possible error. It waits a little for the last
        of so many `calls`."""
        until = time.monotonic() + _AUDIT
        while len(found := self._ended()) < calls and time.monotonic() < until:
            time.sleep(_GLANCE)
        clock = clock_between(self._clock, ask_clock(time.time_ns))
        ended = [
            (datetime.fromisoformat(one["time"]).timestamp() - clock.offset * 1e-9 - start, one)
            for one in found
        ]
        return [(at - one["seconds"], at) for at, one in ended], clock.error * 1e-9

    def _ended(self) -> list[dict[str, Any]]:
        with self._path.open("rb") as file:
            file.seek(self._begin)
            lines = file.read().split(b"\n")[:-1]
        records = [json.loads(line) for line in lines]
        return [one for one in records if (one["event"], one.get("outcome")) == ("end", "ok")]


def with_enqueue(
    calls: Sequence[ServedCall], accepted: Sequence[tuple[float, float]], error: float
) -> list[ServedCall]:
    """The calls with the times at which the server accepted them.

    `accepted`: for each call in the audit log, when it was accepted and when it ended; `error`: of
    these times. The log does not name calls. Of the calls that an entry fits, it is of the one that
    was submitted and returned the least time before.
    """
    exact, slack = error + _ROUNDED, error + _LATE
    known = sorted(
        (call.submit, number)
        for number, call in enumerate(calls)
        if call.ending == "ok" and call.dequeue is not None and call.returned is not None
    )
    submits = [submit for submit, _ in known]
    longest = max((calls[number].seconds for _, number in known), default=0.0)
    fitting = []
    for entry, (begun, ended) in enumerate(accepted):
        first = bisect_left(submits, begun - longest - slack)
        for submit, number in known[first : bisect_right(submits, begun + exact)]:
            dequeue, returned = calls[number].dequeue, calls[number].returned
            assert dequeue is not None
            assert returned is not None
            if begun <= dequeue + slack and returned <= ended + slack:
                fitting.append((begun - submit + ended - returned, entry, number))
    found = dict(enumerate(calls))
    entries = set(range(len(accepted)))
    left = {number for _, number in known}
    for _, entry, number in sorted(fitting):
        if entry in entries and number in left:
            entries.remove(entry)
            left.remove(number)
            found[number] = _enqueued(calls[number], accepted[entry][0])
    return list(found.values())


def _enqueued(call: ServedCall, at: float) -> ServedCall:
    """The call with the time of its enqueue, within the bounds of the client's own timestamps."""
    assert call.dequeue is not None
    return replace(call, enqueue=min(max(round(at, 6), call.submit), call.dequeue))


# ---- Load and memory


class ServerSampler:
    """Samples the machine and the processes of a server in a thread, while active."""

    def __init__(self, server: int, start: float, every: float) -> None:
        """`server`: its process; `start`: of the monotonic clock; `every`: seconds."""
        self._server = server
        self._start = start
        self._every = every
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.samples: list[ServerSample] = []

    def __enter__(self) -> ServerSampler:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        self._over.wait(max(0.0, self._start - time.monotonic()))
        before = self._reading()
        while not self._over.is_set():
            end = before.at + self._every
            threads = [_runnable()]
            while not self._over.wait(min(_GLANCE, max(0.0, end - time.monotonic()))):
                threads.append(_runnable())
                if time.monotonic() >= end:
                    break
            now = self._reading()
            if now.at - before.at >= _GLANCE:
                self.samples.append(now.sample_since(before, self._start, threads))
            before = now

    def _reading(self) -> _ServerReading:
        processors = available_processors()
        left = unused_of(Path("/proc/stat").read_text(encoding="ascii"), processors)
        at = time.monotonic()
        table = processes()
        own = descendants(table, {self._server})
        return _ServerReading(
            at=at,
            idle=left.idle + left.waiting,
            used=sum(table[pid].used + table[pid].waited_for for pid in own if pid in table),
            memory=footprint(sorted(own)),
            processors=len(processors),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _ServerReading:
    at: float
    idle: float
    """Seconds of all processors."""
    used: float
    """Seconds of processor time of the server."""
    memory: int
    processors: int

    def sample_since(
        self, before: _ServerReading, start: float, threads: Sequence[int]
    ) -> ServerSample:
        """What happened since then."""
        seconds = self.at - before.at
        all_of_them = seconds * self.processors
        return ServerSample(
            at=self.at - start,
            seconds=seconds,
            busy=_share(1 - (self.idle - before.idle) / all_of_them),
            server=_share((self.used - before.used) / all_of_them),
            runnable=statistics.fmean(threads),
            memory=self.memory,
        )


def _runnable() -> int:
    """Threads that run or wait for a processor, without this one."""
    running = Path("/proc/loadavg").read_text(encoding="ascii").split()[3]
    return max(0, int(running.partition("/")[0]) - 1)


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))

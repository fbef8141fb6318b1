"""What a server shows during a case: when it accepted calls, and its load and memory."""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import Collection, Sequence
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


# ---- Accepted calls


class AuditLog:
    """The part of a server's audit log that a case adds: when it accepted each call."""

    def __init__(self, server: GridrpcServer) -> None:
        self._path = server.folder / "state" / "audit.jsonl"
        self._begin = self._path.stat().st_size
        self._clock = ask_clock(time.time_ns)

    def accepted(self, start: float, traces: Collection[str]) -> tuple[dict[str, float], float]:
        """When each of the calls with these `traces` was accepted, in seconds after the `start` of
        the monotonic clock, and the possible error. It waits a little for the last of them."""
        until = time.monotonic() + _AUDIT
        while (found := self._ended()).keys() < set(traces) and time.monotonic() < until:
            time.sleep(_GLANCE)
        clock = clock_between(self._clock, ask_clock(time.time_ns))
        times = {
            trace: datetime.fromisoformat(one["time"]).timestamp() - one["seconds"]
            for trace, one in found.items()
        }
        offset = clock.offset * 1e-9 + start
        return {trace: at - offset for trace, at in times.items()}, clock.error * 1e-9

    def _ended(self) -> dict[str, dict[str, Any]]:
        with self._path.open("rb") as file:
            file.seek(self._begin)
            lines = file.read().split(b"\n")[:-1]
        records = [json.loads(line) for line in lines]
        return {one["trace"]: one for one in records if one["event"] == "end" and "trace" in one}


def with_enqueue(call: ServedCall, accepted: float | None) -> ServedCall:
    """The call with the time at which the server accepted it, within the bounds of the client's own
    timestamps."""
    if accepted is None or call.dequeue is None:
        return call
    return replace(call, enqueue=min(max(round(accepted, 6), call.submit), call.dequeue))


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

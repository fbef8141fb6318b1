"""The bandwidth of this machine's memory: measured once, and kept for later calls."""

from __future__ import annotations

import json
import platform
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console

from gridbench import formats
from gridbench.advise.work import DivisibleWork
from gridbench.atomic_write import cache_file, write_file
from gridbench.errors import InputError
from gridbench.machine.judgement import judged
from gridbench.machine.options import Policy
from gridbench.machine.quiet import settle
from gridbench.model.observation import EnginePlace
from gridbench.records import RecordError, from_record
from gridbench.run.machine import available_memory, usable_processors

_KIND = "gridbench memory bandwidth"
_FORMAT = 1
_PATIENCE = 60.0
"""Seconds that a thread waits for the others before it gives up."""
_ROUNDS = 8
"""The fastest counts: disturbance makes a round slower, and nothing makes it faster."""
_ARRAYS = 3
"""Of each thread: one is made the sum of the two others."""
_LEAST, _MOST = 32 << 20, 1 << 30
"""Bytes of the arrays of one kind of all threads together: as STREAM wants it, four times what
caches hold, so that nothing is found there again."""
_CACHES = 4
_SHARE = 0.25
"""Of the memory that is available, which the arrays take at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bandwidth:
    """Of the memory of a machine."""

    kind: str = _KIND
    format: int = _FORMAT
    rate: float
    """Bytes per second, read and written by all processors together."""
    processors: int
    made: float
    """Seconds since 1970."""


def measured_here(*, stored: bool = True) -> Bandwidth:
    """Measure the bandwidth of this machine's memory, and keep it if that is
    wanted. That it cannot be written is no error: nothing but time is lost."""
    processors = usable_processors()
    found = Bandwidth(rate=measure(processors), processors=processors, made=time.time())
    if stored:
        path = bandwidth_path()
        with suppress(OSError, InputError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, json.dumps(asdict(found)) + "\n")
    return found


def load_bandwidth(path: Path) -> Bandwidth | None:
    """The one in a file; None if there is none, or none that this version can read."""
    try:
        found = from_record(Bandwidth, json.loads(path.read_bytes()))
    except (OSError, ValueError, RecursionError, RecordError):
        return None
    known = (found.kind, found.format) == (_KIND, _FORMAT) and found.rate > 0
    return found if known else None


def measure(processors: int, size: int | None = None, rounds: int = _ROUNDS) -> float:
    """Bytes per second that so many threads move between processors and memory, as the kernel Add
    of STREAM counts them: `a = b + c`, two arrays that are read and one that is written.

    `size`: bytes of all threads' arrays of one kind; None: enough that no cache holds them, or
    InputError.
    """
    count = max(1, (size or _size()) // processors // np.dtype(float).itemsize)
    begin = threading.Barrier(processors, timeout=_PATIENCE)

    def add(_: int) -> list[tuple[float, float]]:
        a, b, c = (np.ones(count) for _ in range(_ARRAYS))  # pages that are there
        found = []
        for _round in range(rounds):
            begin.wait()
            started = time.perf_counter()
            np.add(b, c, out=a)  # without the interpreter's lock
            found.append((started, time.perf_counter()))
        return found

    with ThreadPoolExecutor(processors) as pool:
        threads = list(pool.map(add, range(processors)))
    # From when the first has begun until the last has ended: all of them share the memory.
    took = [
        max(end for _, end in each) - min(start for start, _ in each)
        for each in zip(*threads, strict=True)
    ]
    moved = _ARRAYS * count * np.dtype(float).itemsize * processors
    return float(moved / min(took))


def _size() -> int:
    """Bytes of the arrays of one kind. InputError without room for what caches do not hold."""
    available = available_memory()
    wanted = max(_LEAST, min(_MOST, _CACHES * _cache()))
    size = min(wanted, int(_SHARE * available) // _ARRAYS)
    if size < _LEAST:
        raise InputError(
            f"{formats.size(available)} of memory are free, too little to measure its bandwidth",
            remedy="give it by --memory-bandwidth, such as 20GB/s, or end what takes the memory",
        )
    return size


def _cache() -> int:
    """Bytes of the largest cache of a processor, as far as the system tells; else 0."""
    found = [0]
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        with suppress(OSError, ValueError):
            found.append(int(path.read_text().strip().removesuffix("K")) * 1024)
    return max(found)


def bandwidth_path() -> Path:
    """Where that of this machine lies, if there is one."""
    return cache_file("memory", platform.node(), str(usable_processors()))


def with_bandwidth(
    work: DivisibleWork,
    place: EnginePlace,
    given: float | None,
    policy: Policy,
    console: Console,
    *,
    renew: bool,
) -> DivisibleWork:
    """The work with the bandwidth of the memory that its tasks share, if it has memory traffic:
    what was `given`, or kept of this machine, or is measured now; `renew`: not what was kept.

    InputError if the tasks do not share one memory, or it is elsewhere and nothing was given;
    BusyMachine if there has to be a measurement, and others use the machine.
    """
    if not work.roofline.traffic:
        return work
    if place.transport != "one host":
        raise no_single_memory()
    if given is None:
        processors = usable_processors()
        if (place.host, place.processors) != (platform.node(), processors):
            others = formats.counted(place.processors, "processor")
            raise InputError(
                f"the model is of {place.host} with {others}, and the bandwidth of its memory is"
                " not known here",
                remedy="give it by --memory-bandwidth, such as 20GB/s",
            )
        found = None if renew else load_bandwidth(bandwidth_path())
        if found is None:
            seen = settle(policy, console)
            console.print("measuring the bandwidth of the memory")
            found = measured_here(stored=judged(seen.load) == "undisturbed")
        given = found.rate
    return replace(work, roofline=replace(work.roofline, bandwidth=given))


def no_single_memory() -> InputError:
    """Sentence about traffic through memory that tasks do not share."""
    return InputError(
        "--memory-traffic is for tasks on one machine, which share its memory",
        remedy="leave it out where the workers are on servers, behind links or of a profile",
    )

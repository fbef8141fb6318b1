"""Files that all workers write and read at once, on the local disk and through FUSE.

Each worker has a file of its own, which goes to the disk before its time ends (fsync), and is read
after the page cache has been asked to forget it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack

from benchmarks.extent import Extent
from benchmarks.figures import Area, AreaCase, Row, Values
from benchmarks.sync.rounds import medians, workers_at
from gridbench.bench.series import Points
from gridbench_testbed.services import passthrough
from gridbench_testbed.services.passthrough import Passthrough

_WORKERS = {Extent.TRIAL: (1, 2), Extent.USUAL: (1, 2, 4, 8), Extent.FULL: (1, 2, 4, 8)}
_SIZE = {Extent.TRIAL: 1, Extent.USUAL: 64, Extent.FULL: 128}  # MiB, of each file
_REPEATS = {Extent.TRIAL: 1, Extent.USUAL: 1, Extent.FULL: 3}
_PLACES = {"local": "the local disk", "fuse": "the same disk through FUSE (bindfs)"}


def moved(place: str, workers: int, size: int, repeats: int) -> Values:
    """Bytes per second written and read by all together, and that again."""
    with ExitStack() as stack:
        if place == "fuse":
            folder = str(stack.enter_context(Passthrough()).mounts[0])
        else:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="gridbench-files-"))
        all_workers = stack.enter_context(workers_at(workers))
        words = ("--directory", folder, "--size", f"{size}M", "--fsync", "--drop")

        def step() -> Values:
            phases = all_workers.run("write-read", *words).figures.phases
            return {name: phases[name].bandwidth for name in ("write", "read")}

        return medians({"once": step, "again": step}, repeats)


def area(extent: Extent) -> Area:
    """A case for each place and number of workers."""
    counts, size, repeats = _WORKERS[extent], _SIZE[extent], _REPEATS[extent]
    missing = passthrough.why_not()
    cases = [
        AreaCase(
            _name(place, workers),
            moved,
            {"place": place, "workers": workers, "size": size, "repeats": repeats},
            missing=missing if place == "fuse" else "",
            timeout=600,
        )
        for place in _PLACES
        for workers in counts
    ]
    title = f"A file of {size} MiB of each worker, written with fsync and read, bytes of all"
    return Area("sync/files", title, tuple(cases), lambda s: _rows(s, counts), part="files")


def _name(place: str, workers: int) -> str:
    return f"files of {workers} on {_PLACES[place]}"


def _rows(samples: Points, counts: Sequence[int]) -> list[Row]:
    rows = []
    for place, where in _PLACES.items():
        for phase, what in (("write", "written to"), ("read", "read from")):
            for workers in counts:
                name = _name(place, workers)
                once = samples.of(name, f"once {phase}")
                again = samples.of(name, f"again {phase}")
                rows.append(
                    Row(f"{what} {where}, workers: {workers}", "MB/s", once.scaled(1e-6), digits=1)
                )
                if workers == counts[-1]:
                    noise = once.difference_to(again)
                    rows.append(
                        Row(
                            f"noise: {what} {where}, workers: {workers}, by itself",
                            "x",
                            noise,
                            digits=2,
                        )
                    )
    return rows

"""Measurements of shared data made by hand, for the tests of what follows from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from gridbench.datagrid.crossover.models import ComputeModel, GridModel
from gridbench.datagrid.crossover.record import FORM, SharingRecord, Side
from gridbench.jsonl_store import Header

MB = 2**20
DISTURBED = {"judgement": "disturbed", "others": 1.9}
QUIET = {"judgement": "undisturbed", "others": 0.0}
SIZES = tuple(n * MB for n in (1, 4, 16, 64, 256))
READERS = (1, 2, 4, 8, 16)

#: Hands the data over once: 4 ms, 0.5 ms for each task, 2 GB/s, and little for each reader.
ONCE = ComputeModel(start=4e-3, each=5e-4, once=5e-10, reader=1e-11)
#: Sends it with each task: 1 GB/s for all together.
EACH = ComputeModel(start=2e-3, each=1e-3, once=0.0, reader=1e-9)
#: Loads 100 MB/s and reads 4 GB/s; a single reader gets 500 MB/s of that.
GRID = GridModel(
    put_start=50e-3,
    put=1 / (100 * MB),
    read_start=2e-3,
    all=1 / (4000 * MB),
    one=1 / (500 * MB),
)


def header_of(**options: object) -> Header:
    return Header(
        machine={
            "host": "client",
            "processor": "a processor",
            "cores": 2,
            "cores_usable": 2,
            "memory": 2**34,
        },
        versions={"python": "3.11", "gridrpc": "0.1.0"},
        options={"object_size": MB, "members": 3} | options,
        started="2031-05-04T10:30:00+00:00",
        seed=1,
    )


def sharing_of(
    engine: str, readers: int, size: int, seconds: float, **more: object
) -> SharingRecord:
    values: dict[str, object] = {
        "side": "compute grid",
        "engine": engine,
        "version": "1",
        "readers": readers,
        "bytes": size,
        "repeat": 0,
        "at": "2031-05-04T10:31:00+00:00",
        "status": "done",
        "seconds": seconds,
        "reading": seconds,
        "load": QUIET,
    }
    return SharingRecord(**(values | more))  # type: ignore[arg-type]


def from_grid(
    readers: int, size: int, loading: float, reading: float, **more: object
) -> SharingRecord:
    side: Side = "data grid"
    values: dict[str, object] = {
        "side": side,
        "title": "Hazelcast",
        "reading": reading,
        "object_size": MB,
        "members": 3,
        "processes": min(readers, 4),
    }
    return sharing_of("hazelcast", readers, size, loading + reading, **(values | more))


def measured(
    engines: Mapping[str, ComputeModel],
    grid: GridModel | None = GRID,
    *,
    sizes: Iterable[int] = SIZES,
    readers: Iterable[int] = READERS,
    repeats: int = 3,
    spread: float = 0.01,
) -> list[SharingRecord]:
    """What would be measured if the models were right, in repeats that differ by `spread`."""
    found = []
    for n in readers:
        for size in sizes:
            for repeat in range(repeats):
                factor = 1 + spread * (repeat - repeats // 2)
                for engine, model in engines.items():
                    seconds = model.line(n).at(size) * factor
                    more = {"with_each_task": model.once == 0, "repeat": repeat, "workers": n}
                    found.append(sharing_of(engine, n, size, seconds, **more))
                if grid is not None:
                    reading = grid.reading(n).at(size) * factor
                    loading = (grid.line(n).at(size) - grid.reading(n).at(size)) * factor
                    found.append(from_grid(n, size, loading, reading, repeat=repeat))
    return found


ENGINES = {"gridrpc-python": ONCE, "process-pool": EACH}


def write_folder(folder: Path, found: Iterable[SharingRecord], **options: object) -> Path:
    file = FORM.open(folder, header_of(**options), fresh=True)
    for one in found:
        file.add(one)
    file.close()
    return folder

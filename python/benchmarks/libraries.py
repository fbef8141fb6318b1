"""Area `libraries`: Python's libraries on a grid, beside the pools that they were written for.

And what a pool never has to stand: functions that kill their worker, amid others.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from math import sqrt
from typing import Any

import numpy as np

from benchmarks.figures import Area, AreaCase, Extent, PlannedRow, Target, Values
from gridbench.workload.calls import PAGE, same
from gridrpc import Call, Executor, Grid, WorkerLost

_WORKERS = 2
_GENERATIONS = 60

_KINDS = ("array", "bytes", "bytearray", "str")
_WAYS = ("in", "out")


def joblib_backends(count: int) -> Values:
    """Seconds for small tasks with warm workers, by backend."""
    import joblib

    import gridrpc.joblib  # noqa: F401 - registers the backend

    tasks = [joblib.delayed(sqrt)(n) for n in range(count)]
    return _by_backend(lambda: joblib.Parallel(_WORKERS)(tasks), 5)


def searches(rounds: int) -> Values:
    """Seconds for a grid search with warm workers, by backend."""
    from sklearn.datasets import make_classification
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    import gridrpc.joblib  # noqa: F401 - registers the backend

    x, y = make_classification(400, 10, random_state=1)
    grid = {"C": [0.1, 0.3, 1, 3, 10]}
    return _by_backend(
        lambda: GridSearchCV(LogisticRegression(), grid, cv=4, n_jobs=_WORKERS).fit(x, y), rounds
    )


def _by_backend(work: Callable[[], object], rounds: int) -> Values:
    """Medians over some rounds, one backend after the other, without the first round."""
    import joblib

    seconds: dict[str, list[float]] = {"gridrpc": [], "loky": []}
    for _ in range(rounds + 1):
        for backend, taken in seconds.items():
            with joblib.parallel_config(backend), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                taken.append(_seconds(work))
    return {backend: float(np.median(taken[1:])) for backend, taken in seconds.items()}


def start_of_grid() -> Values:
    """Seconds from nothing to the first results of all workers; this process has NumPy loaded."""
    begin = time.perf_counter()
    with Grid(workers=_WORKERS) as grid:
        grid.wait_until_ready()
        list(grid.map(same, range(_WORKERS), chunk=1))
        return {"seconds": time.perf_counter() - begin}


def start_of_pool() -> Values:
    """The same for a pool that forks."""
    begin = time.perf_counter()
    with multiprocessing.get_context("fork").Pool(_WORKERS) as pool:
        pool.map(same, range(_WORKERS), chunksize=1)
        return {"seconds": time.perf_counter() - begin}


def evolution(pool: bool) -> Values:
    """Seconds for an optimisation of SciPy's with workers that are started for it."""
    from scipy.optimize import differential_evolution, rosen

    bounds = [(0.0, 2.0)] * 5
    options: dict[str, Any] = {
        "maxiter": _GENERATIONS, "tol": 0.0, "polish": False, "updating": "deferred", "seed": 1,
    }  # fmt: skip
    begin = time.perf_counter()
    if pool:
        with multiprocessing.get_context("fork").Pool(_WORKERS) as workers:
            differential_evolution(rosen, bounds, workers=workers.map, **options)
    else:
        with Grid(workers=_WORKERS) as grid:
            differential_evolution(rosen, bounds, workers=grid.map, **options)
    return {"seconds": time.perf_counter() - begin}


def executor_maps(count: int) -> Values:
    """Seconds for `Executor.map` of small tasks with chunks of 500, warm."""
    values = {}
    for name, executor in (
        ("gridrpc", Executor(_WORKERS)),
        ("pool", ProcessPoolExecutor(_WORKERS, mp_context=multiprocessing.get_context("fork"))),
    ):
        with executor:
            list(executor.map(abs, range(1000), chunksize=10))
            values[name] = min(
                _seconds(lambda e=executor: list(e.map(abs, range(count), chunksize=500)))  # type: ignore[misc]
                for _ in range(3)
            )
    return values


def bytes_and_arrays(size: int, count: int) -> Values:
    """Median seconds to send so many bytes to a function and to get them from one, by type."""
    seconds: dict[str, list[float]] = {f"{kind} {way}": [] for kind in _KINDS for way in _WAYS}
    given = {kind: _cached(kind, size) for kind in _KINDS}
    with Grid(workers=1) as grid:
        for kind in _KINDS:
            grid.submit(_cached, kind, size).result()
        for _ in range(count + 1):
            for kind, value in given.items():
                begin = time.perf_counter()
                grid.submit(_pages, value).result()
                middle = time.perf_counter()
                _pages(grid.submit(_cached, kind, size).result())
                seconds[f"{kind} in"].append(middle - begin)
                seconds[f"{kind} out"].append(time.perf_counter() - middle)
    return {name: float(np.median(taken[1:])) for name, taken in seconds.items()}


@functools.cache
def _cached(kind: str, size: int) -> Any:
    """So many bytes, made once in each process."""
    made: dict[str, Callable[[], Any]] = {
        "array": lambda: np.full(size, 7, np.uint8),
        "bytes": lambda: b"7" * size,
        "bytearray": lambda: bytearray(b"7") * size,
        "str": lambda: "7" * size,
    }
    return made[kind]()


def _pages(data: Any) -> int:
    """Read something of each page; returns how many there are."""
    part = data[::PAGE]
    return len(part if isinstance(part, (str, bytes)) else bytes(part))


def killers(count: int, one_in: int) -> Values:
    """Calls of a microsecond, without and with some that kill their worker.

    `rate`, `rate of all good`: calls a second; `lost`: other calls that gave no result.
    """
    with Grid(workers=_WORKERS) as grid:
        grid.wait_until_ready()
        begin = time.perf_counter()
        _results([grid.submit(_perhaps_kill, False) for _ in range(count)])
        all_good = count / (time.perf_counter() - begin)
        begin = time.perf_counter()
        calls = [grid.submit(_perhaps_kill, n % one_in == one_in - 1) for n in range(count)]
        lost = _results(calls)
        rate = count / (time.perf_counter() - begin)
    return {"rate": rate, "rate of all good": all_good, "lost": lost - count // one_in}


def _perhaps_kill(kill: bool) -> None:
    if kill:
        os._exit(1)


def _results(calls: list[Call[None]]) -> int:
    """Take all results. Returns how many were lost."""
    lost = 0
    for call in calls:
        try:
            call.result()
        except WorkerLost:
            lost += 1
    return lost


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def area(extent: Extent) -> Area:
    """In full there is more of what takes little."""
    calls, rounds = (20_000, 7) if extent is Extent.FULL else (5_000, 3)
    return area_of(small=50_000, searched=15, size=64_000_000, calls=calls, rounds=rounds)


def area_of(*, small: int, searched: int, size: int, calls: int, rounds: int) -> Area:
    """With so many small tasks, rounds of searches, bytes of that size in so many rounds, and so
    many calls amid killers."""
    joblib = AreaCase("joblib, small tasks", joblib_backends, {"count": small})
    search = AreaCase("scikit-learn, a search", searches, {"rounds": searched})
    start = AreaCase("two workers", start_of_grid)
    start_pool = AreaCase("two workers of a pool", start_of_pool)
    evolved = AreaCase("differential evolution", evolution, {"pool": False})
    evolved_pool = AreaCase("differential evolution, pool", evolution, {"pool": True})
    executor = AreaCase("Executor.map", executor_maps, {"count": small})
    arguments = {"size": size, "count": rounds}
    moved = AreaCase("bytes as arguments and results", bytes_and_arrays, arguments)
    arguments = {"count": calls, "one_in": 100}
    amid = AreaCase("functions that kill their worker", killers, arguments)
    executor_shown = "Executor.map, 50,000 small items, chunks of 500"
    evolution_shown = f"differential_evolution, {_GENERATIONS} generations, cold"
    compared = [
        ("joblib, 50,000 small tasks, warm", joblib["gridrpc"], joblib["loky"], 1.2),
        ("GridSearchCV, 20 fits, warm", search["gridrpc"], search["loky"], 1.2),
        ("start with NumPy loaded", start["seconds"], start_pool["seconds"], 1.5),
        (evolution_shown, evolved["seconds"], evolved_pool["seconds"], 1.0),
        (executor_shown, executor["gridrpc"], executor["pool"], 1.0),
    ]
    compared += [
        (
            f"64 MB of {kind} {way}; peer: an array",
            moved[f"{kind} {way}"],
            moved[f"array {way}"],
            1.3,
        )
        for kind in _KINDS[1:]
        for way in _WAYS
    ]
    of_all_good = Target(0.5, at_least=True, of_peer=True)
    rows = [
        *(
            PlannedRow(what, "s", ours, peer=peer, target=Target(bound, of_peer=True))
            for what, ours, peer, bound in compared
        ),
        PlannedRow(
            "calls, 1 in 100 kills its worker; peer: none does", "/s", amid["rate"],
            peer=amid["rate of all good"], target=of_all_good, digits=0,
        ),
        PlannedRow("other calls lost with them", "", amid["lost"], target=Target(0), digits=0),
    ]  # fmt: skip
    return Area(
        "libraries",
        f"Python's libraries, {_WORKERS} workers; peers: loky, multiprocessing.Pool, "
        "ProcessPoolExecutor",
        [joblib, search, start, start_pool, evolved, evolved_pool, executor, moved, amid],
        rows,
    )

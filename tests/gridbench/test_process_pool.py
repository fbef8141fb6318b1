"""The process pool as an engine, with real workers."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator

import numpy as np
import psutil
import pytest

from gridbench.engines.base import Task
from gridbench.engines.process_pool import ProcessPoolEngine
from gridbench.workload.task import digests, pattern

DATA = np.arange(9000, dtype=np.int64).astype(np.uint8)
SHARED = np.arange(70_000, dtype=np.int64).astype(np.uint8)[::-1].copy()
Children = Callable[[], list[psutil.Process]]
TIMEOUT = 60  # seconds until a hang becomes a failure


@pytest.fixture
def engine() -> Iterator[ProcessPoolEngine]:
    engine = ProcessPoolEngine()
    watchdog = threading.Timer(TIMEOUT, os._exit, [86])
    watchdog.start()
    yield engine
    engine.close()
    watchdog.cancel()


def task(tid: int, sleep: float = 0.0, *, check: bool = False) -> Task:
    return Task(tid=tid, sleep=sleep, data=DATA, output_bytes=300, check=check)


@pytest.fixture
def children() -> Children:
    """Tells the processes that this one has started since the test began."""
    before = set(psutil.Process().children())
    return lambda: [child for child in psutil.Process().children() if child not in before]


@pytest.mark.parametrize("warm", [False, True])
def test_tasks_get_their_data_and_give_their_output(engine: ProcessPoolEngine, warm: bool) -> None:
    engine.start(3)
    if warm:
        engine.wait_ready()
    shared = engine.share(SHARED)
    for tid in range(1, 11):
        engine.submit(task(tid, check=True), shared)
    outcomes = {outcome.tid: outcome for outcome in (engine.next_outcome() for _ in range(10))}
    assert sorted(outcomes) == list(range(1, 11))
    for outcome in outcomes.values():
        assert outcome.output is not None
        assert outcome.output.tobytes() == digests(DATA, SHARED) + pattern(300).tobytes()
    how = engine.describe().configuration["shared_data"]
    assert how == (
        "argument of each task" if warm else "inherited by the workers through the initializer"
    )


def test_ready_means_all_workers_have_answered(
    engine: ProcessPoolEngine, children: Children
) -> None:
    engine.start(7)
    engine.wait_ready()
    # The initializer has run in each: it is what makes them deaf to Ctrl-C.
    pids = [child.pid for child in children()]
    assert len(pids) == 7
    for pid in pids:
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            ignored = next(int(line.split()[1], 16) for line in file if line.startswith("SigIgn"))
        assert ignored >> (signal.SIGINT - 1) & 1


def test_a_dead_worker_fails_tasks_and_hangs_nothing(
    engine: ProcessPoolEngine, children: Children
) -> None:
    engine.start(2)
    shared = engine.share(SHARED)
    for tid in range(1, 6):
        engine.submit(task(tid, sleep=300), shared)
    children()[0].kill()
    outcomes = [engine.next_outcome() for _ in range(5)]
    assert sorted(outcome.tid for outcome in outcomes) == [1, 2, 3, 4, 5]
    assert all(outcome.error.startswith("BrokenProcessPool: ") for outcome in outcomes)
    engine.submit(task(6), shared)
    assert engine.next_outcome().error.startswith("BrokenProcessPool: ")


def test_an_exception_fails_its_task_alone(engine: ProcessPoolEngine) -> None:
    engine.start(1)
    shared = engine.share(SHARED)
    engine.submit(Task(1, 0.0, DATA, output_bytes=-(10**6), check=True), shared)
    engine.submit(task(2), shared)
    first, second = engine.next_outcome(), engine.next_outcome()
    assert (first.tid, second.tid) == (1, 2)
    assert first.error.startswith("ValueError: ")
    assert "\n" not in first.error
    assert not second.error


@pytest.mark.parametrize("used", [False, True])
def test_closing_leaves_no_process_and_can_be_repeated(
    engine: ProcessPoolEngine, children: Children, used: bool
) -> None:
    engine.start(3)
    if used:
        for tid in range(1, 9):
            engine.submit(task(tid, sleep=300), engine.share(SHARED))
        assert len(children()) == 3
    engine.close()
    assert children() == []
    engine.close()
    # Whoever still waits for outcomes gets them.
    for _ in range(8 if used else 0):
        assert engine.next_outcome().error
    engine.submit(task(9), None)
    assert "closed" in engine.next_outcome().error

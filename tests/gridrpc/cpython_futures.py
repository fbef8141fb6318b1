"""CPython's own tests of process pools, run with `gridrpc.Executor` in place of the pool.

A program of its own: PYTHONPATH has to name a folder whose package `test` is CPython's. Writes, as
JSON, what became of each test into the file that its first argument names.
"""

from __future__ import annotations

import json
import os
import sys
import time
import types
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from test import test_concurrent_futures as cpython

import gridrpc

#: Bound on any wait: only a hang takes so long.
LONG = 60.0


class Worker:
    """A worker's process, as far as the tests look at one of a pool."""

    def __init__(self, process: psutil.Process) -> None:
        self._process = process

    def join(self) -> None:
        self._process.wait(LONG)

    def terminate(self) -> None:
        self._process.terminate()


class Gone:
    """Stands for the pool's own threads: their end is that all processes are gone."""

    def __init__(self, spawner: psutil.Process) -> None:
        self._spawner = spawner

    def join(self) -> None:
        self._spawner.wait(LONG)

    join_thread = join


class Pool(gridrpc.Executor):
    """The executor, with what the tests use of the inside of a process pool."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        before = set(psutil.Process().children())
        super().__init__(*args, **kwargs)
        (self._spawner,) = waited(lambda: set(psutil.Process().children()) - before)
        self._call_queue = self._executor_manager_thread = Gone(self._spawner)

    @property
    def _processes(self) -> dict[int, Worker]:
        found = waited(lambda: len(c := self._spawner.children()) == self._max_workers and c)
        return {process.pid: Worker(process) for process in found}


def waited(look: Callable[[], Any]) -> Any:
    until = time.monotonic() + LONG
    while not (found := look()):
        if time.monotonic() > until:
            raise TimeoutError("what the test waits for does not come")
        time.sleep(0.005)
    return found


class GridMixin(cpython.ProcessPoolSpawnMixin):
    """Has the tests use the executor."""

    executor_type = Pool

    def setUp(self) -> None:
        super().setUp()
        if self._testMethodName == "test_cancel_futures":
            # Some of the calls are to run when the others are cancelled.
            self.executor._work.grid.wait_until_ready()


def assert_python_ok(*args: str) -> Any:
    """Runs a script with the executor under the name by which it imports the pool."""
    replaced = [
        arg.replace("from concurrent.futures import Pool", "from gridrpc import Executor as Pool")
        for arg in args
    ]
    return original(*replaced, PYTHONPATH=os.environ["PYTHONPATH"])


original = cpython.assert_python_ok
cpython.assert_python_ok = assert_python_ok
names = {name: getattr(cpython.futures, name) for name in cpython.futures.__all__}
cpython.futures = types.SimpleNamespace(**{**vars(cpython.futures), **names})
cpython.futures.ProcessPoolExecutor = Pool


class Outcomes(unittest.TestResult):
    def __init__(self) -> None:
        super().__init__()
        self.outcomes: dict[str, str] = {}

    def stopTest(self, test: unittest.TestCase) -> None:
        name = test.id().partition(".")[2]
        self.outcomes.setdefault(name, "passed")
        for kind in (self.failures, self.errors):
            for failed, text in kind:
                if failed is test:
                    self.outcomes[name] = text
        for skipped, reason in self.skipped:
            if skipped is test:
                self.outcomes[name] = f"skipped: {reason}"
        super().stopTest(test)


def main() -> None:
    """Run the tests that the further arguments name, or all of them."""
    tests = (
        cpython.InitializerMixin,
        cpython.FailingInitializerMixin,
        cpython.ProcessPoolShutdownTest,
        cpython.WaitTests,
        cpython.AsCompletedTests,
        cpython.ProcessPoolExecutorTest,
        cpython.ExecutorDeadlockTest,
    )
    suite = unittest.TestSuite()
    for mixin in tests:
        made = type(mixin.__name__, (mixin, GridMixin, cpython.BaseTestCase), {})
        made.__module__ = "gridrpc"
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(made))
    wanted = set(sys.argv[2:])
    chosen = [test for test in suite if not wanted or test._testMethodName in wanted]
    result = Outcomes()
    unittest.TestSuite(chosen).run(result)
    Path(sys.argv[1]).write_text(json.dumps(result.outcomes), encoding="utf-8")


if __name__ == "__main__":
    main()

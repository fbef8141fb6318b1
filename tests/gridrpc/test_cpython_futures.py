"""`gridrpc.Executor` passes CPython's own tests of process pools, but for those listed here.

They come with Debian's package libpython3.11-testsuite, and are run where it puts them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TESTS = Path("/usr/lib/python3.11/test")

#: Tests that fail, and why that is right.
DIFFERENT = {
    "ProcessPoolExecutorTest.test_max_tasks_per_child_defaults_to_spawn_context": (
        "looks at a private attribute; there are no start methods"
    ),
    "ProcessPoolShutdownTest.test_processes_terminate": "all workers start at once, not on demand",
    "ProcessPoolExecutorTest.test_idle_process_reuse_one": "all workers start at once",
    "ProcessPoolExecutorTest.test_idle_process_reuse_multiple": "all workers start at once",
    "ProcessPoolExecutorTest.test_killed_child": (
        "the call that was running fails as the test wants it; but the executor continues"
    ),
    "ProcessPoolExecutorTest.test_traceback": (
        "the cause has the traceback, but is not of a private class of the standard library"
    ),
    "ExecutorDeadlockTest.test_error_at_task_unpickle": (
        "the future has the error itself, not that of a broken pool"
    ),
    "ExecutorDeadlockTest.test_error_during_result_unpickle_in_result_handler": (
        "the future has the error itself, not that of a broken pool"
    ),
    "ExecutorDeadlockTest.test_exit_during_result_unpickle_in_result_handler": (
        "the future has the error itself, SystemExit, not that of a broken pool"
    ),
    "ExecutorDeadlockTest.test_exit_during_func_exec_on_worker": (
        "sys.exit ends the worker, and the call fails as BrokenProcessPool, not as SystemExit"
    ),
    "ExecutorDeadlockTest.test_exit_during_result_pickle_on_worker": (
        "sys.exit ends the worker, and the call fails as BrokenProcessPool, not as SystemExit"
    ),
}
#: Tests that skip themselves.
SKIPPED = {
    "ProcessPoolShutdownTest.test_hang_gh83386": "hangs with the standard library's own pool",
    "ProcessPoolExecutorTest.test_max_workers_too_large": "for Windows",
}


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="these tests are those of Python 3.11")
def test_all_pass_but_those_listed(tmp_path: Path) -> None:
    assert TESTS.is_dir(), "install CPython's tests: scripts/ensure-cpython-tests"
    # Nothing else of that folder is to be found: it has the modules of another interpreter.
    (tmp_path / "test").symlink_to(TESTS)
    written = tmp_path / "outcomes.json"
    subprocess.run(
        [sys.executable, HERE / "cpython_futures.py", written], cwd=tmp_path, timeout=500,
        env={**os.environ, "PYTHONPATH": str(tmp_path)}, check=True, capture_output=True,
    )  # fmt: skip
    outcomes: dict[str, str] = json.loads(written.read_text(encoding="utf-8"))
    assert len(outcomes) > 50
    skipped = {name for name, outcome in outcomes.items() if outcome.startswith("skipped")}
    assert skipped == set(SKIPPED)
    failed = {name: text for name, text in outcomes.items() if text != "passed"}
    unexpected = [failed[name] for name in sorted(failed.keys() - skipped - set(DIFFERENT))]
    assert not unexpected, "\n".join(unexpected)
    assert set(DIFFERENT) <= failed.keys(), "some that are listed pass"

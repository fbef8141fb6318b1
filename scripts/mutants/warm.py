"""A process that has imported what tests need but nothing of the checkout, and forks for each
mutant: so a mutant takes little more than its tests.

Started as `python -m mutants.warm` in a copy of the checkout. It reads lines of JSON, first a list
of modules to import; then, for each mutant, `tests` to run in this order until one fails, and how
many `seconds` they may take; and answers each with the exit status of pytest, or null if they took
longer, which they do if what was changed has no end.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from .changes import ROOT

BROKEN = 70
"""The exit status of a process in which pytest did not even begin."""


class _Only:
    """A plugin of pytest: these tests, in this order."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._rank = {test: number for number, test in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self._rank]
        items.sort(key=lambda item: self._rank[item.nodeid])


class Warm:
    """Such a process, as who started it sees it."""

    def __init__(self, folder: Path, modules: Sequence[str]) -> None:
        path = os.pathsep.join(map(str, (folder / "python", ROOT / "scripts")))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "mutants.warm"],
            cwd=folder, env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._ask(list(modules))

    def run(self, tests: Sequence[str], seconds: float) -> int | None:
        """The exit status of pytest; None if the tests took longer."""
        status: int | None = self._ask({"tests": tests, "seconds": seconds})
        return status

    def _ask(self, question: object) -> int | None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(question), file=self._process.stdin, flush=True)
        answer: int | None = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        """End it."""
        self._process.communicate()


def _serve() -> None:
    for name in json.loads(sys.stdin.readline()):
        with contextlib.suppress(Exception):  # what cannot be imported alone, a test may import
            importlib.import_module(name)
    _answer(0)
    for line in sys.stdin:
        question = json.loads(line)
        _answer(_forked(question["tests"], question["seconds"]))


def _answer(status: int | None) -> None:
    print(json.dumps(status), flush=True)


def _forked(tests: Sequence[str], seconds: float) -> int | None:
    child = os.fork()
    if child == 0:
        _run(tests)
    end = time.monotonic() + seconds
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        time.sleep(0.01)


def _run(tests: Sequence[str]) -> None:
    """In the forked process, which ends here."""
    status = BROKEN
    try:
        os.setsid()
        os.makedirs("target", exist_ok=True)
        with open("target/told", "w") as told, open(os.devnull) as nothing:
            os.dup2(nothing.fileno(), 0)
            os.dup2(told.fileno(), 1)
            os.dup2(told.fileno(), 2)
        shutil.rmtree("target/temporary", ignore_errors=True)
        options = ("-q", "-x", "-n", "0", "--no-cov", "--basetemp=target/temporary")
        files = dict.fromkeys(test.partition("::")[0] for test in tests)
        status = int(pytest.main([*options, *files], plugins=[_Only(tests)]))
        sys.stdout.flush()
    finally:
        os._exit(status)


if __name__ == "__main__":
    _serve()

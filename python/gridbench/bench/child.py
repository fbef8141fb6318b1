"""Runs one case in a fresh process, so that each starts with the same imports and clean memory.

    python -m gridbench.bench.child MODULE:FUNCTION ARGUMENTS

The child imports NumPy and the module, runs the function, and prints its numbers as JSON: all at
once, or a line for each dictionary that the function yields, so that what it had found stays if it
is cut off. SIGTERM asks it to end what it has made, processes and networks, and to end.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from gridbench.bench.figures import LimitReached, Values
from gridbench.engines.environments import ONE_THREAD
from gridbench.engines.leftovers import end_descendants_of
from gridbench.links.owners import remove_leftovers

_POLL = 0.1  # seconds between looks at whether the user wants an end
_GRACE = 40.0  # seconds that a child may take to end what it has made
_RESULT = "result: "  # begins a line of numbers
_LIMIT_STATUS = 75  # of a child whose function has told LimitReached


class CaseFailed(Exception):
    """A run that gave no numbers, or not all, and why."""

    def __init__(self, why: str, values: Values, *, at_limit: bool = False) -> None:
        super().__init__(why)
        self.values = values
        """Those that it had given by then."""
        self.at_limit = at_limit
        """It did not end in time."""


class Stopped(Exception):
    """The user wants an end."""


def start_child(function: Callable[..., Any], arguments: dict[str, Any], **options: Any) -> Any:
    """Start the function in a process of its own; its numbers come on its standard output."""
    name = f"{function.__module__}:{function.__name__}"
    return subprocess.Popen(
        [sys.executable, "-m", "gridbench.bench.child", name, json.dumps(arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | ONE_THREAD,
        **options,
    )


def numbers_of(output: str) -> Values:
    """What a child printed: the lines that are its results, one part of them each."""
    values: Values = {}
    for line in output.splitlines():
        if line.startswith(_RESULT):
            values |= json.loads(line.removeprefix(_RESULT))
    return values


def run_in_child(
    function: Callable[..., Any],
    arguments: dict[str, Any],
    *,
    timeout: float,
    stopped: Callable[[], bool],
) -> Values:
    """The function's numbers. Raises CaseFailed, Stopped; no process is left in any case.

    `stopped` is asked ten times a second.
    """
    # A group of its own: Ctrl-C in the terminal reaches us alone, and we end it all together.
    with tempfile.TemporaryFile("w+") as errors:
        child = start_child(function, arguments, stderr=errors, process_group=0)
        late = False
        with child.stdout:
            try:
                _wait(child.pid, time.monotonic() + timeout, stopped)
            except TimeoutError:
                late = True
            finally:
                if child.poll() is None:
                    _end(child)
                # Workers of pools are in the group; those of grids end with their client.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                child.stdin.close()
            values = numbers_of(child.stdout.read())
        errors.seek(0)
        if late:
            raise CaseFailed(f"gave no result in {timeout:g} s", values, at_limit=True)
        if child.returncode != 0:
            why = _reason(child.returncode, errors.read())
            raise CaseFailed(why, values, at_limit=child.returncode == _LIMIT_STATUS)
        return values


def _end(child: Any) -> None:
    """Have the child end what it has made, and then itself; if it does not, do that for it."""
    child.terminate()
    try:
        child.wait(_GRACE)
    except subprocess.TimeoutExpired:
        end_descendants_of(child.pid)
        child.kill()
        child.wait()
        if os.geteuid() == 0:
            remove_leftovers()


def _wait(pid: int, until: float, stopped: Callable[[], bool]) -> None:
    descriptor = os.pidfd_open(pid)
    try:
        while not select.select([descriptor], [], [], _POLL)[0]:
            if stopped():
                raise Stopped
            if time.monotonic() > until:
                raise TimeoutError
    finally:
        os.close(descriptor)


def _reason(status: int, errors: str) -> str:
    lines = [line for line in errors.splitlines() if line.strip()]
    if status == _LIMIT_STATUS:
        return lines[-1].strip()
    how = f"signal {-status}" if status < 0 else f"exit status {status}"
    return f"{lines[-1].strip()} ({how})" if lines else f"ended with {how}"


def _end_with_parent() -> None:
    """End this process, and its group, when whoever started us is gone: standard input then ends.

    A process of its own looks out for it, which is no child of this one. A thread would be
    measured as well: grids do not fork clients that have threads.
    """
    measured, leads = os.getpid(), os.getpgrp() == os.getpid()
    started = os.fork()
    if started:
        os.waitpid(started, 0)
        return
    if os.fork():
        os._exit(0)
    # The end of the output is to be seen when the other process ends.
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    while os.read(0, 1):
        pass
    with contextlib.suppress(ProcessLookupError):
        descriptor = os.pidfd_open(measured)
        signal.pidfd_send_signal(descriptor, signal.SIGTERM)
        select.select([descriptor], [], [], _GRACE)
    with contextlib.suppress(ProcessLookupError):
        os.kill(measured, signal.SIGKILL)
        if leads:
            os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _end_when_told() -> None:
    """Have SIGTERM unwind this process, once, so that all that it has made is taken down."""
    measured = os.getpid()

    def end(number: int, frame: FrameType | None) -> None:
        del frame
        if os.getpid() != measured:  # one that was forked from it
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        signal.signal(number, signal.SIG_IGN)
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)


def main(name: str, arguments: str) -> None:
    """The child: import everything, then measure."""
    _end_with_parent()
    _end_when_told()
    importlib.import_module("numpy")
    module, _, function = name.partition(":")
    measure = getattr(importlib.import_module(module), function)
    try:
        found = measure(**json.loads(arguments))
        for values in [found] if isinstance(found, dict) else found:
            print(f"{_RESULT}{json.dumps(values)}", flush=True)
    except LimitReached as reached:
        print(reached, file=sys.stderr)
        sys.exit(_LIMIT_STATUS)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Run one command: wall, user and system time, and peak memory.

The kernel counts a process' peak memory from before it executes its program: a child that is forked
from this Python, or spawned with its memory, begins with the peak of this Python. So `setsid
--fork` starts a small shell, which waits for a line and then executes the command in its place. The
clock starts with that line, and what the shell itself has used is subtracted.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO

from gridbench.errors import InputError
from gridbench.machine.processes import processor_time
from gridbench.process.child import LOOK

_HELD = 'echo $$ >&4; read -r _ <&3; exec 3<&- 4>&- "$@"'
_GRACE = 3.0  # seconds from SIGTERM to SIGKILL
_ABOVE = 10  # descriptors from here on are not those that a child gets
_PART = 1 << 20  # bytes
_TAIL = 2000  # bytes of standard error that are shown


@dataclass(frozen=True, slots=True)
class Usage:
    """Resources that a command used; seconds and bytes."""

    wall: float
    user: float
    system: float
    memory: int
    exit_status: int
    """128 + n if signal n ended it."""
    errors: str
    """The last part of its standard error."""


def check_program(words: Sequence[str]) -> None:
    """InputError if the program cannot be found."""
    if shutil.which("setsid") is None:
        raise InputError("setsid is not installed", remedy="apt-get install util-linux")
    if shutil.which(words[0]) is None:
        raise InputError(
            f"there is no program `{words[0]}`",
            remedy="check its path; commands of the shell itself need --shell",
        )


def execute(
    words: Sequence[str], *, input: str = "", output: str = "null", glance: Callable[[], object]
) -> Usage:
    """Run a command in a process group of its own until it ends. `glance` is called ten times a
    second and may raise: then the group is ended. Processes that the command leaves are killed.

    This process must be the one that adopts orphans. InputError if a file cannot be opened.
    """
    with contextlib.ExitStack() as stack:
        errors = stack.enter_context(tempfile.TemporaryFile())
        source = _opened(input or os.devnull, os.O_RDONLY, stack)
        target = _output(output, stack)
        go_read, go = _pipe(stack)
        ready, ready_write = os.pipe()
        stack.callback(os.close, ready)
        with os.fdopen(ready_write), contextlib.ExitStack() as copies:
            descriptors = (source, target, errors.fileno(), go_read, ready_write)
            actions = [
                (os.POSIX_SPAWN_DUP2, _copy(descriptor, copies), place)
                for place, descriptor in enumerate(descriptors)
            ]
            pid = os.posix_spawnp(
                "setsid",
                ["setsid", "--fork", "/bin/sh", "-c", _HELD, "sh", *words],
                os.environ,
                file_actions=actions,
                # Python ignores these, and what is ignored stays so.
                setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
            )
        os.waitpid(pid, 0)
        told = os.read(ready, 20)
        if not told:
            raise InputError(f"`{words[0]}` cannot be started: {_tail(errors)}")
        command = int(told)
        exit_of = os.pidfd_open(command)
        stack.callback(os.close, exit_of)
        before = processor_time(command) or 0.0
        began = time.monotonic()
        os.write(go, b"\n")
        try:
            ended = _wait(exit_of, glance)
        except BaseException:
            _end(command, exit_of)
            raise
        wall = ended - began
        # Its id is its own until it has been waited for.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(command, signal.SIGKILL)
        _, status, usage = os.wait4(command, 0)
        _reap(command)
        processors = usage.ru_utime + usage.ru_stime
        share = max(0.0, 1 - before / processors) if processors else 0.0
        code = os.waitstatus_to_exitcode(status)
        return Usage(
            wall,
            usage.ru_utime * share,
            usage.ru_stime * share,
            usage.ru_maxrss * 1024,
            code if code >= 0 else 128 - code,
            _tail(errors),
        )


def _wait(exit_of: int, glance: Callable[[], object]) -> float:
    """Return the time when it ends."""
    poll = select.poll()
    poll.register(exit_of, select.POLLIN)
    while not poll.poll(LOOK * 1000):
        glance()
    return time.monotonic()


def _end(command: int, exit_of: int) -> None:
    """End a command and its group, and wait for it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(command, number)
        if select.select([exit_of], [], [], _GRACE)[0]:
            break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(command, signal.SIGKILL)
    os.waitpid(command, 0)
    _reap(command)


def _reap(group: int) -> None:
    """Wait for the killed processes of the group that this process has adopted."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-group, os.WNOHANG)[0]:
            pass


def _output(output: str, stack: contextlib.ExitStack) -> int:
    """The descriptor for standard output."""
    if output == "inherit":
        return 1
    if output == "pipe":
        reader, writer = os.pipe()
        stack.callback(os.close, writer)
        threading.Thread(target=_drain, args=(reader,), daemon=True).start()
        return writer
    path = os.devnull if output == "null" else output
    return _opened(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, stack)


def _drain(reader: int) -> None:
    """Read all of a pipe and drop it."""
    with open(reader, "rb", buffering=0) as file:
        while file.read(_PART):
            pass


def _opened(path: str, flags: int, stack: contextlib.ExitStack) -> int:
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise InputError(f"cannot be opened: {error.strerror}", file=path) from None
    stack.callback(os.close, descriptor)
    return descriptor


def _pipe(stack: contextlib.ExitStack) -> tuple[int, int]:
    ends = os.pipe()
    for end in ends:
        stack.callback(os.close, end)
    return ends


def _copy(descriptor: int, stack: contextlib.ExitStack) -> int:
    """A copy outside the range of descriptors that a child gets."""
    copy = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _ABOVE)
    stack.callback(os.close, copy)
    return copy


def _tail(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _TAIL))
    return file.read().decode(errors="replace").strip()

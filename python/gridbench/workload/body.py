"""What a task does between taking its data and making its output: its body, by name.

`sleep` waits and loads nothing. `spin` uses that much time of a processor, so that tasks that share
one take longer. `MODULE:FUNCTION` calls a function of the user with the seconds, the data of the
task and the shared data; `FOLDER/MODULE:FUNCTION` finds its module in a folder.
`LIBRARY.so:FUNCTION` calls a C function of a shared library, and `exec:WORDS` runs a program.

Workers import this, so it imports next to nothing.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from functools import cache
from typing import Any

SLEEP = "sleep"
SPIN = "spin"
PROGRAM = "exec:"
"""Comes before the words of a command, as a shell reads them; {seconds} is the time of the task."""

Body = Callable[[float, Any, Any], object]


def keeps_time(name: str) -> bool:
    """Whether a body of that name takes the seconds that it is given; a user's takes its own."""
    return name in (SLEEP, SPIN)


def is_library(path: str) -> bool:
    """Whether that is the path of a shared library, and not of a Python module."""
    file = path.rpartition("/")[2]
    return file.endswith(".so") or ".so." in file


@cache
def body(name: str) -> Body:
    """The body of that name. What importing a user's module raises comes through.

    Raises TypeError if it is not callable.
    """
    known: dict[str, Body] = {SLEEP: _sleep, SPIN: _spin}
    if name in known:
        return known[name]
    if name.startswith(PROGRAM):
        return _program(name.removeprefix(PROGRAM))
    place, _, function = name.rpartition(":")
    if is_library(place):
        return _compiled(place, function)
    folder, _, module = place.rpartition("/")
    if folder and folder not in sys.path:
        sys.path.insert(0, folder)
    found: Body = getattr(importlib.import_module(module), function)
    if not callable(found):
        raise TypeError(f"{name} is not a function")
    return found


def _sleep(seconds: float, data: Any, shared: Any) -> None:
    del data, shared
    if seconds > 0:
        time.sleep(seconds)


def _spin(seconds: float, data: Any, shared: Any) -> None:
    del data, shared
    # Time of this thread alone: what others use of the processor makes it last longer.
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def _compiled(library: str, function: str) -> Body:
    """`FUNCTION(double seconds, const void *data, size_t size, const void *shared, size_t size)`;
    what it returns is ignored. One with fewer of these parameters works as well.

    It runs without the interpreter's lock. Raises OSError or AttributeError if it is not there.
    """
    import ctypes

    called = getattr(ctypes.CDLL(library), function)
    buffer = (ctypes.c_char_p, ctypes.c_size_t)
    called.argtypes = (ctypes.c_double, *buffer, *buffer)
    called.restype = None

    def call(seconds: float, data: Any, shared: Any) -> None:
        inputs = [b"" if one is None else bytes(one) for one in (data, shared)]
        called(seconds, inputs[0], len(inputs[0]), inputs[1], len(inputs[1]))

    return call


def _program(words: str) -> Body:
    """Run a program with the task's data on its standard input. RuntimeError, with the end of its
    standard error, if it fails."""
    import shlex
    import subprocess

    def run(seconds: float, data: Any, shared: Any) -> None:
        del shared
        command = [word.replace("{seconds}", repr(seconds)) for word in shlex.split(words)]
        ended = subprocess.run(
            command,
            input=b"" if data is None else bytes(data),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
        )
        if ended.returncode != 0:
            text = ended.stderr[-300:].decode(errors="replace").strip()
            raise RuntimeError(f"{command[0]} ended with status {ended.returncode}: {text}")

    return run

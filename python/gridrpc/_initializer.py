"""What each worker runs before its first call: the client writes it down, workers read it.

It lies in memory of the client's that has a name in /proc, so that it may be of any size, and that
workers started later find it as well.
"""

from __future__ import annotations

import os
import sys
from pickle import loads

from gridrpc._pickling import dumps_by_value

TYPE_CHECKING = False  # as in `__init__`

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: Arguments of the initializer of this worker.
_kept: list[object] = []
#: Bytes that arrays begin at a multiple of.
ALIGNMENT = 64


class Initializer:
    """A function and its arguments, for workers. Raises what pickling them raises."""

    def __init__(self, function: Callable[..., object], args: tuple[Any, ...]) -> None:
        if not callable(function):
            raise TypeError(f"`initializer` is {function!r}: give a callable")
        self._inherited = _Inherited()
        with self._inherited:
            head, buffers = dumps_by_value((function, args))
        parts = [memoryview(head), *(buffer.raw() for buffer in buffers)]
        lengths = " ".join(str(part.nbytes) for part in parts)
        self._file = os.memfd_create("gridrpc-initializer")
        with open(self._file, "wb", closefd=False) as file:
            file.write(f"{lengths}\n".encode())
            for part in parts:
                file.write(bytes(-file.tell() % ALIGNMENT))
                file.write(part)
        #: Where workers find it as long as it is not closed.
        self.path = f"/proc/{os.getpid()}/fd/{self._file}"
        if not os.path.exists(self.path):
            from gridrpc.errors import ConfigError

            raise ConfigError(
                "workers find their `initializer` in /proc, which is missing: mount it, or leave "
                "out `initializer`"
            )

    def close(self) -> None:
        """No more workers will be started."""
        self._inherited.close()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self.close()


class Logged:
    """An initializer whose errors are logged as those of a process pool are."""

    def __init__(self, function: Callable[..., object]) -> None:
        self.function = function

    def __call__(self, *args: Any) -> None:
        try:
            self.function(*args)
        except Exception:
            from concurrent.futures._base import LOGGER

            LOGGER.critical("Exception in initializer:", exc_info=True)
            # It has been reported, by default on standard error.
            raise SystemExit(1) from None


def initialize(path: str) -> None:
    """Run it, in a worker."""
    import mmap

    with open(path, "rb") as file:
        sizes = [int(size) for size in file.readline().split()]
        at = file.tell()
        # What a worker writes to its arrays is its own.
        memory = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
    parts = []
    for size in sizes:
        at += -at % ALIGNMENT
        parts.append(memoryview(memory)[at : at + size])
        at += size
    function, args = loads(parts[0], buffers=parts[1:])
    own = function.function if isinstance(function, Logged) else function
    before = dict(getattr(own, "__globals__", ()))
    function(*args)
    by_value = sys.modules.get("gridrpc._by_value")
    if by_value is not None:
        by_value.note_assigned(own, before)
    # They may hold queues and pipes open that the client waits for.
    _kept.append(args)


class _Inherited:
    """Lets locks, queues and pipes of `multiprocessing` be pickled, as for a process it starts.

    Those that only a forked child can have are refused by `multiprocessing` itself.
    """

    def __init__(self) -> None:
        self._descriptors: list[int] = []

    def __enter__(self) -> None:
        context = sys.modules.get("multiprocessing.context")
        self._outer = context and context.get_spawning_popen()
        if context:
            context.set_spawning_popen(self)

    def __exit__(self, *_: object) -> None:
        context = sys.modules.get("multiprocessing.context")
        if context:
            context.set_spawning_popen(self._outer)

    def duplicate_for_child(self, descriptor: int) -> int:
        """A copy that is there as long as workers are started."""
        self._descriptors.append(os.dup(descriptor))
        return self._descriptors[-1]

    def DupFd(self, descriptor: int) -> Descriptor:
        """What is pickled for a descriptor."""
        return Descriptor(os.getpid(), descriptor)

    def close(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.pop())


class Descriptor:
    """A pipe or file that the client has open."""

    def __init__(self, process: int, number: int) -> None:
        import fcntl

        self.path = f"/proc/{process}/fd/{number}"
        self.mode = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE

    def detach(self) -> int:
        """Open it here."""
        # Not to wait for somebody at the other end of a pipe.
        descriptor = os.open(self.path, self.mode | os.O_NONBLOCK | os.O_CLOEXEC)
        os.set_blocking(descriptor, True)
        return descriptor

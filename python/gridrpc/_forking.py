"""A spawner that is forked from the client, and so need not import what the client has imported.

That is done where nothing speaks against it: see `objection`. Else, a fresh interpreter becomes
the spawner, and imports what workers need. docs/developers/notes/012-start-methods.md tells why.
"""

from __future__ import annotations

import _thread
import atexit
import gc
import os
import signal
import stat
import sys
from types import FrameType, ModuleType

from gridrpc import _native
from gridrpc._nesting import module_being_imported

TYPE_CHECKING = False  # as in `__init__`

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

#: A process with more memory of its own takes long to fork, and the workers would keep all of it.
MOST_MEMORY = 256 << 20
#: Calls that the client may be in: workers have them on their stack as well.
MOST_FRAMES = 100

#: Open files that another process does not disturb as long as it leaves them alone; grids that have
#: been closed have some.
HARMLESS = (
    "anon_inode:[eventfd]",
    "anon_inode:[eventpoll]",
    "/memfd:gridrpc-progress",
    "/memfd:gridrpc-outboxes",
)

#: What the client has that its workers must not destroy, or is to see as its own.
_kept: list[object] = []


def fork_spawner(
    environment: Sequence[tuple[str, str]], threads: int
) -> _native.ForkedSpawner | None:
    """A spawner that is forked from this process; None if that turns out not to be safe.

    `threads`: how many numerical libraries may use in its workers; 0: as many as here.
    """
    _flush()
    forked = _native.fork_spawner(os.fork, threads)
    if forked is None:
        _serve(environment)
    if forked.safe:
        return forked
    forked.give_up()
    return None


def objection() -> str | None:
    """Why a fork of this process could be noticed; None: it could not."""
    worker = sys.modules.get("gridrpc._worker")
    if worker is not None and worker.serving:
        return "this process is itself a worker"
    if sys.gettrace() is not None or sys.getprofile() is not None or _is_monitored():
        return "this thread is being traced"
    if sys.exc_info()[0] is not None:
        return "an exception is being handled"
    if module_being_imported() is not None:
        return "a module is being imported"
    if _frames(sys._getframe()) > MOST_FRAMES:
        return "the calls that this thread is in are many"
    # The first needs no /proc, and the others do.
    return (
        threads_of_its_own() or _much_memory() or _streams() or _descriptors() or _unknown_library()
    )


def threads_of_its_own() -> str | None:
    """Whether Python code of this process has started threads that continue, as far as is known."""
    if _thread._count():
        return "this process has threads"
    return None if os.path.isdir("/proc/self/task") else "/proc, which shows threads, is missing"


def _is_monitored() -> bool:
    """Whether a debugger, profiler or coverage tool uses `sys.monitoring` (Python 3.12)."""
    monitoring = getattr(sys, "monitoring", None)
    return monitoring is not None and any(map(monitoring.get_tool, range(6)))


def _frames(frame: FrameType | None) -> int:
    count = 0
    while frame is not None:
        frame = frame.f_back
        count += 1
    return count


def _much_memory() -> str | None:
    with open("/proc/self/statm", encoding="ascii") as reported:
        _, resident, shared, *_ = map(int, reported.read().split())
    own = (resident - shared) * os.sysconf("SC_PAGESIZE")
    return "this process has much memory of its own" if own > MOST_MEMORY else None


def _streams() -> str | None:
    for stream, number in ((sys.__stdout__, 1), (sys.__stderr__, 2)):
        try:
            if stream is not None and stream.fileno() != number:
                return "standard output or error is not where it was"
        except (OSError, ValueError):
            return "standard output or error is closed"
    return None


def _descriptors() -> str | None:
    """Whether there are open files that another process could disturb, or keep open.

    Those that programs inherit have been inherited by this one, or are meant to be.
    """
    for name in os.listdir("/proc/self/fd"):
        number = int(name)
        try:
            if number < 3 or os.get_inheritable(number):
                continue
            if os.readlink(f"/proc/self/fd/{number}").startswith(HARMLESS):
                continue
            kind = os.fstat(number).st_mode
            flags = _flags(number)
        except OSError:  # that of the list itself
            continue
        reading = flags & os.O_ACCMODE == os.O_RDONLY
        harmless = stat.S_ISDIR(kind) or stat.S_ISCHR(kind) or (stat.S_ISREG(kind) and reading)
        if not harmless:
            return "this process has open files, pipes or sockets"
    return None


def _flags(number: int) -> int:
    with open(f"/proc/self/fdinfo/{number}", encoding="ascii") as reported:
        for line in reported:
            if line.startswith("flags:"):
                return int(line.split()[1], 8)
    return os.O_RDWR


def _unknown_library() -> str | None:
    known = _native.threads_are_known()
    return None if known else "a numerical library is loaded whose number of threads cannot be set"


def _flush() -> None:
    """Flush buffers, or both processes would write them."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        if stream is not None and not stream.closed:
            stream.flush()


def _serve(environment: Sequence[tuple[str, str]]) -> NoReturn:
    """In the forked process: be the spawner, or a worker that it forks."""
    status = 1
    try:
        # Nothing of the client is collected here, and nothing that it has begun is ended here.
        gc.freeze()
        gc.disable()
        atexit._clear()
        _kept.append(sys.modules["__main__"])
        sys.modules["__main__"] = ModuleType("__main__")
        _reset_signals()
        _reset_streams()
        _leave_children()
        os.environ.update(environment)
        os.environ["GRIDRPC_DEPTH"] = str(int(os.environ.get("GRIDRPC_DEPTH", "0")) + 1)
        from gridrpc._worker import main

        main()
        status = 0
    except SystemExit as exit:
        status = _status(exit)
        atexit._run_exitfuncs()
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        try:
            _flush()
        finally:
            # Lower stack frames belong to the client.
            os._exit(status)


def _reset_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _reset_streams() -> None:
    """Standard streams as those of a new process; the client may have put others in their place."""
    _kept.extend((sys.stdin, sys.stdout, sys.stderr))
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - for good
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__


def _leave_children() -> None:
    """Leave the client's processes of `multiprocessing` to it: only a parent can wait for them."""
    process = sys.modules.get("multiprocessing.process")
    if process is not None:
        process._children.clear()


def _status(exit: SystemExit) -> int:
    """What an interpreter makes of it."""
    if exit.code is None:
        return 0
    if isinstance(exit.code, int):
        return exit.code & 0xFF
    print(exit.code, file=sys.stderr)
    return 1

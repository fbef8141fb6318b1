"""The side of a process that `gridbench.process.child` has started: its end with its parent's.

It imports next to nothing before it has to: some of these processes measure how long imports take.
"""

from __future__ import annotations

import os
import select
import signal

GRACE = 40.0
"""Seconds that a process without threads may take to end what it has made."""


def serve(descriptor: str, *, threads: bool = True) -> int:
    """The socket to who has started this process; when that one is gone, this process ends.

    It ends at once then, with all that descends from it. Without `threads` it is told to end by
    SIGTERM, as another process looks out for it: grids do not fork clients that have threads.
    """
    number = int(descriptor)
    # It is not for the processes that this one starts.
    os.set_inheritable(number, False)
    if threads:
        import threading

        threading.Thread(
            target=_end_with_parent, args=(number,), name="parent", daemon=True
        ).start()
    else:
        _start_lookout(number)
    return number


def end_now() -> None:
    """End at once, with all that descends from this process: nobody wants its results."""
    from gridbench.process.leftovers import end_descendants_of

    end_descendants_of(os.getpid())
    os._exit(1)


def _end_with_parent(number: int) -> None:
    _hangup_of(number).poll()
    end_now()


def _hangup_of(number: int) -> select.poll:
    """What tells, beside others, that the other end of a socket has been closed."""
    poll = select.poll()
    poll.register(number, select.POLLRDHUP)
    return poll


def _start_lookout(number: int) -> None:
    """Start a process that is no child of this one, and ends it when the parent is gone."""
    served = os.getpid()
    if started := os.fork():
        os.waitpid(started, 0)
        return
    if os.fork():
        os._exit(0)
    exit_of_served = os.pidfd_open(served)
    poll = _hangup_of(number)
    poll.register(exit_of_served, select.POLLIN)
    if exit_of_served not in dict(poll.poll()):
        signal.pidfd_send_signal(exit_of_served, signal.SIGTERM)
        if not select.select([exit_of_served], [], [], GRACE)[0]:
            from gridbench.process.leftovers import end_descendants_of

            end_descendants_of(served)
            signal.pidfd_send_signal(exit_of_served, signal.SIGKILL)
    os._exit(0)

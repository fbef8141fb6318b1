"""Room for open files, made before a process needs it."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress

FILES = 256
"""Open files that a program has room for which bash has started: that has one with number 255."""


def make_room_for_files(files: int = FILES) -> None:
    """Have room for so many open files: as many as the script of a user who starts it in a shell.

    A process that another program has started, or that is a copy of one, has room for 64. Beyond
    that the kernel makes more in steps, and a process with threads stands still at each, until none
    of them can use the old table any more: its workers would seem to start later than those of a
    user's script do. To be called before there are threads.
    """
    with suppress(OSError):  # there may not be so many
        os.close(fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, files - 1))

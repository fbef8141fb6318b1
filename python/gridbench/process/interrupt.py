"""Ctrl-C and its kin: the first asks for a clean end, the second ends at once."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SHOW_CURSOR = b"\x1b[?25h"


class Stopped(Exception):
    """The user, or a batch system, wants an end."""


class Interrupt:
    """While active, notes signals instead of raising, as an exception could strike anywhere:
    between two writes, or in the middle of closing an engine."""

    def __init__(self) -> None:
        self.signal: int | None = None
        """The first signal that came."""
        self._before: dict[int, Any] = {}

    @property
    def came(self) -> bool:
        """Whether the user, or a batch system, wants an end."""
        return self.signal is not None

    def check(self) -> None:
        """Raise Stopped if it came."""
        if self.came:
            raise Stopped

    @property
    def exit_status(self) -> int:
        """What a shell expects of a program that a signal ended: 130 for Ctrl-C."""
        return 128 + (self.signal or 0)

    def __enter__(self) -> Interrupt:
        for number in _SIGNALS:
            # A signal that is ignored, as by nohup, stays so.
            if signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self.came:
            if sys.stderr.isatty():
                os.write(2, _SHOW_CURSOR)
            os._exit(128 + number)
        self.signal = number

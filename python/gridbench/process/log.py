"""What a process has printed, and how it ended."""

from __future__ import annotations

import signal
import tempfile
from typing import IO

_WIDTH = 300  # characters of a line that are shown


class Log:
    """An unnamed file for the output of a process."""

    def __init__(self) -> None:
        self.file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`

    def last_lines(self, count: int) -> list[str]:
        """The last lines that are not empty, cut to what fits into a message."""
        self.file.seek(0)
        text = self.file.read().decode(errors="replace")
        return [line.strip()[:_WIDTH] for line in text.splitlines() if line.strip()][-count:]

    def close(self) -> None:
        """Forget it."""
        self.file.close()


def ending(status: int) -> str:
    """How a process ended, to follow a word for it: "ended with exit status 2"."""
    if status < 0:
        return f"was ended by signal {-status} ({signal.strsignal(-status)})"
    return f"ended with exit status {status}"

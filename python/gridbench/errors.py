"""What gridbench tells a user who gave it something it cannot use."""

from __future__ import annotations

import sys

from gridbench_testbed.errors import InputError

__all__ = ["BusyMachine", "InputError", "print_error"]


class BusyMachine(InputError):
    """Other programs use the machine, so measurements on it would be invalid."""

    exit_status = 3


def print_error(what: object) -> None:
    """Print an error on standard error, in one write: threads may print at the same time."""
    print(f"gridbench: error: {what}\n", end="", file=sys.stderr, flush=True)


def print_warning(what: object) -> None:
    """The same for what does not end the program."""
    print(f"gridbench: warning: {what}\n", end="", file=sys.stderr, flush=True)

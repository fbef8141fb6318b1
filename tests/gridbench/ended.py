"""Waiting for processes of other processes to end."""

from __future__ import annotations

import time

import psutil

_LONG = 30.0  # seconds that nothing takes


def gone(pid: int) -> bool:
    """Whether the process ends, or has ended."""
    until = time.monotonic() + _LONG
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True

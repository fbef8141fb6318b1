"""A process that this one has adopted."""

from __future__ import annotations

import os
import select
import signal
import subprocess


class Adopted:
    """A child of this process that another one has started: what `subprocess.Popen` offers for
    those that it starts itself."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        """As of `subprocess.Popen`: None while it runs, minus the signal that has ended it."""

    def poll(self) -> int | None:
        """Look whether it has ended."""
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # taken in by who ends what was left behind
                self.returncode = 0
            else:
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended; subprocess.TimeoutExpired if it has not after `timeout` s."""
        if self.poll() is None:
            end = os.pidfd_open(self.pid)
            try:
                select.select([end], [], [], timeout)
            finally:
                os.close(end)
            self.poll()
        if self.returncode is None:
            raise subprocess.TimeoutExpired([f"process {self.pid}"], timeout or 0.0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


Started = subprocess.Popen[bytes] | Adopted
"""A child of this process, whoever has started it."""

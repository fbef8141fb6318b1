"""Pyro5 beside ours: a server whose function does nothing. Prints `ready`; ends with its input.

Its argument is the socket.
"""

from __future__ import annotations

import sys
import threading

import Pyro5.api
import Pyro5.server


class Null:
    """One object."""

    @Pyro5.api.expose  # type: ignore[untyped-decorator]
    def null(self) -> None:
        """Nothing."""


def _end_with_input() -> None:
    sys.stdin.read()
    daemon.shutdown()


daemon = Pyro5.server.Daemon(unixsocket=sys.argv[1])
daemon.register(Null(), "null")
threading.Thread(target=_end_with_input, daemon=True).start()
print("ready", flush=True)
daemon.requestLoop()

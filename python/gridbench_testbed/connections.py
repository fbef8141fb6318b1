"""Connections to a listener, each served in a thread of its own."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable

#: How long to wait when a connection cannot be accepted for want of descriptors or memory, s.
PAUSE = 0.1


def serve_each(listener: socket.socket, serve: Callable[[socket.socket], object]) -> None:
    """Have `serve` called with each connection, until the listener is closed.

    A shortage of descriptors only delays further connections, and one of threads ends those that
    come meanwhile.
    """
    while listener.fileno() >= 0:
        try:
            connection, _ = listener.accept()
        except OSError:
            time.sleep(PAUSE)
            continue
        try:
            threading.Thread(target=serve, args=(connection,), daemon=True).start()
        except (RuntimeError, MemoryError):
            connection.close()

r"""A relay that delays a connection in both directions.

    ip netns exec NAMESPACE python -m gridbench_testbed.links.relay \
        SECONDS HOST PORT TARGET TARGET_PORT

It listens on HOST and PORT (0: any free port), prints its port, connects to the target for each
connection, and ends with its standard input. It is for kernels that cannot delay packets
(CONFIG_NET_SCH_NETEM). It delays bytes, not packets: the relay acknowledges at once, so the window
of a connection grows as fast as without a delay.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import socket
import sys
import threading
import time

from gridbench_testbed.daemons import serve_each

_BLOCK = 256 << 10  # bytes read at a time
_MOST = 64 << 20  # bytes in flight in each direction before the sender waits


class _Way:
    """One direction of a connection: bytes with their due time."""

    def __init__(self, source: socket.socket, target: socket.socket, delay: float) -> None:
        self._source, self._target, self._delay = source, target, delay
        self._due: collections.deque[tuple[float, bytes]] = collections.deque()
        self._size = 0
        self._changed = threading.Condition()

    def start(self) -> None:
        """Start both ends in threads."""
        for end in (self._take, self._give):
            threading.Thread(target=end, daemon=True).start()

    def _take(self) -> None:
        block = b"?"
        while block:
            try:
                block = self._source.recv(_BLOCK)
            except OSError:
                block = b""
            with self._changed:
                self._changed.wait_for(lambda: self._size < _MOST)
                self._due.append((time.monotonic() + self._delay, block))
                self._size += len(block)
                self._changed.notify_all()

    def _give(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._due)
                due, block = self._due.popleft()
            time.sleep(max(0.0, due - time.monotonic()))
            # The end of the stream is forwarded as well.
            with contextlib.suppress(OSError):
                if not block:
                    self._target.shutdown(socket.SHUT_WR)
                else:
                    self._target.sendall(block)
            if not block:
                return
            with self._changed:
                self._size -= len(block)
                self._changed.notify_all()


def _join(come: socket.socket, target: tuple[str, int], delay: float) -> None:
    try:
        gone = socket.create_connection(target)
    except OSError:
        come.close()
        return
    for end in (come, gone):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    _Way(come, gone, delay).start()
    _Way(gone, come, delay).start()


def main(delay: str, host: str, port: str, target: str, target_port: str) -> None:
    """Serve until standard input ends."""
    with socket.create_server((host, int(port))) as listener:
        place = (target, int(target_port))
        serve = functools.partial(_join, target=place, delay=float(delay))
        threading.Thread(target=serve_each, args=(listener, serve), daemon=True).start()
        print(listener.getsockname()[1], flush=True)
        sys.stdin.buffer.read()


if __name__ == "__main__":
    main(*sys.argv[1:])

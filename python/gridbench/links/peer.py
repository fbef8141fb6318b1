"""The far end of what `gridbench links` measures: a process in the network namespace of a node.

    ip netns exec NAMESPACE python -m gridbench.links.peer

It prints its port, serves each connection what its first bytes ask for, and ends with its standard
input.
"""

from __future__ import annotations

import socket
import struct
import sys
import threading
import time
from typing import Literal

from gridbench_testbed.daemons import serve_each

What = Literal[b"echo", b"take", b"give"]

REQUEST = struct.Struct("!4sdI")
"""What to do, for how many seconds, and how large the buffer of the socket is to be, bytes."""
BLOCK = 256 << 10  # bytes given to the socket at one time


def send_for(connection: socket.socket, seconds: float) -> int:
    """Send as much as the connection takes in this time. Returns how many bytes that were."""
    block = bytes(BLOCK)
    count = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        count += connection.send(block)
    connection.shutdown(socket.SHUT_WR)
    return count


def receive_all(connection: socket.socket) -> int:
    """Receive until the other end sends no more. Returns how many bytes came."""
    buffer = bytearray(BLOCK)
    count = 0
    while received := connection.recv_into(buffer):
        count += received
    return count


def limit_buffer(connection: socket.socket, size: int) -> None:
    """Let little wait in the socket: on a slow link it would wait there for long."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)


def _serve(connection: socket.socket) -> None:
    with connection:
        request = connection.recv(REQUEST.size, socket.MSG_WAITALL)
        if len(request) < REQUEST.size:
            return
        what, seconds, size = REQUEST.unpack(request)
        if what == b"echo":
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while received := connection.recv(1):
                connection.sendall(received)
        elif what == b"take":
            receive_all(connection)
            connection.sendall(b"!")
        elif what == b"give":
            limit_buffer(connection, size)
            send_for(connection, seconds)


def main() -> None:
    """Serve until standard input is at its end."""
    with socket.create_server(("", 0)) as listener:
        threading.Thread(target=serve_each, args=(listener, _serve), daemon=True).start()
        print(listener.getsockname()[1], flush=True)
        sys.stdin.buffer.read()


if __name__ == "__main__":
    main()

"""Delays the frames between two network interfaces, in both directions.

    ip netns exec NAMESPACE python -m gridbench_testbed.links.delay SECONDS INTERFACE INTERFACE

It takes each Ethernet frame from one interface and sends it by the other one after the delay, as a
long cable does. It is for kernels that cannot delay packets (CONFIG_NET_SCH_NETEM). It prints
`ready`, and ends with its standard input.
"""

from __future__ import annotations

import collections
import contextlib
import os
import select
import socket
import sys
import time

_SOL_PACKET, _ALL = 263, 3
# Frames travel with their offloads: up to 64 KiB, and checksums that are not computed yet.
_PACKET_VNET_HDR, _PACKET_IGNORE_OUTGOING = 15, 23
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
_BUFFER = 32 << 20  # bytes
_LARGEST = 128 << 10  # bytes of a frame
_AT_ONCE = 64  # frames that are taken from one side before the other has a turn


class _Direction:
    """From one interface to the other one."""

    def __init__(self, source: socket.socket, target: socket.socket, delay: float) -> None:
        self.source = source
        self._target = target
        self._delay = delay
        self._due: collections.deque[tuple[float, bytes]] = collections.deque()

    def take(self) -> None:
        """Take the frames that are there."""
        with contextlib.suppress(BlockingIOError):
            for _ in range(_AT_ONCE):
                frame = self.source.recv(_LARGEST)
                self._due.append((time.monotonic() + self._delay, frame))

    def give(self) -> float | None:
        """Send the frames that are due; seconds until the next one, None if there is none."""
        while self._due:
            left = self._due[0][0] - time.monotonic()
            if left > 0:
                return left
            _, frame = self._due.popleft()
            # A full queue drops the frame, as a switch does.
            with contextlib.suppress(OSError):
                self._target.send(frame)
        return None


def main(delay: str, first: str, second: str) -> None:
    """Serve until standard input ends."""
    with contextlib.suppress(OSError):
        # Others on the machine must not make the cable longer.
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    ends = [_opened(name) for name in (first, second)]
    ways = [
        _Direction(ends[0], ends[1], float(delay)),
        _Direction(ends[1], ends[0], float(delay)),
    ]
    inputs: list[socket.socket | int] = [*ends, sys.stdin.fileno()]
    print("ready", flush=True)
    while True:
        waits = [left for way in ways if (left := way.give()) is not None]
        readable, _, _ = select.select(inputs, [], [], min(waits, default=None))
        if inputs[-1] in readable and not os.read(0, 4096):
            return
        for way in ways:
            if way.source in readable:
                way.take()


def _opened(name: str) -> socket.socket:
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    end.setsockopt(_SOL_PACKET, _PACKET_VNET_HDR, 1)
    end.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
    for option in (_SO_SNDBUFFORCE, _SO_RCVBUFFORCE):
        end.setsockopt(socket.SOL_SOCKET, option, _BUFFER)
    end.bind((name, _ALL))
    end.setblocking(False)
    return end


if __name__ == "__main__":
    main(*sys.argv[1:])

"""What the machine allows: the simplest program that does the same, without any engine."""

from __future__ import annotations

import os
import select
import signal
import socket
import statistics
import time

import numpy as np

from gridbench.bench.figures import Values

_MESSAGE = b"x" * 64


def ping_pong(calls: int) -> Values:
    """Median round trip, in us, of 64 bytes between two Python processes over a Unix socket."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    pid = os.fork()
    if pid == 0:
        here.close()
        while message := there.recv(len(_MESSAGE)):
            there.sendall(message)
        os._exit(0)
    there.close()
    times = []
    for _ in range(calls):
        begin = time.perf_counter()
        here.sendall(_MESSAGE)
        here.recv(len(_MESSAGE))
        times.append(time.perf_counter() - begin)
    here.close()
    os.waitpid(pid, 0)
    return {"us": statistics.median(times) * 1e6}


def copying(size: int) -> Values:
    """Seconds to copy `size` bytes into memory that was never touched, and into warm memory."""
    source = np.full(size, 7, np.uint8)
    target = np.empty(size, np.uint8)
    begin = time.perf_counter()
    np.copyto(target, source)
    new = time.perf_counter() - begin
    warm = []
    for _ in range(5):
        begin = time.perf_counter()
        np.copyto(target, source)
        warm.append(time.perf_counter() - begin)
    return {"new": new, "warm": statistics.median(warm)}


def forking(processes: int) -> Values:
    """Seconds to fork so many processes off this one, until each has written one byte."""
    ready, tell = os.pipe()
    children = []
    begin = time.perf_counter()
    for _ in range(processes):
        pid = os.fork()
        if pid == 0:
            os.write(tell, b"x")
            signal.pause()
        children.append(pid)
    heard = 0
    while heard < processes:
        select.select([ready], [], [])
        heard += len(os.read(ready, processes))
    passed = time.perf_counter() - begin
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return {"seconds": passed}

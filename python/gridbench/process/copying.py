"""A process that has imported a module, and is copied for each run of it: the inside.

    python -m gridbench.process.copying DESCRIPTOR MODULE [ARGUMENT...]

A copy begins with what a new process has after the same imports, and a fifth of a second sooner.
With arguments, the module's `prepare` is called with them, for what copies would all have to do
before anything is measured. It must start no threads: copies would not have them.
`gridbench.process.child` is the other side.
"""

from __future__ import annotations

import gc
import importlib
import os
import socket
import sys

PID = 4
"""Bytes of a process id, as it is sent."""
_ORDER = sys.byteorder


def main(descriptor: str, module: str, *arguments: str) -> None:
    """Make copies for as long as the socket is open. Each request brings two descriptors: a copy's
    socket, which the `main` of the module is given, and what it prints to."""
    requests = socket.socket(fileno=int(descriptor))
    loaded = importlib.import_module(module)
    if arguments:
        loaded.prepare(*arguments)
    # Collecting garbage would write to pages that a copy shares with this process.
    gc.collect()
    gc.freeze()
    while True:
        request, descriptors, _, _ = socket.recv_fds(requests, 1, 2)
        if not request:
            return
        theirs, output = descriptors
        pid = _copy()
        if pid == 0:
            requests.close()
            os.setsid()
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.close(output)
            loaded.main(str(theirs))
            return
        os.close(theirs)
        os.close(output)
        requests.sendall(pid.to_bytes(PID, _ORDER))


def _copy() -> int:
    """Fork; 0 in the copy. Its parent ends at once: so it is given to who adopts this process's
    orphans, has been when this returns, and can be waited for there like any child."""
    reported, tells = os.pipe()
    if between := os.fork():
        os.close(tells)
        os.waitpid(between, 0)
        pid = int.from_bytes(os.read(reported, PID), _ORDER)
        os.close(reported)
        return pid
    if pid := os.fork():
        os.write(tells, pid.to_bytes(PID, _ORDER))
        os._exit(0)
    os.close(reported)
    os.close(tells)
    return 0


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Children that are copies of a process that has imported their module: our side."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from types import TracebackType
from typing import Self

from gridbench.process.adopted import Adopted
from gridbench.process.child import Child
from gridbench.process.copying import PID
from gridbench.process.launch import PYTHON


class Template:
    """A process that has imported a module, for children that run it (`gridbench.process.copying`).

    With `arguments`, it has called the module's `prepare` with them as well.

    It has to be made before `Leftovers` is active, which would take it for one of them, and is used
    while that is: copies are adopted.
    """

    def __init__(self, module: str, *arguments: str) -> None:
        self._module = module
        self._requests, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            self._process = subprocess.Popen(
                [
                    *PYTHON,
                    "-m",
                    "gridbench.process.copying",
                    str(number),
                    module,
                    *arguments,
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[number],
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._requests.close()
        self._process.wait()

    def child(self) -> Child:
        """A copy; a new process, if there can be no copy any more."""
        with contextlib.suppress(OSError):
            return Child.started_by(self._copy)
        return Child(self._module)

    def _copy(self, theirs: int, output: int) -> Adopted:
        socket.send_fds(self._requests, [b"1"], [theirs, output])
        pid = self._requests.recv(PID, socket.MSG_WAITALL)
        if len(pid) < PID:
            raise OSError(f"process {self._process.pid} of {self._module} has ended")
        return Adopted(int.from_bytes(pid, sys.byteorder))

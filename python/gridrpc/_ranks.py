"""Functions that run on several ranks of MPI: in the worker, which starts them and talks to them.

Ranks are processes of their own, started once by `mpirun` and kept for the next call that asks for
as many. Each has a connection to its worker for calls and answers; so ranks
that wait for a call take no processor time, as they would if they waited by MPI. What they say to
each other is the function's affair.
"""

from __future__ import annotations

import hmac
import os
import secrets
import selectors
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from importlib.util import find_spec
from pathlib import Path

from gridrpc import _native
from gridrpc._frozen import RANK
from gridrpc._launch import python_command
from gridrpc._rank import PATIENCE, SECRET, TCP
from gridrpc._wrapped import Wrapped

TYPE_CHECKING = False  # as in `__init__`

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from typing import Any

    from gridrpc.errors import RanksLost

#: Seconds within which all ranks have to be there.
START_TIME = 120.0
#: Seconds that other ranks may continue when one has raised an error: they may wait for it forever.
GRACE = 1.0
#: Lines of what ranks write to their standard error that are reported with their loss.
TAIL = 40
#: What tells the command another place; for hosts where it is not in PATH.
COMMAND = "GRIDRPC_MPIRUN"


class OnRanks(Wrapped):
    """Calls a function on ranks, and returns what it returns on rank 0."""

    def __init__(
        self, function: str | Callable[..., Any], ranks: int, threads: int, command: str
    ) -> None:
        super().__init__(function)
        self.ranks = ranks
        self.threads = threads
        self.command = command

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from gridrpc._by_value import dumps

        call = dumps((self.function, args, kwargs))
        command = os.environ.get(COMMAND) or self.command
        return _group_of(self.ranks, self.threads, command).call(call, self.__qualname__)


class _Group:
    """Ranks that are there."""

    def __init__(self, ranks: int, threads: int, command: str) -> None:
        self.ranks = ranks
        self.threads = threads
        self.command = command
        self._tail: deque[str] = deque(maxlen=TAIL)
        self._folder = tempfile.mkdtemp(prefix="gridrpc-ranks-")
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None
        self._connections: list[Connection] = []
        try:
            self._start()
        except BaseException:
            self.end()
            raise

    def _start(self) -> None:
        words = shlex.split(self.command)
        if not words or shutil.which(words[0]) is None:
            raise FileNotFoundError(
                f"`{words[0] if words else ''}`, which starts ranks, is not there: install Open "
                "MPI (openmpi-bin), or name the command by `mpirun` in the grid's configuration, "
                f"or on one host by {COMMAND} in the environment of its workers"
            )
        if find_spec("mpi4py") is None:
            raise ModuleNotFoundError(
                f"{sys.executable} has no package mpi4py, which functions on ranks need: "
                "pip install mpi4py",
                name="mpi4py",
            )
        variables = _environment(self.threads)
        nodes = _native.nodes_for_ranks(self.ranks, self.threads)
        with _listener(self._folder if nodes is None else None) as listener:
            listener.listen(self.ranks)
            options, place, secret = [], listener.getsockname(), b""
            if nodes is not None:
                mapping, hosts = nodes
                place = f"{TCP}{place[1]}:{','.join(hosts)}"
                variables[SECRET] = secrets.token_hex()
                secret = variables[SECRET].encode()
                passed = [SECRET, "PYTHONPATH", *_native.THREAD_VARIABLES]
                options = [*mapping, *(word for name in passed for word in ("-x", name))]
            program = [*python_command(RANK), RANK, place]
            self._process = subprocess.Popen(
                [*words, *options, "-n", str(self.ranks), *program],
                env=variables,
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                # Signals for the worker's group, such as ^C in a terminal, are the worker's affair.
                process_group=0,
            )
            reader = threading.Thread(target=self._read_errors, daemon=True)
            reader.start()
            self._reader = reader
            self._accept(listener, secret)
        # Nothing is left behind, however this process ends.
        shutil.rmtree(self._folder, ignore_errors=True)

    def _accept(self, listener: socket.socket, secret: bytes) -> None:
        """Wait for all ranks. `secret`: what those on other nodes send first."""
        from multiprocessing.connection import Connection as Opened

        assert self._process is not None
        places: list[Connection | None] = [None] * self.ranks
        listener.settimeout(0.1)
        end = time.monotonic() + START_TIME
        while None in places:
            try:
                accepted, _ = listener.accept()
            except TimeoutError:
                if self._process.poll() is not None:
                    raise self._lost("could not be started") from None
                if time.monotonic() > end:
                    raise self._lost(f"have not come within {START_TIME:.0f} s") from None
                continue
            if secret and not _knows(accepted, secret):
                accepted.close()
                continue
            accepted.settimeout(None)
            connection: Connection = Opened(accepted.detach())
            if not connection.poll(max(0.0, end - time.monotonic())):
                raise self._lost(f"have not come within {START_TIME:.0f} s")
            try:
                rank = connection.recv()
            except EOFError:
                continue
            places[rank] = connection
            connection.send((sys.path, os.getcwd()))
        self._connections = [place for place in places if place is not None]

    def _read_errors(self) -> None:
        """Pass on what ranks write to their standard error, and keep the last of it."""
        process = self._process
        assert process is not None
        assert process.stderr is not None
        for line in process.stderr:
            if self._process is None:
                # Messages about ranks that this worker has ended are no news.
                continue
            text = line.decode(errors="replace")
            self._tail.append(text)
            if sys.stderr is not None:
                sys.stderr.write(text)
                sys.stderr.flush()

    def call(self, call: bytes, name: str) -> Any:
        """What the function returns on rank 0. Raises what it raises on any rank, and RanksLost."""
        try:
            for connection in self._connections:
                connection.send_bytes(call)
        except OSError:
            raise self._lost(f"were lost before they ran {name}") from None
        answers: dict[int, tuple[str, Any]] = {}
        end: float | None = None
        with selectors.DefaultSelector() as selector:
            for rank, connection in enumerate(self._connections):
                selector.register(connection, selectors.EVENT_READ, rank)
            while len(answers) < self.ranks:
                left = None if end is None else end - time.monotonic()
                ready = selector.select(left)
                for key, _ in ready:
                    try:
                        answers[key.data] = self._connections[key.data].recv()
                    except (EOFError, OSError):
                        if not any(kind == "raised" for kind, _ in answers.values()):
                            raise self._lost(f"were lost that ran {name}", key.data) from None
                        end = 0.0
                    selector.unregister(key.fileobj)
                    if answers.get(key.data, ("",))[0] == "raised" and end is None:
                        end = time.monotonic() + GRACE
                if end is not None and time.monotonic() >= end:
                    # The others wait for the one that has raised an error, or have died of it.
                    self.end()
                    break
        for rank in sorted(answers):
            kind, value = answers[rank]
            if kind == "raised":
                value.add_note(f"gridrpc: on rank {rank} of {self.ranks}")
                raise value
        return answers[0][1]

    def _lost(self, what: str, rank: int | None = None) -> RanksLost:
        from gridrpc.errors import RanksLost

        process = self._process
        assert process is not None
        try:
            # `mpirun` ends the others when one has died, and tells why.
            status = process.wait(5)
        except subprocess.TimeoutExpired:
            status = None
        else:
            if self._reader is not None:
                self._reader.join(5)
        self.end()
        which = "" if rank is None else f"; rank {rank} ended first"
        ended = ""
        if status is not None:
            ended = f": `{self.command}` ended " + (
                f"by signal {-status}" if status < 0 else f"with status {status}"
            )
        tail = "".join(self._tail)
        said = f"\n{tail.rstrip()}" if tail else ""
        return RanksLost(
            f"{self.ranks} ranks {what}{which}{ended}{said}",
            pid=process.pid,
            host=socket.gethostname(),
            status=status if status is not None and status >= 0 else None,
            signal=-status if status is not None and status < 0 else None,
            stderr=tail,
        )

    def is_there(self) -> bool:
        """Whether it can be called."""
        return self._process is not None and self._process.poll() is None

    def end(self) -> None:
        """End the ranks: they do as soon as their connections close."""
        process, self._process = self._process, None
        for connection in self._connections:
            connection.close()
        self._connections = []
        if process is not None:
            try:
                process.wait(0.5)
            except subprocess.TimeoutExpired:
                # It passes this on to its ranks.
                process.terminate()
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


#: The ranks that this worker has.
_kept: _Group | None = None


def _group_of(ranks: int, threads: int, command: str) -> _Group:
    """As many ranks: those of the last call, if it had as many, else new ones."""
    global _kept
    known, wanted = _kept, (ranks, threads, command)
    if known is not None:
        if known.is_there() and (known.ranks, known.threads, known.command) == wanted:
            return known
        _kept = None
        known.end()
    _kept = _Group(*wanted)
    return _kept


def _listener(folder: str | None) -> socket.socket:
    """Where ranks connect to: in a folder of this node, or from other nodes too."""
    if folder is not None:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(os.path.join(folder, "worker"))
        return listener
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    return socket.create_server(("", 0), family=family, dualstack_ipv6=both)


def _knows(accepted: socket.socket, secret: bytes) -> bool:
    """Whether what has connected sends the secret."""
    accepted.settimeout(PATIENCE)
    try:
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sent = accepted.recv(len(secret), socket.MSG_WAITALL)
    except OSError:
        return False
    return hmac.compare_digest(sent, secret)


def _environment(threads: int) -> dict[str, str]:
    """What ranks and `mpirun` have in their environment."""
    kept = dict(_native.ranks_environment())
    # The worker's own numbers are those of the whole call.
    kept.update(dict.fromkeys(_native.THREAD_VARIABLES, str(threads)))
    # Where this worker finds gridrpc, so that they do.
    path = str(Path(__file__).resolve().parent.parent)
    others = kept.get("PYTHONPATH")
    kept["PYTHONPATH"] = os.pathsep.join([path, others] if others else [path])
    return kept

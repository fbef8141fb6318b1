"""Daemons of one's own on this machine, beside the system's, with all files in one folder."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Self

PATIENCE = 30.0  # seconds for what takes milliseconds
_MARK = "GRIDBENCH_DAEMONS"
"""The variable that tells these daemons, and what they start, from all other processes."""


def path() -> str:
    """Daemons are in folders that not everybody's PATH has."""
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def lacking(*programs: str) -> str:
    """The first of the programs that is not installed; empty if all are."""
    return next((one for one in programs if shutil.which(one, path=path()) is None), "")


def name_of(pid: int) -> str:
    """What a process is called; empty if there is none."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def free_ports(count: int, address: str = "127.0.0.1") -> list[int]:
    """Ports of an interface that nobody listens at, all different."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((address, 0))
        return [one.getsockname()[1] for one in sockets]


class Daemons:
    """While open, daemons run, for commands with the variables of `environment`.

    They end with the thread that has started them, and so with its process, however that ends.
    """

    _ends: ClassVar[Mapping[str, signal.Signals]] = {}
    """Daemons that another signal than SIGTERM ends."""
    _sessions: ClassVar = True
    """Whether each daemon has a session of its own, or else a process group alone."""

    def __init__(self, name: str, directory: Path | None = None) -> None:
        """`directory`: where `folder` is made, by default where temporary files are."""
        self.folder = Path(tempfile.mkdtemp(prefix=f"gr{os.getpid()}-{name}-", dir=directory))
        """All its files: log/ has what the daemons write."""
        (self.folder / "log").mkdir()
        # Daemons want a folder that everybody can reach.
        self.folder.chmod(0o755)
        self.variables: dict[str, str] = {}
        """What programs need in their environment to use it."""
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._closed = False
        self._owner = os.getpid()
        self._before: dict[str, str | None] = {}
        atexit.register(self.close)

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a command that uses it."""
        return {**os.environ, "PATH": path(), **self.variables}

    @property
    def processes(self) -> dict[str, int]:
        """The ids of the daemons' processes."""
        return {name: daemon.pid for name, daemon in self._daemons.items()}

    def use(self) -> None:
        """Have this process, and what it starts, use it too until it is closed."""
        self._before = {name: os.environ.get(name) for name in self.variables}
        os.environ.update(self.variables)

    def run(self, *command: str) -> str:
        """Run one of its commands; what it has printed. Raises RuntimeError if that fails."""
        # Ctrl-C is for the client: what it asks for then has to be answered.
        ran = subprocess.run(
            command, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=PATIENCE, check=False, start_new_session=True,
        )  # fmt: skip
        if ran.returncode != 0:
            said = ran.stderr.strip() or ran.stdout.strip()
            raise RuntimeError(f"{' '.join(command)}: {ran.returncode}: {said}")
        return ran.stdout

    def check(self) -> None:
        """Raises RuntimeError when a daemon has ended."""
        for name, daemon in self._daemons.items():
            if _has_ended(daemon):
                raise RuntimeError(f"{name} has ended: {self._log()}")

    def close(self) -> None:
        """End all daemons, and remove the files; may be called again."""
        # A process that was forked from their owner leaves them alone when it unwinds.
        if self._closed or os.getpid() != self._owner:
            return
        self._closed = True
        atexit.unregister(self.close)
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        try:
            if self._daemons:
                self._leave()
        finally:
            for name in reversed(list(self._daemons)):
                self._end(name)
            # What looks after a job's processes outlives the daemons.
            for pid in self._marked():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _leave(self) -> None:
        """What is done while the daemons still run, before they are ended."""

    def _start(self, name: str, program: str, *arguments: str) -> None:
        with (self.folder / "log" / f"{name}.out").open("ab") as log:
            self._daemons[name] = subprocess.Popen(
                [
                    "setpriv", "--pdeathsig", self._end_of(name).name.removeprefix("SIG"),
                    shutil.which(program, path=path()) or program, *arguments,
                ],
                cwd="/", env={**self.environment, _MARK: str(self.folder)},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=self._sessions, process_group=None if self._sessions else 0,
            )  # fmt: skip

    def _end(self, name: str) -> None:
        self._signal_to_end(name)
        daemon = self._daemons.pop(name)
        end = time.monotonic() + PATIENCE
        while not _has_ended(daemon) and time.monotonic() < end:
            time.sleep(0.01)
        if self._sessions:
            daemon.kill()
        else:
            # What it has started may have written a title over the variable that marks it.
            os.killpg(daemon.pid, signal.SIGKILL)
        daemon.wait()

    def _signal_to_end(self, name: str) -> None:
        daemon = self._daemons[name]
        if self._sessions:
            daemon.send_signal(self._end_of(name))
        else:
            os.killpg(daemon.pid, self._end_of(name))

    def _end_of(self, name: str) -> signal.Signals:
        return self._ends.get(name, signal.SIGTERM)

    @contextlib.contextmanager
    def _frozen(self, pid: int) -> Iterator[None]:
        """Have a daemon hang: commands wait for its answer."""
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def _marked(self) -> list[int]:
        """What the daemons have left."""
        mark = f"{_MARK}={self.folder}".encode()
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    found.append(int(process.name))
        return found

    def _until(self, condition: Callable[[], object], what: str) -> None:
        """Wait. Raises RuntimeError when a daemon ends, and TimeoutError with `what` is wrong."""
        end = time.monotonic() + PATIENCE
        while not condition():
            self.check()
            if time.monotonic() > end:
                raise TimeoutError(f"{what}: {self._log()}")
            time.sleep(0.02)

    def _log(self) -> str:
        """The last of what the daemons have written."""
        logs = sorted((self.folder / "log").iterdir())
        return "\n".join(f"{log.name}: {log.read_text(errors='replace')[-1000:]}" for log in logs)


def _has_ended(daemon: subprocess.Popen[bytes]) -> bool:
    """Without reaping it: until that is done, nobody else gets the number of its group."""
    if daemon.returncode is not None:
        return True
    return os.waitid(os.P_PID, daemon.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


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

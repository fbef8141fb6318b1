"""Private daemons on this machine, beside the system's, with all files in one folder."""

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

PATIENCE = 30.0  # seconds, for steps that take milliseconds
_MARK = "GRIDBENCH_DAEMONS"
"""Environment variable that marks these daemons and their processes."""


def path() -> str:
    """PATH with the system folders of daemons."""
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def lacking(*programs: str) -> str:
    """The first program that is not installed; empty if all are."""
    return next((one for one in programs if shutil.which(one, path=path()) is None), "")


def name_of(pid: int) -> str:
    """The name of a process; empty if it has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def free_ports(count: int, address: str = "127.0.0.1") -> list[int]:
    """Different free ports of an interface."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((address, 0))
        return [one.getsockname()[1] for one in sockets]


def rest_from(requested: float, least: float = 0.02) -> None:
    """Sleep before a condition is checked again, at least `least` s; `asked`: when the last check
    began, on time.monotonic().

    Checks start programs or look through all processes. They take at most a fifth of the time, as
    what they wait for needs the processors.
    """
    time.sleep(max(least, min(0.25, 4 * (time.monotonic() - requested))))


class Daemons:
    """Daemons that run while this is open, for commands with the variables of `environment`.

    They end with the thread that started them, and so with its process.
    """

    _ends: ClassVar[Mapping[str, signal.Signals]] = {}
    """Signals that end daemons, where it is not SIGTERM."""
    _sessions: ClassVar = True
    """Whether each daemon has its own session, or only a process group."""

    def __init__(
        self, name: str, directory: Path | None = None, namespace: Path | None = None
    ) -> None:
        """`directory`: the parent of `folder`, by default that of temporary files. `namespace`: the
        network namespace in which daemons and commands run."""
        self.folder = Path(tempfile.mkdtemp(prefix=f"gr{os.getpid()}-{name}-", dir=directory))
        """All its files, with the daemons' output in log/."""
        (self.folder / "log").mkdir()
        # Daemons require a folder that all users can reach.
        self.folder.chmod(0o755)
        self.variables: dict[str, str] = {}
        """Environment variables of programs that use it."""
        self.inside = ["nsenter", f"--net={namespace}"] if namespace else []
        """Prefix of commands, for its network namespace."""
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._closed = False
        self._owner = os.getpid()
        self._before: dict[str, str | None] = {}
        atexit.register(self.close)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a command that uses it."""
        return {**os.environ, "PATH": path(), **self.variables}

    @property
    def processes(self) -> dict[str, int]:
        """The ids of the daemons' processes."""
        return {name: daemon.pid for name, daemon in self._daemons.items()}

    def use(self) -> None:
        """Set the variables in this process, until it is closed."""
        self._before = {name: os.environ.get(name) for name in self.variables}
        os.environ.update(self.variables)

    def run(self, *command: str) -> str:
        """Run a command; its output. Raises RuntimeError if it fails."""
        # Ctrl-C is for the client, whose further commands must be answered.
        ran = subprocess.run(
            [*self.inside, *command], env=self.environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=PATIENCE, check=False, start_new_session=True,
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
        # A process forked from the owner must not end them.
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
            # Supervisors of jobs outlive the daemons.
            for pid in self._marked():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _making(self) -> Iterator[None]:
        """End started daemons if the rest fails."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _leave(self) -> None:
        """Clean up while the daemons still run."""

    def _start(self, name: str, program: str, *arguments: str) -> None:
        with (self.folder / "log" / f"{name}.out").open("ab") as log:
            self._daemons[name] = subprocess.Popen(
                [
                    "setpriv", "--pdeathsig", self._end_of(name).name.removeprefix("SIG"),
                    *self.inside, shutil.which(program, path=path()) or program, *arguments,
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
            # Its processes may have overwritten the mark with a title.
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
        """Stop a daemon, so that commands wait for its answer."""
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def _marked(self) -> list[int]:
        """Remaining marked processes."""
        mark = f"{_MARK}={self.folder}".encode()
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    found.append(int(process.name))
        return found

    def _until(self, condition: Callable[[], object], what: str, timeout: float = PATIENCE) -> None:
        """Wait. Raises RuntimeError if a daemon ends, TimeoutError with `what` after a timeout."""
        end = time.monotonic() + timeout
        while True:
            requested = time.monotonic()
            if condition():
                return
            self.check()
            if time.monotonic() > end:
                raise TimeoutError(f"{what}: {self._log()}")
            rest_from(requested)

    def _log(self) -> str:
        """The end of each daemon's output."""
        logs = sorted((self.folder / "log").iterdir())
        return "\n".join(f"{log.name}: {log.read_text(errors='replace')[-1000:]}" for log in logs)


def _has_ended(daemon: subprocess.Popen[bytes]) -> bool:
    """Whether it has ended, without reaping it, which would free the id of its group."""
    if daemon.returncode is not None:
        return True
    return os.waitid(os.P_PID, daemon.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


#: Seconds to wait when a connection cannot be accepted for lack of descriptors or memory.
PAUSE = 0.1


def serve_each(listener: socket.socket, serve: Callable[[socket.socket], object]) -> None:
    """Call `serve` in a thread for each connection, until the listener is closed.

    A lack of descriptors delays connections; a lack of threads closes them.
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

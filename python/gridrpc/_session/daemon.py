"""The process of a session: it opens a grid, runs maps, and answers the requests of programs."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

from gridrpc import _native
from gridrpc._grid import Grid
from gridrpc._log import logger
from gridrpc._session import registry
from gridrpc._session.map_pool import MapPool
from gridrpc._session.maps import MapRequests
from gridrpc._session.protocol import Message, decode, encode, pack
from gridrpc._session.registry import SessionRecord
from gridrpc.errors import ConfigError, GridError, SessionError, StartError

#: Maximum wait for the lock, which the last workers of an earlier process may hold, s.
LOCK_WAIT = 5.0
#: How long the start waits for a failure of the hosts; how long, if all have failed once, until the
#: grid gives them up; and the interval between checks, s.
FAILURE_WAIT, LOSS_WAIT, POLL = 2.0, 10.0, 0.05
#: Maximum number of connections, unless a quarter of the descriptors is less: workers need some.
MOST_CONNECTIONS = 1000
#: Maximum size of the log, and of the old log, bytes.
MOST_LOG = 32 << 20


class SessionDaemon:
    """A session, in its own process. Raises GridError and OSError when it cannot start."""

    def __init__(self, name: str, limit: float | None, settings: dict[str, Any]) -> None:
        self._folder = registry.make(name)
        self._lock = _locked(self._folder, name)
        _native.name_program(f"gridrpc session {name}")
        self._grid = Grid(**settings)
        try:
            if self._grid.config.worker != "python":
                raise ConfigError("sessions run functions of Python: leave out `worker`")
            _refuse_hopeless(self._grid)
            self._record = SessionRecord.of_this_process(name, limit)
            #: Set when the session has to end; the record says why.
            self._ends = Event()
            #: When the limit is reached. The wall clock would jump when it is set.
            self._until = None if limit is None else _now() + limit
            self._maps = MapPool(self._grid, self._folder)
            self._requests: dict[str, Callable[..., Message]] = {
                "about": self._about,
                "status": self._status,
                "hosts": self._hosts,
                "stop": self._stop,
                **MapRequests(self._maps).by_name,
            }
            descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            self._daemon = _native.Daemon(
                self._grid._native,
                str(self._folder / registry.SOCKET),
                self._answer,
                min(MOST_CONNECTIONS, max(descriptors // 4, 1)),
            )
            self._record.write()
        except BaseException:
            self._grid.close()
            raise

    def serve(self) -> None:
        """Run until the limit is reached, or a request or SIGTERM ends the session."""
        signals: list[int] = []
        signal.signal(signal.SIGTERM, lambda number, _: signals.append(number))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        # Python calls the handlers between the waits.
        while not self._ends.wait(0.2):
            if signals:
                self._end("it was ended by SIGTERM")
            elif self._until is not None and _now() >= self._until:
                self._end("its limit was reached")
            # If there were no threads, or no descriptors, there may be some now.
            self._maps.start_threads()
            _rotate(self._folder / registry.LOG)
        self._close()

    def _end(self, why: str) -> None:
        if not self._ends.is_set():
            self._record.ended = f"{why}, {time.strftime('%Y-%m-%d %H:%M:%S')}"
            self._ends.set()

    def _close(self) -> None:
        logger.info("ends: %s", self._record.ended)
        # Programs read it when their connections end.
        self._record.write()
        # All of them: one may wait for room in the queue of the grid that another one leaves.
        self._maps.stop()
        self._daemon.close()
        self._maps.close()
        self._grid.close()
        (self._folder / registry.SOCKET).unlink(missing_ok=True)
        os.close(self._lock)

    # ---- Requests

    def _answer(self, name: str, sections: list[bytes]) -> list[bytes]:
        """Answer a request. Threads of the native daemon call this."""
        try:
            if self._ends.is_set():
                raise self._record.error()
            if name not in self._requests:
                raise ValueError(f"the session has no request `{name}`")
            fields, others = decode(sections)
            return encode(self._requests[name](*others, **fields))
        except Exception as error:
            if self._ends.is_set():  # the maps are being closed
                raise self._record.error() from None
            if not isinstance(error, (GridError, LookupError, ValueError)):
                logger.exception("%s", name)
            raise

    def _about(self) -> Message:
        return {"gridrpc": self._record.gridrpc, "python": self._record.python}, []

    def _status(self) -> Message:
        ready, _, _ = self._grid._native.counts()
        maps, errors = self._maps.status()
        return {
            "workers": self._grid.workers,
            "ready": ready,
            "absent": self._grid._native.absent_hosts(),
            # Without the program that makes the request.
            "attached": self._daemon.attached - 1,
            "maps": maps,
        }, pack(errors)

    def _hosts(self) -> Message:
        return {"hosts": self._grid.hosts()}, []

    def _stop(self) -> Message:
        self._end("it was stopped")
        return {}, []


def _now() -> float:
    """Seconds on a clock that cannot be set, and that runs while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _rotate(log: Path) -> None:
    """Move the contents of a long log to another file. Other processes have the log open, so it is
    emptied and not renamed."""
    try:
        if log.stat().st_size < MOST_LOG:
            return
        old = log.with_name(f"{log.name}.old")
        try:
            with log.open("rb") as reader, old.open("wb") as writer:
                reader.seek(-MOST_LOG, os.SEEK_END)
                writer.write(reader.read(MOST_LOG))
        finally:  # also on a full disk
            os.truncate(log, 0)
    except OSError as error:
        logger.warning("the log cannot be put aside: %s", error)
        return
    logger.info("the log had %d MB: the last of them are in %s", MOST_LOG >> 20, old)


def _refuse_hopeless(grid: Grid) -> None:
    """Raise StartError if it soon turns out that there will be no workers, such as when a batch
    system refuses the jobs. Hosts that start, or wait in a queue, may come later."""
    begun = time.monotonic()
    wait = FAILURE_WAIT
    while time.monotonic() < begun + wait:
        try:
            if grid._native.wait_until_ready(POLL):
                return
        except StartError:
            if all(host.state == "lost" for host in grid.hosts()):
                raise
            time.sleep(POLL)
        hosts = grid.hosts()
        states = {host.state for host in hosts}
        if hosts and "starting" not in states and states != {"lost"}:
            return
        # Hosts that have failed may be tried again.
        failed = [
            one.state == "lost" or one.detail.startswith(f"host {one.host} ") for one in hosts
        ]
        wait = LOSS_WAIT if failed and all(failed) else FAILURE_WAIT


def _locked(folder: Path, name: str) -> int:
    """The lock that a session holds while it lives."""
    lock = os.open(folder / registry.LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    until = time.monotonic() + LOCK_WAIT
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError:
            if time.monotonic() > until:
                os.close(lock)
                raise SessionError(
                    f"session `{name}` is there already: `gridrpc session show {name}`", name
                ) from None
            time.sleep(0.05)


def main() -> None:
    """Run the session that standard input describes, as `gridrpc session start` starts it.

    Writes to the pipe why the session cannot start, or null.
    """
    given = json.load(sys.stdin)
    # Workers must not hold it open.
    os.set_inheritable(given["pipe"], False)
    with os.fdopen(given["pipe"], "w", encoding="utf-8") as pipe:
        logging.basicConfig(
            level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
        )
        try:
            daemon = SessionDaemon(given["name"], given["limit"], given["settings"])
        except Exception as error:
            if not isinstance(error, (GridError, OSError)):
                logger.exception("the session cannot begin")
            json.dump(f"{error}", pipe)
            return
        json.dump(None, pipe)
    os.close(0)
    os.open(os.devnull, os.O_RDONLY)
    daemon.serve()

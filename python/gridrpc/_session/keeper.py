"""The process of a session: it holds a grid and maps, and programs attach to it."""

from __future__ import annotations

import fcntl
import logging
import os
import pickle
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from gridrpc import _native
from gridrpc._grid import Grid
from gridrpc._hosts import HostState
from gridrpc._journal import Journal
from gridrpc._log import logger
from gridrpc._session import places
from gridrpc._session.frames import Frames, Gone, listen, user_of
from gridrpc._session.kept import KeptMap, Plan
from gridrpc._session.places import Record
from gridrpc._session.running import Runner
from gridrpc.errors import ConfigError, GridError, JournalError, SessionError, StartError

#: A program that waits for results is answered after so long, s: it may be gone by then.
MOST_WAIT = 5.0
#: How long an earlier process's last workers may hold its lock, s.
LOCK_WAIT = 5.0
#: How long a session that begins waits for a failure of its hosts, s; how long, if all have failed
#: once, for them to be given up, as the grid tries again; and between two looks.
FAILURE_WAIT, LOSS_WAIT, LOOK = 2.0, 10.0, 0.05
#: How long a program may take to say its version, s.
HANDSHAKE = 10.0
#: Connections at a time; a quarter of the descriptors if that is less, as workers need some too.
MOST_CONNECTIONS = 1000
#: How long to wait when a connection cannot be accepted for want of descriptors or memory, s.
SHORTAGE_PAUSE = 0.1
#: The log has at most so many bytes, and what came before it as many.
MOST_LOG = 32 << 20


class Keeper:
    """A session, in its own process. Raises GridError when it cannot begin."""

    def __init__(self, name: str, limit: float | None, settings: dict[str, Any]) -> None:
        self._folder = places.make(name)
        self._lock = _locked(self._folder, name)
        _native.name_program(f"gridrpc session {name}")
        self._grid = Grid(**settings)
        try:
            if self._grid.config.worker != "python":
                raise ConfigError("sessions run functions of Python: leave out `worker`")
            _refuse_hopeless(self._grid)
            self._record = Record.of_this_process(name, limit)
            self._maps: dict[str, tuple[KeptMap, Runner]] = {}
            #: Held to add and remove maps.
            self._changing = Lock()
            #: The keys of maps that are being removed, which may take as long as a call.
            self._removing: set[str] = set()
            #: Is set when the session is to end; why, is in the record.
            self._ends = Event()
            #: When the limit is reached. The wall clock may be set.
            self._until = None if limit is None else _now() + limit
            self._attached: set[Frames] = set()
            for key in places.keys_in(self._folder):
                self._take(self._loaded(key))
            self._listener = listen(self._folder)
            Thread(target=self._accept, name="accept", daemon=True).start()
            self._record.write()
        except BaseException:
            self._grid.close()
            raise

    def _loaded(self, key: str) -> KeptMap:
        try:
            return KeptMap.loaded(self._folder, key)
        except Exception as error:  # whatever it is that is in the file
            raise SessionError(
                f"map `{key}` in {self._folder} cannot be continued: {error}. Move its files "
                "elsewhere, and start the session again",
                self._folder.name,
            ) from error

    def _take(self, kept: KeptMap) -> KeptMap:
        self._maps[kept.key] = kept, Runner(self._grid, kept)
        return kept

    # ---- Its life

    def serve(self) -> None:
        """Serve programs until the limit is reached, or somebody ends the session."""
        signals: list[int] = []
        signal.signal(signal.SIGTERM, lambda number, _: signals.append(number))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        # In pieces, so that signals are seen to.
        while not self._ends.wait(0.2):
            if signals:
                self.end("it was ended by SIGTERM")
            elif self._until is not None and _now() >= self._until:
                self.end("its limit was reached")
            _bound(self._folder / places.LOG)
        self._close()

    def end(self, why: str) -> None:
        """Have the session end."""
        if not self._ends.is_set():
            self._record.ended = f"{why}, {time.strftime('%Y-%m-%d %H:%M:%S')}"
            self._ends.set()

    def _close(self) -> None:
        logger.info("ends: %s", self._record.ended)
        with suppress(OSError):  # has the thread that accepts end
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        # Programs are told by this why their connections end.
        self._record.write()
        for frames in list(self._attached):
            frames.close()
        with self._changing:
            runners = [runner for _, runner in self._maps.values()]
            self._maps.clear()
        # One may wait for room in the queue of the grid, which another gives up.
        for runner in runners:
            runner.stop()
        for runner in runners:
            try:
                runner.close()
            except Exception:  # such as a full disk: all else is to be ended
                logger.exception("a map cannot be closed")
        self._grid.close()
        (self._folder / places.SOCKET).unlink(missing_ok=True)
        os.close(self._lock)

    # ---- Programs

    def _accept(self) -> None:
        was_short = False
        while not self._ends.is_set():
            try:
                connection, _ = self._listener.accept()
            except (OSError, MemoryError) as error:
                # Programs that connect meanwhile wait in the backlog.
                if not (was_short or self._ends.is_set()):
                    logger.warning("no connection can be accepted: %s; trying again", error)
                was_short = True
                self._ends.wait(SHORTAGE_PAUSE)
                continue
            was_short = False
            try:
                self._admit(connection)
            except Exception:  # of one program: the next one may have more luck
                logger.exception("a program cannot attach")
                connection.close()

    def _admit(self, connection: socket.socket) -> None:
        """Serve a connection in a thread of its own, or refuse it."""
        if user_of(connection) not in (os.geteuid(), 0):
            connection.close()
            return
        frames = Frames(connection)
        frames.limit(HANDSHAKE)
        descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = min(MOST_CONNECTIONS, max(descriptors // 4, 1))
        self._attached.add(frames)
        try:
            if len(self._attached) > most:
                raise RuntimeError(f"there are {most} connections already")
            Thread(target=self._attend, args=(frames,), daemon=True).start()
        except (RuntimeError, MemoryError) as error:
            self._attached.discard(frames)
            logger.warning("a program cannot attach: %s", error)
            with suppress(Gone):
                frames.send_versions(refused=f"takes no other program now: {error}. Try again")
            frames.close()

    def _attend(self, frames: Frames) -> None:
        try:
            theirs = frames.receive_versions()
            frames.send_versions(gridrpc=self._record.gridrpc, python=self._record.python)
            frames.limit(None)
            if (theirs.get("gridrpc"), theirs.get("python")) == (
                self._record.gridrpc,
                self._record.python,
            ):
                while True:
                    self._answer(frames, frames.receive())
        except Gone:
            pass
        except Exception:
            logger.exception("a program's connection")
        finally:
            self._attached.discard(frames)
            with suppress(OSError):
                frames.close()

    def _answer(self, frames: Frames, request: tuple[str, dict[str, Any]]) -> None:
        what, given = request
        answers: dict[str, Callable[..., Any]] = {
            "submit": lambda **given: self._submit(frames, **given),
            "results": self._results,
            "status": self._status,
            "hosts": self._grid.hosts,
            "forget": self._forget,
            "stop": lambda: self.end("it was stopped"),
        }
        try:
            answer = "answer", answers[what](**given)
        except Gone:
            raise
        except Exception as error:
            if not isinstance(error, (GridError, LookupError, ValueError)):
                logger.exception("%s", what)
            answer = "error", pickle.dumps(error, 5)
        frames.send(answer)

    def _submit(self, frames: Frames, key: str, plan: bytes, if_changed: Any) -> tuple[int, int]:
        """Take a map from a program. Returns how many results are there, and how many items.

        Several programs may send the same map at a time: none waits for another.
        """
        wanted: Plan = pickle.loads(plan)
        # What it sends has to be taken also if it is not wanted.
        items = _Sent(frames)
        try:
            kept = self._map_for(key, wanted, Journal("", if_changed).if_changed == "restart")
            kept.accept(wanted, if_changed)
            there, have = kept.status()["results"], kept.count
            frames.send(("have", have))
            items.begun = True
            count = kept.check(items.digests(), have)
            for batch in items.batches():
                kept.add(count, batch)
                count += len(batch)
            kept.complete()
            return there, count
        finally:
            items.finish()

    def _map_for(self, key: str, plan: Plan, restart: bool) -> KeptMap:
        if restart and places.checked(key, "map") in self._maps:
            with suppress(LookupError):  # another program removes it
                self._drop(key, keep_old=True)
        with self._changing:
            known = self._maps.get(places.checked(key, "map"))
            if known is not None:
                return known[0]
            if self._ends.is_set():
                raise SessionError(f"session `{self._record.name}` ends", self._record.name)
            if key in self._removing:
                raise SessionError(f"map `{key}` is being removed. Try again", self._record.name)
            kept = KeptMap(self._folder, key, plan)
            kept.save()
            return self._take(kept)

    def _drop(self, key: str, *, keep_old: bool) -> None:
        with self._changing:
            self._of(key)
            _, runner = self._maps.pop(key)
            self._removing.add(key)
        try:
            runner.close()
            KeptMap.remove(self._folder, key, keep_old=keep_old)
        finally:
            self._removing.discard(key)

    def _of(self, key: str) -> KeptMap:
        try:
            return self._maps[key][0]
        except KeyError:
            there = ", ".join(f"`{one}`" for one in self._maps) or "none"
            raise LookupError(
                f"session `{self._record.name}` has no map `{key}`; there are: {there}"
            ) from None

    def _results(self, key: str, cursor: int, upto: int | None, ordered: bool, wait: float) -> Any:
        kept = self._of(key)
        try:
            piece = kept.take(cursor, upto, ordered=ordered, wait=min(wait, MOST_WAIT))
        except (JournalError, ValueError):
            if kept.is_closing:  # with its files
                raise kept.removed() from None
            raise
        return (*piece, kept.count if kept.plan.complete else None)

    def _forget(self, key: str) -> None:
        self._drop(key, keep_old=False)

    def _status(self) -> dict[str, Any]:
        ready, _, _ = self._grid._native.counts()
        return {
            "workers": self._grid.workers,
            "ready": ready,
            "absent": self._grid._native.absent_hosts(),
            # Whoever asks is one of them.
            "attached": len(self._attached) - 1,
            "maps": {key: kept.status() for key, (kept, _) in sorted(self._maps.items())},
        }


class _Sent:
    """What a program sends behind a map: `digests` of the items that are there, `checked`, further
    `items`, and `end`."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self.begun = False
        self._last = ""

    def _receive(self) -> Any:
        self._last, contents = self._frames.receive()
        return contents

    def digests(self) -> Iterator[bytes]:
        while self._last != "checked":
            yield from self._receive()

    def batches(self) -> Iterator[list[tuple[bytes, bytes]]]:
        while self._last != "end":
            contents = self._receive()
            if self._last == "items":
                yield contents

    def finish(self) -> None:
        """Take the rest, of which nothing is needed."""
        while self.begun and self._last != "end":
            self._receive()


def _now() -> float:
    """Seconds on a clock that nobody sets, and that goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _bound(log: Path) -> None:
    """Put aside what is in a log that has become too long. Other processes write to the open file,
    which therefore stays and is emptied."""
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
    """Raise StartError if it turns out soon that there will be no workers at all, such as when a
    batch system refuses the jobs. What starts or waits in a queue by then may still come."""
    begun = time.monotonic()
    wait = FAILURE_WAIT
    while time.monotonic() < begun + wait:
        try:
            if grid._native.wait_until_ready(LOOK):
                return
        except StartError:
            if all(host.state == "lost" for host in grid.hosts()):
                raise
            time.sleep(LOOK)
        hosts = grid.hosts()
        states = {host.state for host in hosts}
        if hosts and "starting" not in states and states != {"lost"}:
            return
        have_failed = bool(hosts) and all(map(_has_failed, hosts))
        wait = LOSS_WAIT if have_failed else FAILURE_WAIT


def _has_failed(host: HostState) -> bool:
    """Whether its start has failed, though it may be tried again."""
    return host.state == "lost" or host.detail.startswith(f"host {host.host} ")


def _locked(folder: Path, name: str) -> int:
    """The lock that a session holds while it lives."""
    lock = os.open(folder / places.LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
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
    """What `gridrpc session start` starts: its first lines on standard input say what it is to be,
    and what it writes to the pipe says whether it is."""
    given = pickle.loads(sys.stdin.buffer.read())
    # Whatever it starts is not to hold it open.
    os.set_inheritable(given["pipe"], False)
    with os.fdopen(given["pipe"], "wb") as pipe:
        logging.basicConfig(
            level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
        )
        try:
            keeper = Keeper(given["name"], given["limit"], given["settings"])
        except Exception as error:
            if not isinstance(error, (GridError, OSError)):
                logger.exception("the session cannot begin")
            pipe.write(pickle.dumps(f"{error}"))
            return
        pipe.write(pickle.dumps(None))
    os.close(0)
    os.open(os.devnull, os.O_RDONLY)
    keeper.serve()

"""A program's connections to the process of a session, and what becomes of them."""

from __future__ import annotations

import errno
import pickle
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic, sleep
from typing import Any

from gridrpc._session import places
from gridrpc._session.frames import Frames, Gone, Silent, connect
from gridrpc._session.task import Raised
from gridrpc.errors import SessionEnded, SessionError, SessionRefused, SessionSilent

#: How long a process that has closed its connections is to be gone, s.
LAST = 2.0
#: How long the session may take for an answer that it has at once, s.
ANSWER = 20


class Connections:
    """Those to one session: there are several, as results may be taken of several maps by turns."""

    def __init__(self, name: str) -> None:
        """Raises NoSession, and ValueError for an invalid name."""
        self.name = name
        self.folder = places.folder_of(name)
        self.record = places.record_of(name)
        self.is_closed = False
        # Those that are free.
        self._spare: list[Frames] = []

    def open(self) -> None:
        """Have one. Raises SessionEnded and SessionRefused."""
        self._spare.append(self._connected())

    @contextmanager
    def one(self, limit: float | None = None) -> Iterator[Frames]:
        """A connection for one conversation; it is used again if that came to its end. `limit`: of
        each answer, s. Raises SessionEnded and SessionSilent."""
        if self.is_closed:
            raise SessionEnded(f"this program has left session `{self.name}`", self.name)
        frames = self._spare.pop() if self._spare else self._connected()
        try:
            frames.limit(limit)
            yield frames
        except Silent:
            frames.close()
            raise self._silent() from None
        except Gone:
            frames.close()
            raise self._gone() from None
        except _Told as told:
            self._spare.append(frames)
            raise told.error from None
        except BaseException:
            frames.close()
            raise
        self._spare.append(frames)

    def close(self) -> None:
        """End them, and make no others."""
        self.is_closed = True
        while self._spare:
            self._spare.pop().close()

    def _connected(self) -> Frames:
        self.record = places.running(self.name)
        try:
            frames = connect(self.folder, ANSWER)
        except BlockingIOError:
            raise self._silent() from None
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ECONNREFUSED):
                raise SessionEnded(
                    f"session `{self.name}` does not listen: {error.strerror}; "
                    f"see {self.folder / places.LOG}",
                    self.name,
                ) from None
            raise SessionError(
                f"this program cannot connect to session `{self.name}`: {error.strerror}", self.name
            ) from None
        import gridrpc

        ours = gridrpc.__version__, places.python_version()
        try:
            frames.limit(ANSWER)
            # A session that refuses this connection may have closed it already.
            with suppress(Gone):
                frames.send_versions(gridrpc=ours[0], python=ours[1])
            told = frames.receive_versions()
        except Silent:
            frames.close()
            raise self._silent() from None
        except Gone:
            frames.close()
            raise self._gone() from None
        if "refused" in told:
            frames.close()
            raise SessionRefused(f"session `{self.name}` {told['refused']}", self.name, "busy")
        theirs = told.get("gridrpc"), told.get("python")
        if theirs != ours:
            frames.close()
            raise SessionRefused(
                f"session `{self.name}` has gridrpc {theirs[0]} under Python {theirs[1]}, and "
                f"this program has gridrpc {ours[0]} under Python {ours[1]}: run it with those, "
                f"or start the session again with these (`gridrpc session stop {self.name}`, then "
                f"`start`): results are kept",
                self.name,
                "version",
            )
        return frames

    def _gone(self) -> SessionEnded:
        until = monotonic() + LAST
        while monotonic() < until:
            record = places.record_of(self.name)
            if record.state() != "running":
                return places.ended(record)
            # The kernel closes connections before the process is gone.
            sleep(0.01)
        return SessionEnded(
            f"session `{self.name}` has ended the connection; see {self.folder / places.LOG}",
            self.name,
        )

    def _silent(self) -> SessionSilent:
        return SessionSilent(
            f"session `{self.name}` does not answer: its process {self.record.pid} is stopped, or "
            f"its machine is overloaded; see {self.folder / places.LOG}. "
            f"`gridrpc session stop {self.name}` ends it; results are kept",
            self.name,
        )


def received(frames: Frames) -> Any:
    """What the session answers. It is called within `Connections.one`, which raises the error that
    the session tells instead."""
    kind, contents = frames.receive()
    if kind == "error":
        raise _Told(error_of(contents))
    return contents


def error_of(contents: bytes) -> BaseException:
    """An error, as the session tells it."""
    error: BaseException = pickle.loads(contents)
    return error.raised() if isinstance(error, Raised) else error


class _Told(Exception):
    """An error that the session has told; the conversation goes on."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

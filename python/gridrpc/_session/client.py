"""A program's requests to the daemon of a session."""

from __future__ import annotations

from time import monotonic, sleep
from typing import Any

from gridrpc._native import DaemonConnection
from gridrpc._session import registry
from gridrpc._session.protocol import Message, decode, encode
from gridrpc.errors import SessionEnded, SessionError, SessionRefused, SessionSilent

#: Time for a process that has closed its connections to end, s.
END_WAIT = 2.0
#: Time limit for connections, and for requests that do not wait, s.
ANSWER = 20.0
#: Extra time for the answers of requests that may wait, s.
GRACE = 5.0


def answer_limit(until: float | None) -> float | None:
    """The time limit of a request by a program that waits until then, s."""
    return None if until is None else max(0.0, until - monotonic()) + GRACE


class DaemonClient:
    """Connections of a program to the daemon of a session; each has one request at a time."""

    def __init__(self, name: str) -> None:
        """Raises NoSession, and ValueError for an invalid name."""
        self.name = name
        self.folder = registry.folder_of(name)
        self.record = registry.record_of(name)
        self.is_closed = False
        self._log = self.folder / registry.LOG
        self._idle: list[DaemonConnection] = []

    def request(
        self, name: str, /, *sections: bytes, timeout: float | None, **fields: Any
    ) -> Message:
        """Make a request, and return the answer.

        `timeout`: seconds; None: no limit. Raises SessionEnded, SessionRefused, SessionSilent, and
        any error that the daemon answers with.
        """
        if self.is_closed:
            raise SessionEnded(f"this program has left session `{self.name}`", self.name)
        while True:
            try:
                connection = self._idle.pop()
                break
            except IndexError:
                self.connect()
        return self._exchange(connection, name, (fields, sections), timeout)

    def _exchange(
        self, connection: DaemonConnection, name: str, message: Message, timeout: float | None
    ) -> Message:
        """Make a request on a connection, which is idle afterwards, or closed."""
        try:
            answer = connection.request(name, encode(message), timeout)
        except TimeoutError:
            connection.close()
            raise self._silent() from None
        except ConnectionError:
            connection.close()
            raise self._gone() from None
        except Exception:  # of the daemon
            self._idle.append(connection)
            raise
        except BaseException:  # such as Ctrl-C, before the answer
            connection.close()
            raise
        self._idle.append(connection)
        return decode(answer)

    def connect(self) -> None:
        """Open another connection. Raises SessionEnded, SessionRefused, SessionSilent."""
        import gridrpc

        self.record = registry.running(self.name)
        connection = self._opened()
        about, _ = self._exchange(connection, "about", ({}, []), ANSWER)
        theirs = about["gridrpc"], about["python"]
        ours = gridrpc.__version__, registry.python_version()
        if theirs != ours:
            self._idle.remove(connection)
            connection.close()
            raise SessionRefused(
                f"session `{self.name}` has gridrpc {theirs[0]} under Python {theirs[1]}, and "
                f"this program has gridrpc {ours[0]} under Python {ours[1]}: run it with those, "
                f"or start the session again with these (`gridrpc session stop {self.name}`, then "
                f"`start`): results are kept",
                self.name,
                "version",
            )

    def _opened(self) -> DaemonConnection:
        name = f"session `{self.name}`"
        try:
            return DaemonConnection(str(self.folder / registry.SOCKET), ANSWER)
        except TimeoutError:
            raise self._silent() from None
        except ConnectionAbortedError as error:
            raise SessionRefused(f"{name} {error}", self.name, "busy") from None
        except (FileNotFoundError, ConnectionRefusedError) as error:
            text = f"{name} does not listen: {error.strerror}; see {self._log}"
            raise SessionEnded(text, self.name) from None
        except ConnectionError:
            raise self._gone() from None
        except (OSError, RuntimeError) as error:  # RuntimeError: another protocol
            reason = getattr(error, "strerror", None) or error
            text = f"this program cannot connect to {name}: {reason}"
            raise SessionError(text, self.name) from None

    def close(self) -> None:
        """Close all connections, and make no others."""
        self.is_closed = True
        while self._idle:
            self._idle.pop().close()

    def _gone(self) -> SessionEnded:
        until = monotonic() + END_WAIT
        while monotonic() < until:
            record = registry.record_of(self.name)
            if record.state() != "running":
                return record.error()
            # The kernel closes connections before the process is gone.
            sleep(0.01)
        text = f"session `{self.name}` has ended the connection; see {self._log}"
        return SessionEnded(text, self.name)

    def _silent(self) -> SessionSilent:
        return SessionSilent(
            f"session `{self.name}` does not answer: its process {self.record.pid} is stopped, or "
            f"its machine is overloaded; see {self._log}. "
            f"`gridrpc session stop {self.name}` ends it; results are kept",
            self.name,
        )

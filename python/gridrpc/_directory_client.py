"""Requests to a directory."""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from gridrpc import _native
from gridrpc.errors import ConfigError, FunctionNotFound

if TYPE_CHECKING:
    from http.client import HTTPConnection

#: Seconds after which a directory that did not answer is asked again.
PAUSE = 10.0
#: Seconds that a directory may take to answer.
TIMEOUT = 5.0
#: Bytes of an answer.
LARGEST = 64 << 20
#: An address, and nothing that a URL would read as an option of the connection.
ADDRESS = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}")


class Offer(NamedTuple):
    """What a directory says of a server that offers a function."""

    address: str
    name: str
    signature: str | None
    cores: int
    load: float
    speed: float
    is_full: bool
    is_silent: bool
    age: float


class DirectoryClient:
    """A directory, by its URL."""

    def __init__(self, url: str) -> None:
        from urllib.parse import parse_qs, urlsplit

        parts = urlsplit(url)
        options = parse_qs(parts.query, keep_blank_values=True)
        if (
            parts.scheme not in ("http", "https")
            or not parts.hostname
            or set(options) - {"credentials", "trusted"}
            or not {*options.get("trusted", ())} <= {"true", "false"}
        ):
            raise ConfigError(
                f"`directory` is {url!r}: give a URL such as https://directory.example.org:7713, "
                "with ?credentials=DIR for a certificate in another folder, and ?trusted=true for "
                "servers whose results may be pickles"
            )
        self.url = f"{parts.scheme}://{parts.netloc}"
        self.credentials = options.get("credentials", [""])[0]
        self.is_trusted = options.get("trusted") == ["true"]
        self._is_encrypted = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port
        self._pause_until = 0.0
        #: Connections that wait for the next question.
        self._idle: list[HTTPConnection] = []

    def lookup(self, name: str) -> list[Offer]:
        """Its offers for a function. Raises FunctionNotFound, and OSError if it does not answer."""
        from urllib.parse import quote

        return self._offers(f"/lookup?function={quote(name, safe='')}&interface=no", "offers")

    def servers(self) -> list[Offer]:
        """All servers. Raises OSError if it does not answer."""
        return self._offers("/status", "servers")

    def _offers(self, path: str, key: str) -> list[Offer]:
        if time.monotonic() < self._pause_until:
            raise ConnectionError("it did not answer a moment ago")
        try:
            status, body = self._get(path)
            answer = json.loads(body)
            if status == 404:
                raise FunctionNotFound(str(answer["error"]))
            if status != 200:
                raise ConnectionError(f"it answers {status}: {answer['error']}")
            return [offer for offer in map(_offer, answer[key]) if offer is not None]
        except (ValueError, KeyError, TypeError) as error:
            self._pause_until = time.monotonic() + PAUSE
            raise ConnectionError(f"its answer makes no sense: {error!r}") from None
        except OSError:
            self._pause_until = time.monotonic() + PAUSE
            raise

    def close(self) -> None:
        """Close idle connections."""
        while self._idle:
            self._idle.pop().close()

    def _get(self, path: str) -> tuple[int, bytes]:
        """Ask on a connection that an earlier question has left, or on a new one."""
        from http.client import HTTPException

        while True:
            with contextlib.suppress(IndexError):
                # The directory may have closed it since.
                with contextlib.suppress(HTTPException, OSError):
                    return self._ask(self._idle.pop(), path)
                continue
            try:
                return self._ask(self._connect(), path)
            except HTTPException as error:
                raise ConnectionError(f"it speaks no HTTP: {error!r}") from None

    def _connect(self) -> HTTPConnection:
        from http.client import HTTPConnection, HTTPSConnection

        if not self._is_encrypted:
            return HTTPConnection(self._host, self._port, timeout=TIMEOUT)
        context = _context(self.credentials)
        return HTTPSConnection(self._host, self._port, timeout=TIMEOUT, context=context)

    def _ask(self, connection: HTTPConnection, path: str) -> tuple[int, bytes]:
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read(LARGEST)
            if answer.isclosed() and connection.sock is not None:
                self._idle.append(connection)
                return answer.status, body
        except BaseException:
            connection.close()
            raise
        connection.close()
        return answer.status, body


def _context(credentials: str) -> Any:
    import ssl

    folder = credentials or _native.credentials_folder() or "."
    context = ssl.create_default_context(cafile=os.path.join(folder, "authority.pem"))
    context.load_cert_chain(
        os.path.join(folder, "certificate.pem"), os.path.join(folder, "key.pem")
    )
    return context


def _offer(reported: dict[str, Any]) -> Offer | None:
    """An offer of a directory; None: its address is none that a client may connect to."""
    address = str(reported["address"])
    if not ADDRESS.fullmatch(address):
        return None
    signature = reported.get("signature")
    return Offer(
        address,
        str(reported["name"]),
        None if signature is None else str(signature),
        int(reported["cores"]),
        float(reported["load"]),
        float(reported["speed"]),
        bool(reported["is_full"]),
        bool(reported["is_silent"]),
        float(reported["age"]),
    )

"""A server of big-endian memory, as far as a client can see: a relay that turns what a server of
this machine sends. It takes messages apart and puts them together as
docs/developers/wire-format.md says."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from processes import LONG
from servers import FAILURE, FUNCTION, HOST_CALL, JOIN, PONG, REPLY, WORKERS

DATA, CALLBACK, PACKED = 5, 15, 84
#: Numbers of an answer in front of its leases.
ANSWER = "6Q3I"
INLINE, STREAM = 0, 1
#: Width of the words in which elements are swapped, by the code of their type.
WORDS = dict(enumerate((1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 4, 8, 1), start=1))
CHUNK = 0xFFFF
MAX_BODY = 1 << 20


class Reader:
    """Takes a little-endian body apart, and writes the same in big-endian order."""

    def __init__(self, body: bytes) -> None:
        self.body, self.at, self.written = body, 0, bytearray()

    def numbers(self, form: str) -> tuple[int, ...]:
        values = struct.unpack_from("<" + form, self.body, self.at)
        self.at += struct.calcsize("<" + form)
        self.written += struct.pack(">" + form, *values)
        return values

    def number(self, form: str) -> int:
        return self.numbers(form)[0]

    def bytes(self, count: int) -> bytes:
        taken = self.body[self.at : self.at + count]
        self.at += count
        self.written += taken
        return taken

    def text(self) -> None:
        self.bytes(self.number("I"))

    def whole(self) -> bytes:
        assert self.at == len(self.body)
        return bytes(self.written)


def turned_list(section: bytes) -> bytes:
    """A list of strings."""
    reader = Reader(section)
    while reader.at < len(section):
        reader.bytes(max(reader.number("q"), 0))
    return reader.whole()


def turned_array(section: bytes, word: int) -> bytes:
    return np.frombuffer(section, f"u{word}").byteswap().tobytes()


def turned_values(section: bytes) -> tuple[bytes, dict[int, int]]:
    """Values, and what their sections hold: words of this width, or 0 for a list of strings."""
    reader, holds = Reader(section), {}
    count = reader.number("H")
    if count == CHUNK:
        reader.numbers("IQ")
        count = reader.number("H")
    for _ in range(count):
        match reader.number("B"):
            case 1 | 2:
                reader.number("Q")
            case 3:
                reader.text()
            case 4:
                holds[reader.number("H")] = 0
            case 5:
                code, _, at, dimensions = reader.numbers("BBHH")
                reader.numbers(f"{dimensions}Q")
                holds[at] = WORDS[code]
    return reader.whole(), holds


def turned_section(section: bytes, word: int) -> bytes:
    return turned_array(section, word) if word else turned_list(section)


def turned_sections(reader: Reader) -> list[tuple[int, int]]:
    """Lengths and words of the sections that come in a stream."""
    count = reader.number("H")
    places = [reader.numbers("BQ") for _ in range(count)]
    assert {place for place, _ in places} <= {INLINE, STREAM}, "a section in shared memory"
    holds: dict[int, int] = {}
    for index, (_, length) in enumerate(places):
        if places[index][0] == INLINE:
            section = reader.body[reader.at : reader.at + length]
            reader.at += length
            if index == 0:
                section, holds = turned_values(section)
            else:
                section = turned_section(section, holds[index])
            reader.written += section
    return [
        (length, holds[index]) for index, (place, length) in enumerate(places) if place == STREAM
    ]


def turned(kind: int, body: bytes) -> tuple[bytes, list[tuple[int, int]]]:
    """A message, and the sections that come in a stream."""
    reader, streams = Reader(body), []
    match kind:
        case 6 | 7:
            reader.numbers(ANSWER)
            leases = reader.number("H")
            reader.numbers("IQ" * leases)
            if kind == FAILURE:
                for _ in range(3):
                    reader.text()
            streams = turned_sections(reader)
        case 15:
            reader.numbers("QH")
            streams = turned_sections(reader)
        case 48:
            reader.numbers("BBIIQQ")
            reader.text()
            length = reader.number("I")
            # Another machine's: it has no memory in common with the client.
            reader.written += b"0" * length
            reader.at += length
            reader.text()
            reader.number("H")
            for _ in range(reader.number("H")):
                reader.text()
        case 50:
            reader.numbers("II")
        case 57:
            reader.numbers("QQ")
    return reader.whole(), streams


TURNED = {REPLY, FAILURE, CALLBACK, JOIN, WORKERS, PONG}


def big_frame(kind: int, body: bytes, stream: int = 0) -> bytes:
    return b"GR" + struct.pack(">BcBBHII", 3, b"B", kind, 0, 0, len(body), stream) + body


class Relay:
    """One connection. Counts the answers and callbacks that it has turned."""

    def __init__(self, client: socket.socket, server: Path) -> None:
        self.client = client
        self.server = socket.socket(socket.AF_UNIX)
        self.server.connect(str(server))
        self.counts = dict.fromkeys(TURNED, 0)
        self.streams: dict[int, tuple[list[tuple[int, int]], bytearray]] = {}
        self.number = 0
        self.names: dict[int, str] = {}
        self.calls: dict[int, int] = {}
        for run in (self.to_server, self.to_client):
            threading.Thread(target=run, daemon=True).start()

    def to_server(self) -> None:
        stream = self.client.makefile("rb")
        with suppress(OSError):
            while len(header := stream.read(16)) == 16:
                # Those of calls have the order of their arrays.
                order = "<" if header[3:4] == b"l" else ">"
                body = stream.read(*struct.unpack_from(order + "I", header, 8))
                if header[4] == FUNCTION:
                    number, _, length = struct.unpack_from(order + "IBI", body)
                    self.names[number] = body[9 : 9 + length].decode()
                elif header[4] == HOST_CALL:
                    call, function = struct.unpack_from(order + "QI", body)
                    self.calls[call] = function
                self.server.sendall(header + body)
        self.close()

    def is_of_numbers(self, kind: int, body: bytes) -> bool:
        """Whether it is no answer to a request, which has texts: all but a result."""
        if kind not in {REPLY, FAILURE}:
            return True
        (call,) = struct.unpack_from("<Q", body)
        name = self.names[self.calls[call]]
        return "/" in name or (name == "result" and kind == REPLY)

    def to_client(self) -> None:
        stream = self.server.makefile("rb")
        with suppress(OSError):
            while len(header := stream.read(16)) == 16:
                kind, (length, of) = header[4], struct.unpack_from("<II", header, 8)
                assert kind != PACKED
                body = stream.read(length)
                if kind == DATA:
                    self.data(of, body)
                elif kind in TURNED and self.is_of_numbers(kind, body):
                    body, streams = turned(kind, body)
                    self.counts[kind] += 1
                    self.client.sendall(big_frame(kind, body))
                    if streams:
                        self.number += 1
                        self.streams[self.number] = (streams, bytearray())
                        self.data(self.number, b"")
                else:
                    self.client.sendall(header + body)
        self.close()

    def data(self, number: int, body: bytes) -> None:
        """More bytes of a stream, which continues when it is whole."""
        parts, received = self.streams[number]
        received += body
        if len(received) < sum(length for length, _ in parts):
            return
        at = 0
        for length, word in parts:
            section = turned_section(bytes(received[at : at + length]), word)
            at += length
            for start in range(0, length, MAX_BODY):
                piece = section[start : start + MAX_BODY]
                self.client.sendall(big_frame(DATA, piece, number))
        del self.streams[number]

    def close(self) -> None:
        for end in (self.client, self.server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@contextmanager
def relayed(server: Path, folder: Path) -> Iterator[tuple[str, list[Relay]]]:
    """The URL of a big-endian server in front of this one, and its connections."""
    place, relays = folder / "big", []
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place))
    listener.listen()

    def accept() -> None:
        with suppress(OSError):
            while True:
                relays.append(Relay(listener.accept()[0], server))

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"gridrpc+unix://{place}", relays
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(LONG)
        for relay in relays:
            relay.close()
            relay.client.close()
            relay.server.close()

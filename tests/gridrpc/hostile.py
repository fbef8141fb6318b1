"""An agent that lies: `python hostile.py LIE FOLDER ...`, in place of `gridrpc agent`.

It answers each call with the lie, and writes down in FOLDER what it was sent. Run by the launcher
"local", with `prefix` and without encryption.
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import socket
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CALLBACK, JOIN, WORKERS, PING, PONG = 15, 48, 50, 56, 57
REPLY, FAILURE, SERVE, HOST_CALL, GOODBYE = 6, 7, 49, 51, 12
CALLBACK_REPLY, CALLBACK_FAILURE, KEPT_RESULT = 16, 17, 69
#: Times and leases of an answer.
STAMPS = bytes(5 * 8 + 3 * 4 + 2)
#: More calls than a function may have under way.
MANY = 1200


class Touch:
    """Makes a file where it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.file),)


def text(value: str) -> bytes:
    return struct.pack("<I", len(value.encode())) + value.encode()


def sections(*parts: bytes) -> bytes:
    heads = b"".join(struct.pack("<BQ", 0, len(part)) for part in parts)
    return struct.pack("<H", len(parts)) + heads + b"".join(parts)


def texts(*values: str) -> bytes:
    """A request of a running function."""
    return struct.pack("<I", len(values)) + b"".join(map(text, values))


class Agent:
    def __init__(self, lie: str, folder: Path) -> None:
        self.lie, self.folder = lie, folder
        ticket = sys.stdin.readline().strip().removeprefix("gridrpc1.")
        reported = json.loads(base64.urlsafe_b64decode(ticket + "=" * (-len(ticket) % 4)))
        host, port = reported["addresses"][0].rsplit(":", 1)
        self.socket = socket.create_connection((host.strip("[]"), int(port)))
        self.socket.sendall(bytes(reported["secret"]))
        self.answers = {CALLBACK_REPLY: 0, CALLBACK_FAILURE: 0}
        self.call = b""
        self.taken = 0

    def send(self, kind: int, body: bytes) -> None:
        header = b"GR" + struct.pack("<BcBBHII", 3, b"l", kind, 0, 0, len(body), 0)
        self.socket.sendall(header + body)

    def frames(self) -> Iterator[tuple[int, bytes]]:
        stream = self.socket.makefile("rb")
        while header := stream.read(16):
            (length,) = struct.unpack_from("<I", header, 8)
            yield header[4], stream.read(length)

    def serve(self) -> None:
        clock = time.monotonic_ns()
        numbers = struct.pack("<BBIIQQ", 3, 3, os.getpid(), 1, clock, 0)
        self.send(JOIN, numbers + text("liar") + text("") + text("0") + bytes(4))
        with (self.folder / "sent").open("ab", buffering=0) as sent:
            for kind, body in self.frames():
                sent.write(body)
                if kind == SERVE:
                    self.send(WORKERS, struct.pack("<II", 1, 1))
                elif kind == PING:
                    self.send(PONG, body + struct.pack("<Q", time.monotonic_ns()))
                elif kind == HOST_CALL:
                    self.called(body[:8])
                elif kind in self.answers:
                    self.answered(kind, body)
                elif kind == GOODBYE:
                    return

    def called(self, call: bytes) -> None:
        if self.call and self.lie == "many":
            # One of those that it has asked for.
            self.fail(call, "")
            return
        self.call = call
        self.tell()

    def outcome(self) -> bytes:
        return self.call + STAMPS

    def fail(self, call: bytes, why: str) -> None:
        self.send(FAILURE, call + STAMPS + text("Lie") + text(why) + text("") + sections())

    def tell(self) -> None:
        evil = pickle.dumps(Touch(self.folder / "unpickled"))
        if self.lie == "error":
            error = text("Lie") + text("a lie") + text("")
            self.send(FAILURE, self.outcome() + error + sections(evil))
        elif self.lie == "result":
            self.send(REPLY, self.outcome() + sections(evil))
        elif self.lie == "kept":
            self.send(KEPT_RESULT, self.call + sections(evil))
        elif self.lie == "other call":
            self.submit(struct.pack("<Q", struct.unpack("<Q", self.call)[0] + 1), evil)
        else:
            for _ in range(MANY if self.lie == "many" else 1):
                self.submit(self.call, evil)

    def submit(self, call: bytes, function: bytes) -> None:
        """Asks for a call as a running function does."""
        requested = texts("pickled", "evil", "", "0", "0", "")
        arguments = pickle.dumps(((), {}))
        request = struct.pack("<H", 0xFFFF) + sections(requested, function, arguments)
        self.send(CALLBACK, call + request)

    def answered(self, kind: int, body: bytes) -> None:
        # An empty list of texts says that there is no room.
        if kind == CALLBACK_REPLY and body[-4:] != bytes(4):
            self.taken += 1
        self.answers[kind] += 1
        if sum(self.answers.values()) == (MANY if self.lie == "many" else 1):
            why = body[12:].decode(errors="replace") if kind == CALLBACK_FAILURE else ""
            self.fail(self.call, f"{self.taken} taken; {why}")


if __name__ == "__main__":
    Agent(sys.argv[1], Path(sys.argv[2])).serve()

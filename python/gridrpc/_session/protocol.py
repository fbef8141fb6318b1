"""Contents of the requests to a session's daemon, and of the answers.

Both are `Message`s: the first section is JSON with plain values. Functions, items, results and
errors are pickles that the daemon does not read. A list of pickles is two sections: lengths and
contents.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Literal, TypeAlias

from gridrpc._fingerprint import DIGEST, Fingerprint
from gridrpc._native import CallOptions
from gridrpc._options import DEFAULT
from gridrpc._retries import NO_RETRIES, Retries
from gridrpc._session.registry import python_version
from gridrpc._session.task import Passing, Source, Task
from gridrpc.errors import RanksLost

#: Fields, and further sections.
Message: TypeAlias = tuple[dict[str, Any], Sequence[bytes]]


def encode(message: Message) -> list[bytes]:
    """The sections of a message."""
    fields, sections = message
    return [json.dumps(fields).encode(), *sections]


def decode(sections: list[bytes]) -> Message:
    """The message in these sections."""
    return json.loads(sections[0]), sections[1:]


def pack(pickles: list[bytes]) -> list[bytes]:
    """A list of pickles as two sections."""
    return [array("Q", map(len, pickles)).tobytes(), b"".join(pickles)]


def unpack(lengths: bytes, contents: bytes) -> list[bytes]:
    """The list of pickles in two sections."""
    ends = accumulate(array("Q", lengths), initial=0)
    return [contents[start:end] for start, end in pairwise(ends)]


def split(digests: bytes) -> list[bytes]:
    """The digests in a section."""
    return [digests[at : at + DIGEST] for at in range(0, len(digests), DIGEST)]


@dataclass
class MapPlan:
    """The function of a map, and the options of its calls."""

    task: Task
    fingerprint: Fingerprint
    chunk: int | Literal["auto"]
    options: CallOptions = DEFAULT
    ranks: int = 0
    retries: Retries = NO_RETRIES
    #: Names of the errors after which a call runs again.
    retry_on: tuple[str, ...] = ()
    #: Whether a program has sent all items.
    complete: bool = False

    @property
    def settings(self) -> tuple[object, ...]:
        """All but the function."""
        return (self.chunk, self.options, self.ranks, self.retries, self.retry_on)

    def fields(self) -> dict[str, Any]:
        """All but the pickle of the function, as plain values."""
        retries, sources = self.retries, self.task.sources.items()
        return {
            "name": self.fingerprint.name,
            "digest": self.fingerprint.digest,
            "places": self.task.places,
            "sources": {name: [source.root, source.digest.hex()] for name, source in sources},
            "chunk": self.chunk,
            "options": self.options.__getnewargs_ex__()[1],
            "ranks": self.ranks,
            "retries": [retries.times, retries.backoff, retries.on == (Passing, RanksLost)],
            "retry_on": self.retry_on,
        }

    @staticmethod
    def from_fields(fields: dict[str, Any], function: bytes) -> MapPlan:
        """The plan of a program; `function`: the pickle of the function."""
        name, options = fields["name"], fields["options"]
        options["resources"] = list(map(tuple, options["resources"]))
        sources = {
            module: Source(root, bytes.fromhex(digest))
            for module, (root, digest) in fields["sources"].items()
        }
        return MapPlan(
            Task(name, function, fields["places"], sources),
            Fingerprint(name, fields["digest"], python_version()),
            fields["chunk"],
            CallOptions(**options),
            fields["ranks"],
            retries_of(*fields["retries"]),
            tuple(fields["retry_on"]),
        )


def retries_of(times: int, backoff: float, ranks_lost: bool) -> Retries:
    """Retries in a session, which does not have the classes of the program's errors.

    The task raises Passing for these. `ranks_lost`: whether RanksLost is one of them.
    """
    if not times:
        return NO_RETRIES
    return Retries(times, (Passing, RanksLost) if ranks_lost else (Passing,), backoff)

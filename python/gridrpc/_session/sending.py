"""What a program sends of a map: how it is to run, and its items."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from time import monotonic
from typing import Any, Literal

from gridrpc._fingerprint import digest_of, of_function
from gridrpc._grain import checked_chunk
from gridrpc._native import CallOptions
from gridrpc._options import checked_ranks
from gridrpc._retries import NO_RETRIES, Retries
from gridrpc._session.frames import Frames
from gridrpc._session.kept import Plan
from gridrpc._session.task import Passing, Tried, of_program, sealed
from gridrpc.errors import RanksLost

#: Items go to the session in pieces of so many bytes, or so many items, or after that time, s.
PIECE, MOST_ITEMS, LONGEST = 4 << 20, 10_000, 0.2
#: Digests that go in one message.
DIGESTS = 100_000


def planned(
    fn: str | Callable[..., Any],
    *,
    chunk: int | Literal["auto"],
    options: CallOptions,
    ranks: int,
    retries: Retries,
) -> Plan:
    """A map of this program. Raises TypeError and ValueError for options that are invalid."""
    checked_chunk(chunk, asks=checked_ranks(ranks) > 0 or options.asks)
    kinds = retries.kinds()
    tried = fn
    again, names = NO_RETRIES, tuple[str, ...]()
    if retries.times:
        # The session does not have the program's classes: the worker sees what an error is.
        tried = Tried(fn, kinds)
        lost = (RanksLost,) if issubclass(RanksLost, kinds) else ()
        again = Retries(retries.times, (Passing, *lost), retries.backoff)
        names = tuple(f"{kind.__module__}.{kind.__qualname__}" for kind in kinds)
    return Plan(
        of_program(tried),
        of_function(fn),
        chunk,
        options,
        ranks,
        again,
        names,
    )


def send_items(frames: Frames, items: Iterator[Any], have: int) -> Iterator[None]:
    """Send digests of the first items, which the session has, and then all others, in pieces."""
    known = islice(items, have)
    while digests := [digest_of(list(item)) for item in islice(known, DIGESTS)]:
        frames.send(("digests", digests))
        yield
    frames.send(("checked", []))
    batch: list[tuple[bytes, bytes]] = []
    size, since = 0, monotonic()
    for item in items:
        contents = sealed(item)
        batch.append((digest_of(list(item)), contents))
        size += len(contents)
        if size > PIECE or len(batch) == MOST_ITEMS or monotonic() - since > LONGEST:
            frames.send(("items", batch))
            batch, size, since = [], 0, monotonic()
            yield
    if batch:
        frames.send(("items", batch))

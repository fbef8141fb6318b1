"""Upload of a map to a session: its plan, and its items in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from time import monotonic
from typing import Any, Literal

from gridrpc._fingerprint import digest_of, of_function
from gridrpc._grain import checked_chunk
from gridrpc._journal import IfChanged
from gridrpc._native import CallOptions
from gridrpc._options import checked_ranks
from gridrpc._retries import Retries
from gridrpc._session.client import DaemonClient, answer_limit
from gridrpc._session.item_store import RESTART, digest_of_batch, other_item
from gridrpc._session.protocol import MapPlan, Message, pack, retries_of, split
from gridrpc._session.task import Tried, of_program, sealed
from gridrpc.errors import JournalError, RanksLost

#: Limits of a batch: bytes, items, and the time to collect it, s.
MOST_BYTES, MOST_ITEMS, LONGEST = 4 << 20, 10_000, 0.2


def plan_map(
    fn: str | Callable[..., Any],
    chunk: int | Literal["auto"],
    options: CallOptions,
    ranks: int,
    retries: Retries,
) -> MapPlan:
    """The plan of a map of this program. Raises TypeError and ValueError for invalid options."""
    kinds = retries.kinds()
    checked_chunk(chunk, asks=checked_ranks(ranks) > 0 or options.asks)
    times = retries.times
    return MapPlan(
        # The worker compares errors: the session does not have their classes.
        of_program(Tried(fn, kinds) if times else fn),
        of_function(fn),
        chunk,
        options,
        ranks,
        retries_of(times, float(retries.backoff), issubclass(RanksLost, kinds)),
        tuple(f"{kind.__module__}.{kind.__qualname__}" for kind in kinds) if times else (),
    )


def send_map(
    client: DaemonClient,
    key: str | None,
    plan: MapPlan,
    items: Iterator[Any],
    *,
    until: float | None = None,
    if_changed: IfChanged,
) -> tuple[str, int, int]:
    """Send a map. Returns its key, the number of items, and how many had results before.

    `key`: None has the session choose one. Items that the session has are compared by their
    digests. Raises JournalError, TimeoutError, and errors of `items` and of pickling.
    """

    def request(name: str, /, *sections: bytes, **fields: Any) -> Message:
        return client.request(name, *sections, timeout=answer_limit(until), **fields)

    begun, (digests,) = request(
        "map/begin", plan.task.function, key=key, if_changed=if_changed, **plan.fields()
    )
    which = {"key": begun["key"], "identity": begun["identity"]}
    count = 0
    for size, digest in zip(begun["sizes"], split(digests), strict=True):
        own = [digest_of(list(item)) for item in islice(items, size)]
        if len(own) < size or digest_of_batch(own) != digest:
            _, (stored,) = request("map/digests", first=count, **which)
            # The program may have fewer.
            for number, (ours, theirs) in enumerate(zip(own, split(stored), strict=False), count):
                if ours != theirs:
                    raise other_item(begun["key"], number, client.folder)
            raise JournalError(
                f"map `{begun['key']}` of the session has {sum(begun['sizes'])} items, but this "
                f"program gives {count + len(own)}. {RESTART}",
                str(client.folder),
            )
        count += size
        _check_time(key, until)
    for at, batch in enumerate(_batches(items)):
        if at:
            _check_time(key, until)
        digests = b"".join(digest for digest, _ in batch)
        request("map/add", digests, *pack([item for _, item in batch]), first=count, **which)
        count += len(batch)
    request("map/complete", **which)
    return begun["key"], count, begun["results"]


def _check_time(key: str | None, until: float | None) -> None:
    if until is not None and monotonic() > until:
        raise TimeoutError(f"map `{key}`: the items have not been sent in time")


def _batches(items: Iterator[Any]) -> Iterator[list[tuple[bytes, bytes]]]:
    """Digests and pickles of items, in batches."""
    batch: list[tuple[bytes, bytes]] = []
    size, since = 0, monotonic()
    for item in items:
        contents = sealed(item)
        batch.append((digest_of(list(item)), contents))
        size += len(contents)
        if size > MOST_BYTES or len(batch) == MOST_ITEMS or monotonic() - since > LONGEST:
            yield batch
            batch, size, since = [], 0, monotonic()
    if batch:
        yield batch

"""Requests that programs make of the maps of a session.

Each request is complete in itself: a program may be killed between any two.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from gridrpc._journal import IfChanged
from gridrpc._session.map_pool import MapPool
from gridrpc._session.protocol import MapPlan, Message, split, unpack
from gridrpc._session.stored_map import removed
from gridrpc.errors import JournalError

#: Maximum wait for results in one request, since the program may be killed meanwhile, s.
MOST_WAIT = 5.0


class MapRequests:
    """The requests by their names; arguments are the sections behind the first one, and its
    fields."""

    def __init__(self, pool: MapPool) -> None:
        self._pool = pool
        self.by_name: dict[str, Callable[..., Message]] = {
            "map/begin": self._begin,
            "map/digests": self._digests,
            "map/add": self._add,
            "map/complete": self._complete,
            "map/take": self._take,
            "map/cancel": self._cancel,
            "map/forget": self._forget,
        }

    def _begin(
        self, function: bytes, *, key: str | None, if_changed: IfChanged, **plan: Any
    ) -> Message:
        """Create a map, or resume it. Answers with the batches of items that the session has.

        Several programs may send the same map at a time: none waits for another.
        """
        wanted = MapPlan.from_fields(plan, function)
        if if_changed == "restart" and key is not None and key in self._pool:
            with suppress(LookupError):  # another program removes it
                self._pool.remove(key, keep_old=True)
        with self._pool.use(self._pool.create(key, wanted)) as stored:
            stored.accept(wanted, if_changed)
            batches = [*stored.items.batches]
            return {
                "key": stored.key,
                "identity": stored.identity,
                "results": stored.status()["results"],
                "sizes": [batch.size for batch in batches],
            }, [b"".join(batch.digest for batch in batches)]

    def _digests(self, *, key: str, identity: str, first: int) -> Message:
        """The digests of the items of a batch."""
        with self._pool.use(key, identity) as stored:
            return {}, [b"".join(stored.items.digests(stored.items.batch_of(first)))]

    def _add(
        self,
        digests: bytes,
        lengths: bytes,
        contents: bytes,
        *,
        key: str,
        identity: str,
        first: int,
    ) -> Message:
        """Add items."""
        items = zip(split(digests), unpack(lengths, contents), strict=True)
        with self._pool.use(key, identity) as stored:
            stored.add(first, [*items])
        return {}, []

    def _complete(self, *, key: str, identity: str) -> Message:
        """Record that a program has sent all items."""
        with self._pool.use(key, identity) as stored:
            stored.complete()
        return {}, []

    def _take(self, *, key: str, identity: str | None, wait: float, **which: Any) -> Message:
        """Results and errors from a cursor on."""
        with self._pool.use(key, identity) as stored:
            try:
                fields, sections = stored.take(wait=min(wait, MOST_WAIT), **which)
            except (JournalError, ValueError):
                if stored.is_closing:  # with its files
                    raise removed(key) from None
                raise
            total = stored.items.count if stored.plan.complete else None
            return fields | {"identity": stored.identity, "total": total}, sections

    def _cancel(self, *, key: str) -> Message:
        """Cancel what has no result yet."""
        with self._pool.use(key) as stored:
            return {"cancelled": stored.cancel()}, []

    def _forget(self, *, key: str) -> Message:
        """Remove a map and its files."""
        self._pool.remove(key)
        return {}, []

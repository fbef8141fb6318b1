"""The maps of a session, and the requests that programs make of them.

Each request is complete in itself: a program may be killed between any two.
"""

from __future__ import annotations

import pickle
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from gridrpc._grid import Grid
from gridrpc._journal import IfChanged
from gridrpc._log import logger
from gridrpc._map import Map
from gridrpc._senders import MapOptions
from gridrpc._session import registry
from gridrpc._session.protocol import MapPlan, Message, split, unpack
from gridrpc._session.stored_map import Failure, StoredMap, removed
from gridrpc.errors import JournalError, SessionError

#: Maximum wait for results in one request, since the program may be killed meanwhile, s.
MOST_WAIT = 5.0
#: How often a runner checks for more items, s.
POLL = 0.1


class MapRunner:
    """Thread that runs a map on the grid of the session."""

    def __init__(self, grid: Grid, stored: StoredMap) -> None:
        self._grid = grid
        self.stored = stored
        self._thread = Thread(target=self._run, name=f"map {stored.key}", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            stored.close()
            raise SessionError(f"map `{stored.key}` cannot run now: {error}. Try again") from None

    def stop(self) -> None:
        """Have the thread cancel the calls under way. It may first wait for room in the queue."""
        with self.stored.changed:
            self.stored.is_closing = True
            self.stored.changed.notify_all()

    def close(self) -> None:
        """Cancel the calls under way, and close the map."""
        self.stop()
        self._thread.join()
        self.stored.close()

    def _run(self) -> None:
        stored = self.stored
        while stored.wait_for_work():
            plan = stored.plan
            run = None
            try:
                run = self._grid._plan(
                    plan.task,
                    stored,
                    MapOptions(True, plan.options, Failure, plan.ranks),
                    total=None,
                    chunk=plan.chunk,
                    ordered=False,
                    timeout=None,
                    retries=plan.retries,
                    record=stored,
                    few_ahead=not plan.options.idempotent,
                )
                self._follow(run)
            except Exception as error:  # such as a full disk
                logger.exception("map %s", stored.key)
                stored.halt(error)
            finally:
                if run is not None:
                    run.cancel()
                    stored.lost()

    def _follow(self, run: Map) -> None:
        stored = self.stored
        while not stored.is_closing:
            if not (stored.is_halted or stored.must_restart):
                run.feed()
                if run.failure is not None:
                    stored.halt(run.failure)
            if not run.is_busy:
                stored.sync()
                return
            is_idle = True
            for first, values in run.ended(POLL):
                is_idle = False
                stored.add_errors(first, values)
            if is_idle:
                stored.sync()


class SessionMaps:
    """The maps of a session by their keys."""

    def __init__(self, grid: Grid, folder: Path) -> None:
        self._grid = grid
        self._folder = folder
        self._session = folder.name
        self._runners: dict[str, MapRunner] = {}
        #: Held to add and remove maps.
        self._changing = Lock()
        self._is_closing = False
        #: Keys of maps that are being removed, which may take as long as a call.
        self._removing: set[str] = set()
        #: By name; the arguments are the sections behind the first one, and its fields.
        self.requests: dict[str, Callable[..., Message]] = {
            "map/begin": self._begin,
            "map/digests": self._digests,
            "map/add": self._add,
            "map/complete": self._complete,
            "map/take": self._take,
            "map/forget": self._forget,
        }
        for key in registry.keys_in(folder):
            try:
                self._run(StoredMap.loaded(folder, key))
            except Exception as error:  # whatever is in the file
                raise SessionError(
                    f"map `{key}` in {folder} cannot be continued: {error}. Move its files "
                    "elsewhere, and start the session again",
                    self._session,
                ) from error

    def _run(self, stored: StoredMap) -> StoredMap:
        self._runners[stored.key] = MapRunner(self._grid, stored)
        return stored

    def stop(self) -> None:
        """Have all maps cancel their calls."""
        with self._changing:
            self._is_closing = True
            for runner in self._runners.values():
                runner.stop()

    def close(self) -> None:
        """Close all maps."""
        with self._changing:
            runners = [*self._runners.values()]
            self._runners.clear()
        for runner in runners:
            try:
                runner.close()
            except Exception:  # such as a full disk: the others are closed nevertheless
                logger.exception("a map cannot be closed")

    def status(self) -> tuple[dict[str, Any], list[bytes]]:
        """The status of each map by its key, and the pickled errors of those that have stopped."""
        known = {key: runner.stored.status() for key, runner in sorted(self._runners.items())}
        errors: list[bytes] = [one["halted"] for one in known.values() if one["halted"]]
        for one in known.values():
            if one["halted"] is not None:
                one["halted"] = str(pickle.loads(one["halted"]))
        return known, errors

    def _of(self, key: str, identity: str | None) -> StoredMap:
        """The map of that key. Raises LookupError; and SessionError if it is another one by now."""
        runner = self._runners.get(key)
        if runner is None or (identity is not None and runner.stored.identity != identity):
            if identity is not None:
                raise removed(key)
            keys = ", ".join(f"`{one}`" for one in self._runners) or "none"
            raise LookupError(f"session `{self._session}` has no map `{key}`; there are: {keys}")
        return runner.stored

    # ---- Requests

    def _begin(
        self, function: bytes, *, key: str | None, if_changed: IfChanged, **plan: Any
    ) -> Message:
        """Create a map, or resume it. Answers with the batches of items that the session has.

        Several programs may send the same map at a time: none waits for another.
        """
        wanted = MapPlan.from_fields(plan, function)
        if if_changed == "restart" and key in self._runners:
            with suppress(LookupError):  # another program removes it
                self._remove(key, keep_old=True)
        stored = self._found_or_made(key, wanted)
        stored.accept(wanted, if_changed)
        batches = [*stored.items.batches]
        return {
            "key": stored.key,
            "identity": stored.identity,
            "results": stored.status()["results"],
            "sizes": [batch.size for batch in batches],
        }, [b"".join(batch.digest for batch in batches)]

    def _found_or_made(self, key: str | None, plan: MapPlan) -> StoredMap:
        with self._changing:
            while key is None:
                new = f"call-{secrets.token_hex(4)}"
                if not any(self._folder.glob(f"{new}.*")):
                    key = new
            runner = self._runners.get(registry.checked(key, "map"))
            if runner is not None:
                return runner.stored
            if self._is_closing:
                raise SessionError(f"session `{self._session}` ends", self._session)
            if key in self._removing:
                raise SessionError(f"map `{key}` is being removed. Try again", self._session)
            stored = StoredMap(self._folder, key, plan)
            try:
                stored.save()
                return self._run(stored)
            except Exception:
                StoredMap.remove(self._folder, key)
                raise

    def _digests(self, *, key: str, identity: str, first: int) -> Message:
        """The digests of the items of a batch."""
        items = self._of(key, identity).items
        return {}, [b"".join(items.digests(items.batch_of(first)))]

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
        self._of(key, identity).add(first, [*items])
        return {}, []

    def _complete(self, *, key: str, identity: str) -> Message:
        """Record that a program has sent all items."""
        self._of(key, identity).complete()
        return {}, []

    def _take(self, *, key: str, identity: str | None, wait: float, **which: Any) -> Message:
        """Results and errors from a cursor on."""
        stored = self._of(key, identity)
        try:
            fields, sections = stored.take(wait=min(wait, MOST_WAIT), **which)
        except (JournalError, ValueError):
            if stored.is_closing:  # with its files
                raise removed(key) from None
            raise
        total = stored.items.count if stored.plan.complete else None
        return fields | {"identity": stored.identity, "total": total}, sections

    def _forget(self, *, key: str) -> Message:
        """Remove a map and its files."""
        self._remove(key, keep_old=False)
        return {}, []

    def _remove(self, key: str, *, keep_old: bool) -> None:
        with self._changing:
            self._of(key, None)
            runner = self._runners.pop(key)
            self._removing.add(key)
        try:
            runner.close()
            StoredMap.remove(self._folder, key, keep_old=keep_old)
        finally:
            self._removing.discard(key)

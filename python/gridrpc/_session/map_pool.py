"""Pool of a session's maps: runs them in threads, and opens parked ones on demand."""

from __future__ import annotations

import pickle
import resource
import secrets
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Condition, Lock, Thread
from time import monotonic
from typing import Any

from gridrpc._grid import Grid
from gridrpc._log import logger
from gridrpc._map import Map
from gridrpc._mapping import planned
from gridrpc._senders import MapOptions
from gridrpc._session import registry
from gridrpc._session.protocol import MapPlan
from gridrpc._session.stored_map import Failure, StoredMap, removed
from gridrpc.errors import SessionError

#: Maximum number of open maps that nobody uses.
MOST_IDLE = 32
#: Maximum number of maps that run at a time, unless the grid has more workers for them.
MOST_RUNNING = 64
#: How long a map runs while others wait for a thread, s.
TURN = 2.0
#: How often a thread checks its map for more items, s.
POLL = 0.1


class PooledMap:
    """A map of the pool. It is open while it is used and for some time after, else parked."""

    def __init__(self, key: str) -> None:
        self.key = key
        #: Differs from that of an earlier or later map with the same key.
        self.identity = secrets.token_hex(8)
        self.stored: StoredMap | None = None
        #: Held to open and to close it. Taken before the lock of the pool, never after it.
        self.opening = Lock()
        #: The status when it was parked.
        self.status: dict[str, Any] | None = None
        #: Number of requests that use it, and the thread that runs it.
        self.users = 0
        #: Whether it waits for a thread, or has one.
        self.is_scheduled = False
        self.is_running = False
        self.is_removed = False
        #: Whether the log has the reason why it could not be run.
        self.is_logged = False


class MapPool:
    """Maps by their keys. A map that is not used and has no errors is parked: only its status is
    in memory. Threads exist only while they run maps."""

    def __init__(self, grid: Grid, folder: Path) -> None:
        self._grid = grid
        self._folder = folder
        # A map takes two descriptors.
        descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._room = max(1, descriptors // 16)
        self._maps: dict[str, PooledMap] = {}
        #: Keys of maps that are being removed, which may take as long as a call.
        self._removing: set[str] = set()
        #: Held to change what is above and below. Notified when a thread is done with a map.
        self._changed = Condition()
        self._is_closing = False
        #: Open maps that can be parked, in the order of their last use.
        self._idle: dict[PooledMap, None] = {}
        self._waiting: deque[PooledMap] = deque()
        self._threads = 0
        for key in registry.keys_in(folder):
            self._maps[key] = PooledMap(key)
            try:
                with self.use(key):
                    pass
            except Exception as error:  # whatever is in the file
                raise SessionError(
                    f"map `{key}` in {folder} cannot be continued: {error}. Move its files "
                    "elsewhere, and start the session again",
                    folder.name,
                ) from error

    def __contains__(self, key: str) -> bool:
        return key in self._maps

    def stop(self) -> None:
        """Have all maps cancel their calls."""
        with self._changed:
            self._is_closing = True
            for pooled in self._maps.values():
                if pooled.stored is not None:
                    pooled.stored.stop()

    def close(self) -> None:
        """Close all maps."""
        self.stop()
        with self._changed:
            self._changed.wait_for(lambda: not self._threads)
            everything = [*self._maps.values()]
        for pooled in everything:
            self._close(pooled)

    def _close(self, pooled: PooledMap) -> None:
        with pooled.opening:
            try:
                if pooled.stored is not None:
                    pooled.stored.close()
            except Exception:  # such as a full disk
                logger.exception("map %s cannot be closed", pooled.key)

    def status(self) -> tuple[dict[str, Any], list[bytes]]:
        """The status of each map by its key, and the pickled errors of those that have stopped."""
        with self._changed:
            everything = sorted(self._maps.items())
        known: dict[str, Any] = {}
        errors: list[bytes] = []
        for key, pooled in everything:
            stored = pooled.stored
            status = pooled.status if stored is None else stored.status()
            if status is None:  # it is being created
                continue
            halted = status["halted"]
            if halted is not None:
                errors.append(halted)
                halted = str(pickle.loads(halted))
            known[key] = status | {"halted": halted}
        return known, errors

    # ---- Use of maps

    @contextmanager
    def use(self, key: str, identity: str | None = None) -> Iterator[StoredMap]:
        """A map that stays open in the context, and runs afterwards if it has items to run.

        Raises LookupError; and SessionError if it is another map by now, or cannot run.
        """
        with self._changed:
            pooled = self._find(key, identity)
            self._acquire(pooled)
        try:
            stored = self._open(pooled)
            yield stored
            self._schedule(pooled, stored)
        finally:
            self._release(pooled)

    def create(self, key: str | None, plan: MapPlan) -> str:
        """Create a map unless it exists, and return its key. None: a new key."""
        while key is None:
            new = f"call-{secrets.token_hex(4)}"
            if new not in self and not (self._folder / f"{new}.journal").exists():
                key = new
        pooled = PooledMap(registry.checked(key, "map"))
        # Programs that find it wait until it is there.
        with pooled.opening:
            with self._changed:
                if key in self._maps:
                    return key
                if self._is_closing:
                    raise SessionError(f"session `{self._folder.name}` ends", self._folder.name)
                if key in self._removing:
                    raise SessionError(f"map `{key}` is being removed. Try again")
                self._maps[key] = pooled
            stored = None
            try:
                stored = StoredMap(self._folder, key, plan, pooled.identity)
                stored.save()
                pooled.stored = stored
            except BaseException:
                with self._changed:
                    del self._maps[key]
                    pooled.is_removed = True
                if stored is not None:
                    stored.close()
                StoredMap.remove(self._folder, key)
                raise
        return key

    def remove(self, key: str, *, keep_old: bool = False) -> None:
        """End a map and remove its files, or rename them. Raises LookupError."""
        with self._changed:
            pooled = self._find(key)
            del self._maps[key]
            self._removing.add(key)
            pooled.is_removed = True
            self._idle.pop(pooled, None)
            if pooled in self._waiting:
                self._waiting.remove(pooled)
            if pooled.stored is not None:
                pooled.stored.stop()
            self._changed.wait_for(lambda: not pooled.is_running)
        try:
            self._close(pooled)
            StoredMap.remove(self._folder, key, keep_old=keep_old)
        finally:
            self._removing.discard(key)

    def _find(self, key: str, identity: str | None = None) -> PooledMap:
        pooled = self._maps.get(key)
        if pooled is not None and identity in (None, pooled.identity):
            return pooled
        if identity is not None:
            raise removed(key)
        raise LookupError(
            f"session `{self._folder.name}` has no map `{key}`; "
            f"there are: {registry.listed(self._maps)}"
        )

    def _acquire(self, pooled: PooledMap) -> None:
        pooled.users += 1
        self._idle.pop(pooled, None)

    def _open(self, pooled: PooledMap) -> StoredMap:
        with pooled.opening:
            if pooled.stored is None and not pooled.is_removed:
                pooled.stored = StoredMap.loaded(self._folder, pooled.key, pooled.identity)
            # `remove` and `stop` set these before they look for open maps.
            if pooled.stored is None or pooled.is_removed:
                raise removed(pooled.key)
            if self._is_closing:
                pooled.stored.stop()
            return pooled.stored

    def _release(self, pooled: PooledMap) -> None:
        """End one use of a map. Parks the maps that were used longest ago."""
        parked = []
        with self._changed:
            pooled.users -= 1
            stored = pooled.stored
            if pooled.users or pooled.is_removed or stored is None or not stored.can_park():
                return
            self._idle[pooled] = None
            while len(self._idle) > min(MOST_IDLE, self._room):
                parked.append(next(iter(self._idle)))
                del self._idle[parked[-1]]
        for one in parked:
            self._park(one)

    def _park(self, pooled: PooledMap) -> None:
        with pooled.opening:
            with self._changed:
                stored = pooled.stored
                if pooled.users or stored is None:
                    return
                pooled.status, pooled.stored = stored.status(), None
            try:
                stored.close()
            except Exception:  # such as a full disk
                logger.exception("map %s", pooled.key)

    # ---- Threads

    def _schedule(self, pooled: PooledMap, stored: StoredMap) -> None:
        """Have a thread run a map if it has items to run. Raises SessionError; then it waits."""
        with self._changed:
            if pooled.is_scheduled or pooled.is_removed or not stored.has_work():
                return
            pooled.is_scheduled = True
            self._waiting.append(pooled)
        error = self.start_threads()
        if error is not None:
            raise SessionError(f"map `{pooled.key}` cannot run now: {error}. Try again")

    def start_threads(self) -> RuntimeError | None:
        """Start threads for maps that wait. Returns the error if one cannot be started."""
        with self._changed:
            most = min(max(MOST_RUNNING, 2 * self._grid.workers), self._room)
            while self._waiting and self._threads < most and not self._is_closing:
                pooled = self._waiting[0]
                try:
                    Thread(target=self._work, args=(pooled,), name="map", daemon=True).start()
                except RuntimeError as error:
                    return error
                self._threads += 1
                self._take_waiting()
        return None

    def _take_waiting(self) -> PooledMap:
        pooled = self._waiting.popleft()
        pooled.is_running = True
        self._acquire(pooled)
        return pooled

    def _work(self, first: PooledMap) -> None:
        """Run a map, and then those that wait."""
        pooled: PooledMap | None = first
        while pooled is not None:
            stored = None
            try:
                stored = self._open(pooled)
                self._run(stored)
            except Exception:  # such as a shortage of descriptors: a later thread tries again
                if not (pooled.is_logged or pooled.is_removed):
                    logger.exception("map %s cannot run now", pooled.key)
                    pooled.is_logged = True
            following = None
            with self._changed:
                has_work = not pooled.is_removed if stored is None else stored.has_work()
                pooled.is_running, pooled.is_scheduled = False, has_work
                if has_work:
                    self._waiting.append(pooled)
                if stored is not None and self._waiting and not self._is_closing:
                    following = self._take_waiting()
                else:
                    self._threads -= 1
                self._changed.notify_all()
            self._release(pooled)
            pooled = following

    def _run(self, stored: StoredMap) -> None:
        """Run a map until it has no more items to run, or other maps wait."""
        plan = stored.begin_run()
        run = None
        try:
            run = planned(
                self._grid,
                plan.task,
                stored,
                MapOptions(True, plan.options, Failure, plan.ranks),
                total=None,
                chunk=plan.chunk,
                ordered=False,
                retries=plan.retries,
                record=stored,
                few_ahead=not plan.options.idempotent,
            )
            self._follow(run, stored)
        except Exception as error:  # such as a full disk
            logger.exception("map %s", stored.key)
            stored.halt(error)
        finally:
            if run is not None:
                run.cancel()
            stored.end_run()

    def _follow(self, run: Map, stored: StoredMap) -> None:
        until = monotonic() + TURN
        while not (stored.is_closing or stored.is_cancelled):
            stored.is_paused = bool(self._waiting) and monotonic() > until
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

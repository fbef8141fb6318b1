"""A program's side of a session: it attaches by name, and its maps stay when it is gone."""

from __future__ import annotations

import atexit
import pickle
import sys
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from time import monotonic
from types import TracebackType
from typing import Any, Literal, TypeVar

from gridrpc._hosts import HostState
from gridrpc._journal import IfChanged, Journal
from gridrpc._map import shown
from gridrpc._options import call_options
from gridrpc._retries import Errors, Retries
from gridrpc._session import places
from gridrpc._session.connections import ANSWER, Connections, error_of, received
from gridrpc._session.frames import Frames
from gridrpc._session.kept import KeptMap, Plan
from gridrpc._session.sending import planned, send_items
from gridrpc.errors import SessionEnded

T = TypeVar("T")

_open: weakref.WeakSet[AttachedGrid] = weakref.WeakSet()

#: How long the session is asked to wait for results, s.
WAIT = 2.0
#: How much later than that it may answer before it counts as silent, s.
GRACE = 5.0


def attach(name: str, *, ended: bool = False) -> AttachedGrid:
    """The grid of the session `name`, which `gridrpc session start NAME` has started.

    `ended`: also accept a session that has ended; then no call runs, and `results` gives the kept
    results. Raises NoSession, SessionEnded, SessionRefused, and ValueError for an invalid name.
    """
    return AttachedGrid(name, ended=ended)


class AttachedGrid:
    """A grid that a session keeps, with the maps that programs have sent to it.

    Use it as a context manager, or call `close`, which ends only the connection.
    """

    def __init__(self, name: str, *, ended: bool = False) -> None:
        self.name = name
        self._connections = Connections(name)
        self._has_ended = ended and self._connections.record.state() in ("ended", "stale")
        if not self._has_ended:
            self._connections.open()
            _open.add(self)

    def map(
        self,
        key: str,
        fn: str | Callable[..., T],
        /,
        *iterables: Iterable[Any],
        chunk: int | Literal["auto"] = "auto",
        ordered: bool = True,
        deadline: float | None = None,
        idempotent: bool = False,
        cores: int = 1,
        memory: int | str | None = None,
        resources: Mapping[str, int] | None = None,
        expected: float | None = None,
        ranks: int = 0,
        retries: int = 0,
        retry_on: Errors = Exception,
        backoff: float = 0.0,
        timeout: float | None = None,
        return_exceptions: bool = False,
        progress: bool | str = False,
        if_changed: IfChanged = "stop",
    ) -> Iterator[T]:
        """Have the session run `fn` for the items of `iterables`, and give the results.

        This is `submit` and `results` in one: items whose results the session has under this key do
        not run again. The options are those of `Grid.map`; `if_changed` is that of `Journal`. The
        TimeoutError of `timeout` names the hosts without a worker that has answered, and why.
        `timeout` counts from the call of `map`, and also bounds sending the items.
        """
        until = None if timeout is None else monotonic() + timeout
        options = call_options(deadline, idempotent, 0, None, cores, memory, resources, expected)
        again = Retries(retries, retry_on, backoff)
        plan = planned(fn, chunk=chunk, options=options, ranks=ranks, retries=again)
        count = self._send(key, plan, iterables, until, if_changed)
        return self._results(
            key, count, ordered=ordered, until=until, keep=return_exceptions, progress=progress
        )

    def submit(
        self,
        key: str,
        fn: str | Callable[..., Any],
        /,
        *iterables: Iterable[Any],
        chunk: int | Literal["auto"] = "auto",
        deadline: float | None = None,
        idempotent: bool = False,
        cores: int = 1,
        memory: int | str | None = None,
        resources: Mapping[str, int] | None = None,
        expected: float | None = None,
        ranks: int = 0,
        retries: int = 0,
        retry_on: Errors = Exception,
        backoff: float = 0.0,
        if_changed: IfChanged = "stop",
    ) -> int:
        """Send a map to the session, and return the number of items when it has all of them.

        The session runs the map even if this program ends. If it has a map under this key already,
        function and items are compared: JournalError says what has changed. Items that raised an
        error run again if a program has received that error. The options are those of `map`; other
        ones than before hold for the items that have no result yet. Raises SessionEnded, TypeError
        and ValueError for invalid options, and any error of pickling.
        """
        options = call_options(deadline, idempotent, 0, None, cores, memory, resources, expected)
        again = Retries(retries, retry_on, backoff)
        plan = planned(fn, chunk=chunk, options=options, ranks=ranks, retries=again)
        return self._send(key, plan, iterables, None, if_changed)

    def _send(
        self,
        key: str,
        plan: Plan,
        iterables: tuple[Iterable[Any], ...],
        until: float | None,
        if_changed: IfChanged,
    ) -> int:
        if not iterables:
            raise TypeError("map() needs at least one iterable")
        places.checked(key, "map")
        Journal("", if_changed)  # refuses what is no such word
        self._refuse_ended("takes no maps")
        items = zip(*iterables, strict=False)
        with self._detaching(), self._connections.one(_limit(until)) as frames:
            what = {"key": key, "plan": pickle.dumps(plan, 5), "if_changed": if_changed}
            frames.send(("submit", what))
            have = received(frames)
            for _ in send_items(frames, items, have):
                if until is not None and monotonic() > until:
                    raise TimeoutError(f"map `{key}`: the items have not been sent in time")
                frames.limit(_limit(until))
            # Without this, as when an item raises an error, the session waits for more.
            frames.send(("end", None))
            there, count = received(frames)
        if there:
            print(
                f"gridrpc: session {self.name}: {key}: {there:,} items have their results",
                file=sys.stderr,
            )
        return int(count)

    def results(
        self,
        key: str,
        *,
        ordered: bool = True,
        timeout: float | None = None,
        return_exceptions: bool = False,
        progress: bool | str = False,
    ) -> Iterator[Any]:
        """The results of a map that a program has sent, as `map` gives them.

        Waits for missing results; for a session that has ended, gives the results up to the first
        missing one. Raises LookupError if there is no such map.
        """
        if self._has_ended:
            return self._left(places.checked(key, "map"), ordered)
        until = None if timeout is None else monotonic() + timeout
        return self._results(
            key, None, ordered=ordered, until=until, keep=return_exceptions, progress=progress
        )

    def _results(
        self,
        key: str,
        count: int | None,
        *,
        ordered: bool,
        until: float | None,
        keep: bool,
        progress: bool | str,
    ) -> Iterator[Any]:
        groups = self._groups(key, count, ordered, until, keep)
        flat = shown(groups, count, progress)
        return (value for group in flat for value in group)

    def _groups(
        self, key: str, count: int | None, ordered: bool, until: float | None, keep: bool
    ) -> Generator[list[Any], None, None]:
        cursor = given = 0
        failed: set[int] = set()
        with self._detaching(), self._connections.one() as frames:
            while count is None or given < count:
                left = WAIT if until is None else min(WAIT, until - monotonic())
                frames.limit(_limit(until))
                asked = {"key": key, "cursor": cursor, "upto": count, "ordered": ordered}
                frames.send(("results", {**asked, "wait": max(0.0, left)}))
                results, errors, cursor, halted, total = received(frames)
                if count is None:
                    count = total
                if halted is not None:
                    raise error_of(halted)
                if not results and not errors and left <= 0:
                    raise self._late(frames, key)
                for number, contents in _in_turn(results, errors):
                    if isinstance(contents, list):
                        # Those that failed may have run again for another program.
                        new = [one for at, one in enumerate(contents, number) if at not in failed]
                        given += len(new)
                        yield [pickle.loads(one) for one in new]
                        continue
                    if number in failed or (count is not None and number >= count):
                        continue
                    error = error_of(contents)
                    with suppress(Exception):  # it may refuse to be changed
                        error.add_note(f"gridrpc: map `{key}`, item {number} (the first one is 0)")
                    if not keep:
                        raise error
                    failed.add(number)
                    given += 1
                    yield [error]

    def _late(self, frames: Frames, key: str) -> TimeoutError:
        """That a result has not come in time, with the hosts that are absent, and why."""
        frames.limit(ANSWER)
        frames.send(("status", {}))
        told = received(frames)
        text = (
            f"map `{key}`: the next result is not there in time; "
            f"{told['ready']} of {told['workers']} workers have answered"
        )
        return TimeoutError("\n  ".join([text, *told["absent"]]))

    def _left(self, key: str, ordered: bool) -> Iterator[Any]:
        """What a session that has ended has left of a map."""
        folder = self._connections.folder
        if key not in places.keys_in(folder):
            there = ", ".join(f"`{one}`" for one in places.keys_in(folder)) or "none"
            raise LookupError(f"session `{self.name}` has no map `{key}`; there are: {there}")
        kept = KeptMap.loaded(folder, key)
        try:
            cursor = 0
            while True:
                piece = kept.take(cursor, None, ordered=ordered, wait=0.0)
                if not (piece.results or piece.errors):
                    return
                cursor = piece.cursor
                stop = min((number for number, _ in piece.errors), default=None)
                for number, contents in piece.results:
                    if not ordered or stop is None or number < stop:
                        yield from map(pickle.loads, contents)
                if ordered and stop is not None:
                    return
        finally:
            kept.close()

    @property
    def maps(self) -> Mapping[str, Mapping[str, Any]]:
        """The maps of the session by their keys: `items`, `complete` (whether a program has sent
        all of them), `results`, `failed`, `under_way`, the name of the `function`, and `stopped`,
        the error that has ended the map, or None.
        """
        told: dict[str, dict[str, Any]] = self._asked("status")["maps"]
        for one in told.values():
            halted = one.pop("halted")
            one["stopped"] = None if halted is None else error_of(halted)
        return told

    @property
    def workers(self) -> int:
        """Number of workers, as `Grid.workers`."""
        return int(self._asked("status")["workers"])

    def hosts(self) -> list[HostState]:
        """The states of the hosts of all servers, as `Grid.hosts`. Raises SessionEnded."""
        told: list[HostState] = self._asked("hosts")
        return told

    def forget(self, key: str) -> None:
        """End a map, and remove its items and results. Raises LookupError if it does not exist."""
        self._asked("forget", key=key)

    def close(self) -> None:
        """End the connection. The session goes on."""
        self._connections.close()

    def __enter__(self) -> AttachedGrid:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self._say_detached()
        self.close()

    def __repr__(self) -> str:
        return f"<gridrpc.AttachedGrid: session {self.name}, {self._connections.record.state()}>"

    def _asked(self, what: str, **given: Any) -> Any:
        self._refuse_ended("cannot be asked")
        with self._connections.one(ANSWER) as frames:
            frames.send((what, given))
            return received(frames)

    def _refuse_ended(self, what: str) -> None:
        if self._has_ended:
            error = places.ended(self._connections.record)
            raise SessionEnded(f"{error}. It {what}", self.name)

    @contextmanager
    def _detaching(self) -> Iterator[None]:
        try:
            yield
        except KeyboardInterrupt:
            self._say_detached()
            raise

    def _say_detached(self) -> None:
        """Say on Ctrl-C what becomes of the work."""
        if self._connections.is_closed or self._has_ended:
            return
        self.close()
        print(
            f"gridrpc: detached from session {self.name}, whose work goes on: run the program "
            f"again to come back, or end it by `gridrpc session stop {self.name}`",
            file=sys.stderr,
        )


def _limit(until: float | None) -> float | None:
    """How long the session may take for an answer, if results are waited for until then."""
    return None if until is None else max(0.0, until - monotonic()) + GRACE


@atexit.register
def _say_all_detached() -> None:
    """Ctrl-C has ended the program somewhere else than in a map."""
    if getattr(sys, "last_type", None) is KeyboardInterrupt:
        for grid in list(_open):
            grid._say_detached()


def _in_turn(
    results: list[tuple[int, list[bytes]]], errors: list[tuple[int, bytes]]
) -> list[tuple[int, list[bytes] | bytes]]:
    """Results and errors by the numbers of their items."""
    return sorted([*results, *errors], key=lambda one: one[0])

"""Access of programs to a session: they attach by its name, and its work continues without them."""

from __future__ import annotations

import atexit
import os
import pickle
import sys
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from gridrpc._detached import attach_call, is_id
from gridrpc._hosts import HostState
from gridrpc._journal import IfChanged, Journal
from gridrpc._options import call_options
from gridrpc._results import shown
from gridrpc._retries import Errors, Retries
from gridrpc._session import registry
from gridrpc._session.client import ANSWER, DaemonClient, answer_limit
from gridrpc._session.protocol import MapPlan, Message, unpack
from gridrpc._session.stored_map import StoredMap
from gridrpc._session.task import Raised
from gridrpc._session.upload import plan_map, send_map
from gridrpc.errors import SessionEnded

if TYPE_CHECKING:
    from gridrpc._grid import Grid
    from gridrpc._native import Call

T = TypeVar("T")

_open: weakref.WeakSet[AttachedGrid] = weakref.WeakSet()

#: Maximum wait for results in one request, s.
WAIT = 2.0


@overload
def attach(name: str, *, ended: bool = False) -> AttachedGrid: ...


@overload
def attach(name: str, *, credentials: str | os.PathLike[str] | None) -> Call[Any]: ...


def attach(
    name: str, *, ended: bool = False, credentials: str | os.PathLike[str] | None = None
) -> AttachedGrid | Call[Any]:
    """The grid of the session `name`, or the detached call with this id.

    A session is started by `gridrpc session start NAME`. `ended`: also accept a session that has
    ended; then no call runs, and `results` gives the kept results. Raises NoSession, SessionEnded,
    SessionRefused, SessionSilent, and ValueError for an invalid name.

    The id of a call is that of `Grid.detach`, such as "gridrpc://host:7711/d/...". `credentials`:
    the folder with your certificate, if it is not the usual one. Raises what `Grid.attach` raises.
    """
    if is_id(name):
        return attach_call(name, credentials)
    return AttachedGrid(name, ended=ended)


class AttachedGrid:
    """A grid that a session keeps, with the maps and calls that programs have sent to it.

    Use it as a context manager, or call `close`, which ends only the connection.
    """

    def __init__(self, name: str, *, ended: bool = False) -> None:
        self.name = name
        self._client = DaemonClient(name)
        self._has_ended = ended and self._client.record.state() in ("ended", "stale")
        self._grid: Grid | None = None
        if not self._has_ended:
            self._client.connect()
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
        not run again. The options are those of `Grid.map`; `if_changed` is that of `Journal`.
        `timeout`: seconds from the call of `map` for each result, also for sending the items; its
        TimeoutError names the hosts without a worker that has answered, and why.
        """
        until = None if timeout is None else monotonic() + timeout
        options = call_options(deadline, idempotent, 0, None, cores, memory, resources, expected)
        plan = plan_map(fn, chunk, options, ranks, Retries(retries, retry_on, backoff))
        _, count = self._send(key, plan, _zipped(iterables), if_changed, until)
        groups = self._groups(key, count, ordered=ordered, until=until, keep=return_exceptions)
        return _flat(groups, count, progress)

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
        error run again if a program has received that error. The options are those of `map`; new
        values apply to the items that have no result yet. Raises SessionEnded, TypeError and
        ValueError for invalid options, and any error of pickling.
        """
        options = call_options(deadline, idempotent, 0, None, cores, memory, resources, expected)
        plan = plan_map(fn, chunk, options, ranks, Retries(retries, retry_on, backoff))
        return self._send(key, plan, _zipped(iterables), if_changed)[1]

    def detach(
        self,
        fn: str | Callable[..., Any],
        /,
        *args: Any,
        key: str | None = None,
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
    ) -> str:
        """Have the session run `fn(*args)`, and return the key for `fetch`.

        The session runs the call even if this program ends. The call is a map of one item, and the
        options are those of `submit`. `key`: the name of the call; None has the session choose a
        new one, such as "call-3f9a1c2e". With the key of an earlier call, function and arguments
        are compared, and the call does not run again if it has a result. Raises JournalError if
        they differ, SessionEnded, TypeError and ValueError for an invalid key or options, and any
        error of pickling.
        """
        options = call_options(deadline, idempotent, 0, None, cores, memory, resources, expected)
        plan = plan_map(fn, 1, options, ranks, Retries(retries, retry_on, backoff))
        return self._send(key, plan, iter([args]), if_changed, quiet=True)[0]

    def fetch(self, key: str, timeout: float | None = None) -> Any:
        """Wait for the result of a call that a program has started by `detach`.

        Any program may fetch it, any number of times, also after the session was restarted.
        `timeout`: seconds; None: no limit. Raises the error of the function, TimeoutError,
        LookupError if there is no such call, ValueError for a map of several items, OutcomeUnknown
        if the call may have run when the session ended, and SessionEnded.
        """
        until = None if timeout is None else monotonic() + timeout
        if not self._has_ended:
            return next(self._groups(key, 1, until=until, is_call=True))[0]
        for result in self._kept_results(key, ordered=True):
            return result
        raise self._ended(f"It has no result of `{key}`")

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
        missing one. `timeout`: seconds from now for each result. Raises LookupError if there is no
        such map, TimeoutError and SessionEnded.
        """
        if self._has_ended:
            return self._kept_results(key, ordered)
        until = None if timeout is None else monotonic() + timeout
        groups = self._groups(key, None, ordered=ordered, until=until, keep=return_exceptions)
        return _flat(groups, None, progress)

    def _send(
        self,
        key: str | None,
        plan: MapPlan,
        items: Iterator[Any],
        if_changed: IfChanged,
        until: float | None = None,
        *,
        quiet: bool = False,
    ) -> tuple[str, int]:
        """Send a map. Returns its key, and the number of items."""
        if key is not None:
            registry.checked(key, "map")
        Journal("", if_changed)  # checks the value
        if self._has_ended:
            raise self._ended("It takes no maps")
        with self._detaching():
            key, count, known = send_map(
                self._client, key, plan, items, until=until, if_changed=if_changed
            )
        if known and not quiet:
            print(
                f"gridrpc: session {self.name}: {key}: {known:,} items have their results",
                file=sys.stderr,
            )
        return key, count

    def _groups(
        self,
        key: str,
        count: int | None,
        *,
        ordered: bool = True,
        until: float | None,
        keep: bool = False,
        is_call: bool = False,
    ) -> Generator[list[Any], None, None]:
        """Results of a map, each in a list. `keep`: an error takes the place of its result."""
        cursor = given = 0
        identity = None
        failed: set[int] = set()
        while count is None or given < count:
            left = WAIT if until is None else min(WAIT, until - monotonic())
            with self._detaching():
                answer, pickles = self._client.request(
                    "map/take", timeout=answer_limit(until), key=key, identity=identity,
                    cursor=cursor, upto=count, ordered=ordered, wait=max(0.0, left),
                )  # fmt: skip
            contents = unpack(*pickles)
            cursor, identity, total = answer["cursor"], answer["identity"], answer["total"]
            if is_call and total not in (None, 1):
                raise ValueError(f"`{key}` is a map of {total} items: use `results`")
            if count is None:
                count = total
            if answer["halted"]:
                raise _error(contents[0])
            if not contents and left <= 0:
                raise self._late(key)
            errors = set(answer["errors"])
            for at, number in enumerate(answer["numbers"]):
                if number in failed:  # it has run again for another program
                    continue
                given += 1
                if at not in errors:
                    yield [pickle.loads(contents[at])]
                    continue
                error = _error(contents[at])
                with suppress(Exception):  # it may refuse to be changed
                    error.add_note(f"gridrpc: map `{key}`, item {number} (the first one is 0)")
                if not keep:
                    raise error
                failed.add(number)
                yield [error]

    def _late(self, key: str) -> TimeoutError:
        """The error for a missing result, with the hosts that are absent, and why."""
        status, _ = self._request("status")
        text = (
            f"map `{key}`: the next result is not there in time; "
            f"{status['ready']} of {status['workers']} workers have answered"
        )
        return TimeoutError("\n  ".join([text, *status["absent"]]))

    def _kept_results(self, key: str, ordered: bool) -> Iterator[Any]:
        """Results of a map of a session that has ended."""
        folder = self._client.folder
        keys = registry.keys_in(folder)
        if registry.checked(key, "map") not in keys:
            known = registry.listed(keys)
            raise LookupError(f"session `{self.name}` has no map `{key}`; there are: {known}")
        stored = StoredMap.loaded(folder, key)
        try:
            cursor = 0
            while True:
                answer, pickles = stored.take(cursor, None, ordered=ordered, wait=0.0)
                if not answer["numbers"]:
                    return
                cursor = answer["cursor"]
                for at, contents in enumerate(unpack(*pickles)):
                    if at not in answer["errors"]:
                        yield pickle.loads(contents)
                    elif ordered:
                        return
        finally:
            stored.close()

    @property
    def maps(self) -> Mapping[str, Mapping[str, Any]]:
        """The maps of the session by their keys: `items`, `complete` (whether a program has sent
        all of them), `results`, `failed`, `under_way`, the name of the `function`, and `stopped`,
        the error that has ended the map, or None. Calls are maps of one item.
        """
        status, errors = self._request("status")
        stopped = iter(unpack(*errors))
        for one in status["maps"].values():
            one["stopped"] = None if one.pop("halted") is None else _error(next(stopped))
        maps: dict[str, dict[str, Any]] = status["maps"]
        return maps

    @property
    def workers(self) -> int:
        """Number of workers, as `Grid.workers`."""
        return int(self._request("status")[0]["workers"])

    def hosts(self) -> list[HostState]:
        """The states of the hosts of all servers, as `Grid.hosts`. Raises SessionEnded."""
        return [HostState(*state) for state in self._request("hosts")[0]["hosts"]]

    def cancel(self, key: str) -> bool:
        """Cancel the items of a map or a call that have no result. Returns whether there were any.

        Results stay, and CallCancelled is raised behind them. A program that sends the map again
        resumes it. Raises LookupError if it does not exist, and SessionEnded.
        """
        return bool(self._request("map/cancel", key=key)[0]["cancelled"])

    def forget(self, key: str) -> None:
        """End a map or a call, and remove its items and results.

        Raises LookupError if it does not exist, and SessionEnded.
        """
        self._request("map/forget", key=key)

    @property
    def grid(self) -> Grid:
        """A `Grid` on the workers of the session, for calls that end with this program.

        It is opened on first use, and closed with this object. Its calls, shared data and objects
        are those of any grid. Raises SessionEnded.
        """
        if self._has_ended or self._client.is_closed:
            raise self._ended("It has no workers")
        if self._grid is None:
            from gridrpc._grid import Grid

            self._grid = Grid(servers=[f"session:{self.name}"])
        return self._grid

    def close(self) -> None:
        """End the connection, and close `grid`. The session continues."""
        self._client.close()
        grid, self._grid = self._grid, None
        if grid is not None:
            grid.close()

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
        return f"<gridrpc.AttachedGrid: session {self.name}, {self._client.record.state()}>"

    def _request(self, name: str, /, **fields: Any) -> Message:
        if self._has_ended:
            raise self._ended("It cannot be asked")
        return self._client.request(name, timeout=ANSWER, **fields)

    def _ended(self, what: str) -> SessionEnded:
        return SessionEnded(f"{self._client.record.error()}. {what}", self.name)

    @contextmanager
    def _detaching(self) -> Iterator[None]:
        try:
            yield
        except KeyboardInterrupt:
            self._say_detached()
            raise

    def _say_detached(self) -> None:
        """Say on Ctrl-C that the work continues."""
        if self._client.is_closed or self._has_ended:
            return
        self.close()
        print(
            f"gridrpc: detached from session {self.name}, whose work continues: run the program "
            f"again to come back, or end it by `gridrpc session stop {self.name}`",
            file=sys.stderr,
        )


def _error(contents: bytes) -> BaseException:
    """The error in an answer of the session."""
    error: BaseException = pickle.loads(contents)
    return error.raised() if isinstance(error, Raised) else error


def _zipped(iterables: tuple[Iterable[Any], ...]) -> Iterator[tuple[Any, ...]]:
    if not iterables:
        raise TypeError("map() needs at least one iterable")
    return zip(*iterables, strict=False)


def _flat(
    groups: Generator[list[Any], None, None], count: int | None, progress: bool | str
) -> Iterator[Any]:
    return (value for group in shown(groups, count, progress) for value in group)


@atexit.register
def _say_all_detached() -> None:
    """Say it also for Ctrl-C outside of `map` and `with`."""
    if getattr(sys, "last_type", None) is KeyboardInterrupt:
        for grid in list(_open):
            grid._say_detached()

"""Servers from directories: `Grid(directory=...)` chooses a server for each call."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from gridrpc import _native
from gridrpc._modules import ModuleFunction
from gridrpc._options import DEFAULT
from gridrpc.errors import (
    ConfigError,
    FunctionNotFound,
    LimitReached,
    NotPermitted,
    ServerNotFound,
    StartError,
    WorkerLost,
)

if TYPE_CHECKING:
    from gridrpc._grain import Grain
    from gridrpc._grid import Grid
    from gridrpc._hosts import HostState
    from gridrpc._native import Call, CallOptions

#: Seconds for which an answer of a directory is used.
VALID = 2.0
#: Seconds up to which an older answer is used while the next one is fetched.
STALE = 20.0
#: Seconds after which a directory that did not answer is asked again.
PAUSE = 10.0
#: Seconds that a directory may take to answer.
TIMEOUT = 5.0
#: Seconds for which a server that refused a call is left out.
REFUSED = 3.0
#: Seconds that a new connection may take before its server is left out.
CONNECT = 5.0
#: Seconds after which calls do not wait any more for a server that was lost.
LOST = 2.0
#: Seconds after which a connection that was lost is made anew, if directories list the server.
RECONNECT = 5.0
#: Bytes from which on a transfer says something about the bandwidth.
TRANSFER = 64 << 10
#: Seconds from which on a run says something about the speed in operations: less is overhead.
RUN = 1e-3
#: Bytes of an answer.
LARGEST = 64 << 20
#: Names of policies, those of crates/placement.
POLICIES = ("least-time", "least-load", "round-robin", "random", "data-locality")
#: An address, and nothing that a URL would read as an option of the connection.
ADDRESS = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}")


class Prediction(NamedTuple):
    """The predicted time of a call on a server, from `DirectoryFunction.predictions`."""

    #: Where the server listens.
    address: str
    #: Name of the server.
    server: str
    #: "ready"; or why the server is left out: "full", "silent", "lost", "another interface".
    state: str
    #: Operations per second of a call that runs alone, or calls per second without `CalcOrder`.
    speed: float
    #: Calls that run or wait, for each core.
    load: float
    #: Seconds for sending the arguments.
    send: float
    #: Seconds for running the function.
    run: float
    #: Seconds for receiving the results.
    receive: float

    @property
    def total(self) -> float:
        """Seconds for the whole call."""
        return self.send + self.run + self.receive


#: Bytes in, bytes out and operations of a call.
CallSize = tuple[float, float, float]
#: A server as `_native.choose_server` takes it.
Figures = tuple[float, float, float, float, float, bool]
#: A policy of the user's own: one of the predictions for the servers that are ready.
Policy = str | Callable[[list[Prediction]], Prediction]


class _Offer(NamedTuple):
    """What a directory says of a server that offers a function."""

    address: str
    name: str
    signature: str | None
    cores: int
    load: float
    speed: float
    is_full: bool
    is_silent: bool
    age: float


class _Answer(NamedTuple):
    """The offers for a function, when they were fetched."""

    at: float
    offers: list[_Offer]


class _Server:
    """A server, its connection, and what past calls have taught."""

    def __init__(self, address: str, name: str, credentials: str) -> None:
        self.address = address
        self.name = name
        self._credentials = credentials
        self._lock = threading.Lock()
        self.grid: Grid | None = None
        self._opened = 0.0
        self._lost_since: float | None = None
        self._functions: dict[tuple[str, CallOptions, int], ModuleFunction] = {}
        self.bandwidth_in = _native.Average()
        self.bandwidth_out = _native.Average()
        #: By function: operations or calls per second.
        self.speeds: dict[str, _native.Average] = {}
        #: Until when it is left out.
        self.refused_until = 0.0
        #: Calls of this program that the last answer of a directory does not count, and the time of
        #: that answer.
        self._new_calls = 0
        self._counted = 0.0

    def function(self, name: str, options: CallOptions, ranks: int) -> ModuleFunction:
        """Its function. Raises what `Grid.function` raises, and connects first."""
        from gridrpc._grid import Grid

        with self._lock:
            if self.grid is None:
                credentials = f"&credentials={self._credentials}" if self._credentials else ""
                # The server proves by its certificate that it has this address, as always.
                limits = f"start_timeout={CONNECT}&reconnect_timeout={LOST}"
                url = f"gridrpc://{self.address}?{limits}{credentials}"
                self.grid = Grid(servers=[url])
                self._opened = time.monotonic()
            grid = self.grid
        known = self._functions.get((name, options, ranks))
        if known is None or known.has_changed:
            known = ModuleFunction(grid, name, options=options, ranks=ranks)
            self._functions[name, options, ranks] = known
        return known

    def is_lost(self) -> bool:
        """Whether its connection is gone, or cannot be made. After a while it is made anew."""
        grid, now = self.grid, time.monotonic()
        if grid is None:
            return False
        states = {host.state for host in grid.hosts()}
        if states <= {"ready"} or ("lost" not in states and now - self._opened < CONNECT):
            self._lost_since = None
            return False
        if self._lost_since is None:
            self._lost_since = now
        if now - self._lost_since < RECONNECT:
            return True
        with self._lock:
            is_first = self.grid is grid
            if is_first:
                self.grid, self._lost_since = None, None
                self._functions.clear()
        if is_first:
            grid.close()
        return False

    def refuse(self) -> None:
        """Leave it out for a while."""
        self.refused_until = time.monotonic() + REFUSED

    def uncounted(self, fetched: float) -> int:
        """Calls of this program that began after a directory has answered."""
        return self._new_calls if fetched == self._counted else 0

    def begin(self, fetched: float) -> float:
        """Count a call that begins. Returns what `end` needs."""
        with self._lock:
            if fetched != self._counted:
                self._counted, self._new_calls = fetched, 0
            self._new_calls += 1
        return fetched

    def end(self, begun: float) -> None:
        with self._lock:
            if begun == self._counted:
                self._new_calls -= 1

    def learn(self, function: str, call: Call[Any], operations: float, has_cost: bool) -> None:
        """Learn from the times of a call that has returned."""
        profile = call._profile()
        run = profile["calc_out"] - profile["calc_in"]
        if profile["calc_in"] and run > (RUN if has_cost else 0):
            self.speeds.setdefault(function, _native.Average()).add(operations / run)
        error = 4 * profile["clock_error"]
        sending = profile["received"] - profile["sent"]
        if profile["bytes_in"] >= TRANSFER and profile["received"] and sending > error:
            self.bandwidth_in.add(profile["bytes_in"] / sending)
        receiving = profile["retrieve"] - profile["calc_out"]
        if profile["bytes_out"] >= TRANSFER and profile["calc_out"] and receiving > error:
            self.bandwidth_out.add(profile["bytes_out"] / receiving)


class Directory:
    """Servers that directories know, and the choice among them.

    Directories help, and decide nothing: without them, calls go to the servers that are known.
    """

    def __init__(self, urls: tuple[str, ...], policy: Policy) -> None:
        if isinstance(policy, str) and policy not in POLICIES:
            raise ConfigError(
                f"`policy` is {policy!r}: give one of {', '.join(POLICIES)}, or a function"
            )
        self.policy = policy
        self._places = [_Place(url) for url in urls]
        self._servers: dict[str, _Server] = {}
        self._answers: dict[str, _Answer] = {}
        #: Functions whose offers are being fetched.
        self._fetching: set[str] = set()
        self._lock = threading.Lock()
        self._turn = 0

    def function(
        self, grid: Grid, name: str, options: CallOptions, ranks: int
    ) -> DirectoryFunction:
        return DirectoryFunction(self, grid, name, options=options, ranks=ranks)

    def answer(self, name: str) -> _Answer:
        """The servers that offer a function.

        Raises FunctionNotFound, and ConnectionError if no directory has ever answered.
        """
        known = self._answers.get(name)
        age = float("inf") if known is None else time.monotonic() - known.at
        if known is None or age > STALE:
            return self._fetch(name)
        if age > VALID:
            with self._lock:
                is_first = name not in self._fetching
                self._fetching.add(name)
            if is_first:
                threading.Thread(target=self._refresh, args=(name,), daemon=True).start()
        return known

    def _refresh(self, name: str) -> None:
        try:
            self._fetch(name)
        finally:
            self._fetching.discard(name)

    def _fetch(self, name: str) -> _Answer:
        """Ask the directories."""
        known = self._answers.get(name)
        found, missing, failures = dict[str, _Offer](), "", list[str]()
        for place in self._places:
            try:
                offers = place.lookup(name)
            except FunctionNotFound as error:
                missing = str(error)
                continue
            except OSError as error:
                failures.append(f"{place.url}: {error}")
                continue
            for offer in offers:
                other = found.get(offer.address)
                # Of different answers, that of the directory which has heard the server last.
                if other is None or offer.age < other.age:
                    found[offer.address] = offer
        if found:
            known = _Answer(time.monotonic(), list(found.values()))
        elif known is not None:
            # The directories are gone, or have forgotten the servers: those that are known go on.
            known = _Answer(time.monotonic(), known.offers)
        elif missing:
            raise FunctionNotFound(missing)
        else:
            raise ConnectionError("no directory answers:\n  " + "\n  ".join(failures))
        self._answers[name] = known
        return known

    def server(self, offer: _Offer) -> _Server:
        with self._lock:
            known = self._servers.get(offer.address)
            if known is None:
                known = _Server(offer.address, offer.name, self._places[0].credentials)
                self._servers[offer.address] = known
            return known

    def draw(self) -> int:
        """What the policies "round-robin" and "random" need."""
        if self.policy == "random":
            return random.getrandbits(63)
        with self._lock:
            self._turn += 1
            return self._turn - 1

    def cores(self) -> int:
        """Cores of all servers that are known."""
        cores = {
            offer.address: offer.cores
            for answer in self._answers.values()
            for offer in answer.offers
        }
        return max(1, sum(cores.values()))

    def grids(self) -> _native.Grid:
        """What a grid with a directory has in the place of its native grid."""
        return cast("_native.Grid", _Grids(self))

    def opened(self) -> list[Grid]:
        """The grids of the servers that have been called."""
        grids = [server.grid for server in list(self._servers.values())]
        return [grid for grid in grids if grid is not None]


class _Grids:
    """The grids of all servers, in the place of one native grid. Only calls of functions use it."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    def workers(self) -> int:
        return self._directory.cores()

    def hosts(self) -> list[HostState]:
        return [host for grid in self._directory.opened() for host in grid.hosts()]

    def counts(self) -> tuple[int, int, int]:
        counts = [grid._native.counts() for grid in self._directory.opened()]
        ready, queued, live = (sum(column) for column in zip((0, 0, 0), *counts, strict=True))
        return ready, queued, live

    def server(self, name: str) -> int:
        raise ServerNotFound(
            f"a grid with a directory chooses the server of each call, and cannot bind calls to "
            f"`{name}`: open Grid(servers=[...])"
        )

    def close(self) -> None:
        for grid in self._directory.opened():
            grid.close()

    def __getattr__(self, name: str) -> Any:
        raise TypeError(
            "a grid with a directory only calls functions of compiled modules: for anything else, "
            "name a server, as in Grid(servers=[...])"
        )


class _Place:
    """A directory, by its URL."""

    def __init__(self, url: str) -> None:
        from urllib.parse import parse_qs, urlsplit

        parts = urlsplit(url)
        options = parse_qs(parts.query, keep_blank_values=True)
        if (
            parts.scheme not in ("http", "https")
            or not parts.hostname
            or set(options) - {"credentials"}
        ):
            raise ConfigError(
                f"`directory` is {url!r}: give a URL such as https://directory.example.org:7713, "
                "with ?credentials=DIR for a certificate in another folder"
            )
        self.url = f"{parts.scheme}://{parts.netloc}"
        self.credentials = options.get("credentials", [""])[0]
        self._is_encrypted = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port
        self._pause_until = 0.0

    def lookup(self, name: str) -> list[_Offer]:
        """Its offers for a function. Raises FunctionNotFound, and OSError if it does not answer."""
        if time.monotonic() < self._pause_until:
            raise ConnectionError("it did not answer a moment ago")
        try:
            status, body = self._get(name)
            answer = json.loads(body)
            if status == 404:
                raise FunctionNotFound(str(answer["error"]))
            if status != 200:
                raise ConnectionError(f"it answers {status}: {answer['error']}")
            return [offer for offer in map(_offer, answer["offers"]) if offer is not None]
        except (ValueError, KeyError, TypeError) as error:
            self._pause_until = time.monotonic() + PAUSE
            raise ConnectionError(f"its answer makes no sense: {error!r}") from None
        except OSError:
            self._pause_until = time.monotonic() + PAUSE
            raise

    def _get(self, name: str) -> tuple[int, bytes]:
        from http.client import HTTPConnection, HTTPException, HTTPSConnection
        from urllib.parse import quote

        connection: HTTPConnection
        if self._is_encrypted:
            connection = HTTPSConnection(
                self._host, self._port, timeout=TIMEOUT, context=_context(self.credentials)
            )
        else:
            connection = HTTPConnection(self._host, self._port, timeout=TIMEOUT)
        with contextlib.closing(connection):
            try:
                connection.request("GET", f"/lookup?function={quote(name, safe='')}")
                answer = connection.getresponse()
                return answer.status, answer.read(LARGEST)
            except HTTPException as error:
                raise ConnectionError(f"it speaks no HTTP: {error!r}") from None


def _context(credentials: str) -> Any:
    import ssl

    folder = credentials or _native.credentials_folder() or "."
    context = ssl.create_default_context(cafile=os.path.join(folder, "authority.pem"))
    context.load_cert_chain(
        os.path.join(folder, "certificate.pem"), os.path.join(folder, "key.pem")
    )
    return context


def _offer(told: dict[str, Any]) -> _Offer | None:
    """An offer of a directory; None: its address is none that a client may connect to."""
    address = str(told["address"])
    if not ADDRESS.fullmatch(address):
        return None
    signature = told.get("signature")
    return _Offer(
        address,
        str(told["name"]),
        None if signature is None else str(signature),
        int(told["cores"]),
        float(told["load"]),
        float(told["speed"]),
        bool(told["is_full"]),
        bool(told["is_silent"]),
        float(told["age"]),
    )


class _Choice(NamedTuple):
    """The server of a call."""

    server: _Server
    function: ModuleFunction
    operations: float
    #: Whether `CalcOrder` says so.
    has_cost: bool
    #: When the offers were fetched.
    fetched: float


class DirectoryFunction(ModuleFunction):
    """A function of a compiled module, with a server for each call, from `Grid.function`."""

    def __init__(
        self, directory: Directory, grid: Grid, name: str, *, options: CallOptions, ranks: int
    ) -> None:
        self._directory = directory
        first = self._first(name, options, ranks)
        self._target = first._target
        self._native = first._grid._native
        #: Calls keep to this interface, whatever other servers have.
        self.signature: str = first.description["signature"]
        self._grid = grid
        self._on = None
        self._options = options
        self._ranks = ranks
        self.costs = first.costs
        self.__name__, self.__qualname__ = first.__name__, first.__qualname__
        self._warn_of_others()

    def _first(self, name: str, options: CallOptions, ranks: int) -> ModuleFunction:
        """The function at one of its servers, which gives the interface."""
        offers = self._directory.answer(name).offers
        if all(offer.signature is None for offer in offers):
            raise FunctionNotFound(
                f"{name} is in Python, and a directory finds functions of compiled modules: name "
                "its server, as in Grid(servers=[...])"
            )
        usable = [one for one in offers if one.signature is not None and not one.is_silent]
        failure: Exception = StartError(f"all servers that offer {name} are silent")
        for offer in sorted(usable, key=lambda offer: (offer.is_full, offer.load)):
            server = self._directory.server(offer)
            try:
                return server.function(name, options, ranks)
            except (LookupError, OSError, WorkerLost, NotPermitted) as error:
                server.refuse()
                failure = error
        raise failure

    def _warn_of_others(self) -> None:
        others = {
            offer.address
            for offer in self._directory.answer(self.name).offers
            if offer.signature not in (None, self.signature)
        }
        if others:
            warnings.warn(
                f"{self.name} has another interface at {', '.join(sorted(others))}: calls keep to "
                f"{self.signature}",
                RuntimeWarning,
                stacklevel=4,
            )

    @property
    def has_changed(self) -> bool:
        return False

    def predictions(self, /, *args: Any, **kwargs: Any) -> list[Prediction]:
        """The predicted time of a call with these arguments on each server."""
        size, has_cost = self._size(args, kwargs)
        return [prediction for _, prediction, _ in self._predicted(size, has_cost)]

    def _size(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[CallSize, bool]:
        """Bytes in, bytes out and operations of a call, and whether `CalcOrder` gives these."""
        bytes_in, bytes_out, operations = self._native.call_size(self._target, args, kwargs)
        if operations is None or operations <= 0:
            return (float(bytes_in), float(bytes_out), 1.0), False
        return (float(bytes_in), float(bytes_out), operations), True

    def _predicted(
        self, size: CallSize, has_cost: bool
    ) -> list[tuple[_Server, Prediction, Figures]]:
        """All servers, those that have not been measured first."""
        fetched, offers = self._directory.answer(self.name)
        servers = [(self._directory.server(offer), offer) for offer in offers]
        speeds = {
            server.address: average.value
            for server, _ in servers
            if (average := server.speeds.get(self.name)) is not None
        }
        # What has not been measured is assumed to be as good as the best, so that it is tried.
        best = max(filter(None, speeds.values()), default=0.0)
        bandwidth = [
            max((one.value or 0.0 for one in averages), default=0.0)
            for averages in (
                [server.bandwidth_in for server, _ in servers],
                [server.bandwidth_out for server, _ in servers],
            )
        ]
        result = []
        for server, offer in servers:
            announced = offer.speed if has_cost else 1.0
            speed = speeds.get(server.address) or max(announced if not best else 0.0, best)
            load = offer.load + server.uncounted(fetched) / max(1, offer.cores)
            state = self._state(server, offer)
            figures = (
                speed,
                load,
                server.bandwidth_in.value or bandwidth[0] or _native.ASSUMED_BANDWIDTH,
                server.bandwidth_out.value or bandwidth[1] or _native.ASSUMED_BANDWIDTH,
                0.0,
                state != "ready",
            )
            times = _native.predicted_time(size, figures)
            prediction = Prediction(server.address, server.name, state, speed, load, *times)
            result.append((server, prediction, figures))
        result.sort(key=lambda one: one[0].address in speeds)
        return result

    def _state(self, server: _Server, offer: _Offer) -> str:
        if offer.signature != self.signature:
            return "another interface"
        if offer.is_silent:
            return "silent"
        if server.is_lost():
            return "lost"
        return "full" if offer.is_full or time.monotonic() < server.refused_until else "ready"

    def _choose(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        tried: set[str],
        failure: Exception | None = None,
    ) -> _Choice:
        """A server for a call, none of those that have been tried.

        Raises the last failure, or LimitReached, if no server is left.
        """
        size, has_cost = self._size(args, kwargs)
        while True:
            servers = [
                one
                for one in self._predicted(size, has_cost)
                if one[0].address not in tried and one[1].state == "ready"
            ]
            if not servers:
                raise failure or self._none_left(size, has_cost)
            policy = self._directory.policy
            if callable(policy):
                picked = policy([prediction for _, prediction, _ in servers])
                index = [prediction for _, prediction, _ in servers].index(picked)
            else:
                figures = [figures for _, _, figures in servers]
                found = _native.choose_server(policy, size, figures, self._directory.draw())
                index = 0 if found is None else found
            server = servers[index][0]
            try:
                function = server.function(self.name, self._options, self._ranks)
                signature = function.description["signature"]
            except (LookupError, OSError, WorkerLost, NotPermitted) as error:
                signature, failure = None, error
            if signature == self.signature:
                fetched = self._directory.answer(self.name).at
                return _Choice(server, function, size[2], has_cost, fetched)
            # The directory is behind, or lies.
            server.refuse()
            tried.add(server.address)

    def _none_left(self, size: CallSize, has_cost: bool) -> Exception:
        predicted = self._predicted(size, has_cost)
        states = ", ".join(f"{one.address}: {one.state}" for _, one, _ in predicted)
        return LimitReached(f"no server takes a call of {self.name} now ({states})")

    def _begin(self, choice: _Choice, call: Call[Any], operations: float) -> None:
        """Watch a call, to learn from it when it ends."""
        begun = choice.server.begin(choice.fetched)

        def ended(call: Call[Any]) -> None:
            choice.server.end(begun)
            error = call.exception()
            if error is None:
                choice.server.learn(self.name, call, operations, choice.has_cost)
            elif isinstance(error, (LimitReached, StartError)):
                choice.server.refuse()

        call.add_done_callback(ended)

    def __call__(
        self, /, *args: Any, out: Any = None, deadline: float | None = None, **kw: Any
    ) -> Any:
        options = DEFAULT if deadline is None else _native.CallOptions(deadline=deadline)
        tried: set[str] = set()
        failure: Exception | None = None
        while True:
            choice = self._choose(args, kw, tried, failure)
            call = choice.function._submit(choice.function._grid, args, kw, out, options)
            self._begin(choice, call, choice.operations)
            try:
                return call.result()
            except (LimitReached, StartError) as error:
                # The server has not begun the call.
                failure = error
            except WorkerLost as error:
                if not self.is_idempotent:
                    raise
                failure = error
            choice.server.refuse()
            tried.add(choice.server.address)

    def detach_on(self, grid: Grid, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        self._check_grid(grid)
        return self._choose(args, kwargs, set()).function.detach(*args, **kwargs)

    def submit_many_on(
        self, grid: Grid, items: list[Any], single: bool, grain: Grain, options: CallOptions
    ) -> tuple[Call[Any], int] | None:
        self._check_grid(grid)
        item = items[0]
        args: tuple[Any, ...] = (item,) if single else ()
        kwargs: dict[str, Any] = {}
        if not single:
            args, kwargs = ((), dict(item)) if isinstance(item, Mapping) else (tuple(item), {})
        choice = self._choose(args, kwargs, set())
        function = choice.function
        made = function.submit_many_on(function._grid, items, single, grain, options)
        if made is not None:
            self._begin(choice, made[0], choice.operations * made[1])
        return made

    def _submit(
        self,
        grid: Grid,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        out: Any,
        options: CallOptions,
        *,
        ranks: int = 0,
        has_span: bool = True,
    ) -> Call[Any]:
        grid._check_open()
        choice = self._choose(args, kwargs, set())
        function = choice.function
        call = function._submit(
            function._grid, args, kwargs, out, options, ranks=ranks, has_span=has_span
        )
        self._begin(choice, call, choice.operations)
        return call

"""Directories of `Grid(directory=...)`, and what is known of the servers in them."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from gridrpc import _native
from gridrpc._directory_client import DirectoryClient, Offer
from gridrpc._modules import ModuleFunction
from gridrpc.errors import ConfigError, FunctionNotFound, GridClosed, ServerNotFound

if TYPE_CHECKING:
    from gridrpc._directory_shared import DirectoryShared, FoundShared
    from gridrpc._grid import Grid
    from gridrpc._hosts import HostState
    from gridrpc._native import Call, CallOptions

#: Seconds for which an answer of a directory is used.
VALID = _native.ANSWER_VALID
#: Seconds up to which an older answer is used while the next one is fetched.
STALE = _native.ANSWER_STALE
#: Seconds for which a server that refused a call is left out.
REFUSED = 3.0
#: Seconds that a new connection may take before its server is left out.
CONNECT = 5.0
#: Seconds after which calls do not wait any more for a server that was lost.
LOST = 2.0
#: Seconds after which a connection that was lost is made again, if directories list the server.
RECONNECT = 5.0
#: Names of policies, those of crates/placement.
POLICIES = (
    "least-time",
    "least-load",
    "two-choices",
    "round-robin",
    "random",
    "data-locality",
)


class Prediction(NamedTuple):
    """The predicted time of a call on a server, from `DirectoryFunction.predictions`."""

    #: Where the server listens.
    address: str
    #: Name of the server.
    server: str
    #: "ready"; or why the server is left out: "full", "silent", "lost", "another interface",
    #: "without the data".
    state: str
    #: Operations per second of a call that runs alone, or calls per second without `CalcOrder`.
    speed: float
    #: Calls that run or wait, for each core.
    load: float
    #: Seconds until a core is free of the program's own calls.
    wait: float
    #: Seconds for sending the arguments.
    send: float
    #: Seconds for running the function, with the calls of others.
    run: float
    #: Seconds for receiving the results.
    receive: float

    @property
    def total(self) -> float:
        """Seconds for the whole call."""
        return self.wait + self.send + self.run + self.receive


#: A policy of the user's own: one of the predictions for the servers that are ready.
Policy = str | Callable[[list[Prediction]], Prediction]


class Answer(NamedTuple):
    """The offers for a function, when they were fetched."""

    at: float
    offers: list[Offer]


class KnownServer:
    """A server, its connection, and what past calls have taught."""

    def __init__(self, address: str, name: str, options: str) -> None:
        """`options`: what is added to its URL."""
        self.address = address
        self.name = name
        self._options = options
        self._lock = threading.Lock()
        self.grid: Grid | None = None
        self._opened = 0.0
        self._is_closed = False
        self._lost_since: float | None = None
        self._functions: dict[tuple[str, CallOptions, int], ModuleFunction] = {}
        #: Until when it is left out.
        self.refused_until = 0.0
        #: Calls of this program, and what they have measured.
        self.measured = _native.Measurements()

    def connected(self) -> Grid:
        """Its grid, which connects in the background if it is new."""
        from gridrpc._grid import Grid

        with self._lock:
            if self._is_closed:
                raise GridClosed("the grid is closed")
            if self.grid is None:
                # The server proves by its certificate that it has this address, as always.
                limits = f"start_timeout={CONNECT}&reconnect_timeout={LOST}"
                self.grid = Grid(servers=[f"gridrpc://{self.address}?{limits}{self._options}"])
                self._opened = time.monotonic()
            return self.grid

    def is_connected(self) -> bool:
        """Wait for its connection, if that is being made. Returns whether there is one."""
        grid, until = self.connected(), time.monotonic() + CONNECT
        while {host.state for host in grid.hosts()} != {"ready"}:
            if time.monotonic() > until or self.is_lost():
                return False
            time.sleep(0.002)
        return True

    def close(self) -> None:
        """End its connection, forever."""
        with self._lock:
            self._is_closed = True
            grid = self.grid
        if grid is not None:
            grid.close()

    def function(self, name: str, options: CallOptions, ranks: int) -> ModuleFunction:
        """Its function. Raises what `Grid.function` raises, and connects first."""
        grid = self.connected()
        known = self._functions.get((name, options, ranks))
        if known is None or known.has_changed:
            known = ModuleFunction(grid, name, options=options, ranks=ranks)
            self._functions[name, options, ranks] = known
        return known

    def is_lost(self) -> bool:
        """Whether its connection is gone, or cannot be made. After a while it is made again."""
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
            # Callbacks of its calls may wait for the choice that this one belongs to.
            threading.Thread(target=grid.close, daemon=True).start()
        return False

    def refuse(self) -> None:
        """Leave it out for a while."""
        self.refused_until = time.monotonic() + REFUSED

    def learn(self, function: str, call: Call[Any], operations: float, has_cost: bool) -> None:
        """Learn from the times of a call that has returned."""
        profile = call._profile()
        stamps = ("sent", "received", "calc_in", "calc_out", "retrieve")
        sent, received, started, computed, returned = (profile[name] for name in stamps)
        self.measured.learn(
            function,
            (sent, received, started, computed, returned),
            (profile["bytes_in"], profile["bytes_out"]),
            operations,
            has_cost,
            4 * profile["clock_error"],
        )


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
        self._directories = [DirectoryClient(url) for url in urls]
        #: Whether results of Python functions may be unpickled, wherever a server is listed.
        self.is_trusted = all(one.is_trusted for one in self._directories)
        credentials = self._directories[0].credentials
        self._options = f"&credentials={credentials}" if credentials else ""
        self._options += "&trusted=true" if self.is_trusted else ""
        self._servers: dict[str, KnownServer] = {}
        self._answers: dict[str, Answer] = {}
        #: Functions whose offers are being fetched.
        self._fetching: set[str] = set()
        self._lock = threading.Lock()
        #: Held while a server is chosen. A policy of the user's own may call functions.
        self.choosing = threading.RLock()
        self._turn = 0
        self._shared: list[DirectoryShared] = []

    def answer(self, name: str) -> Answer:
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

    def fetched(self, name: str) -> float:
        """When the servers that offer a function were fetched last, s of the monotonic clock."""
        answer = self._answers.get(name)
        return answer.at if answer else 0.0

    def ask_again(self, name: str, before: float) -> bool:
        """Fetch the servers that offer a function again, unless they have just been. Returns
        whether they were fetched after `before`."""
        if time.monotonic() - self.fetched(name) > VALID:
            self._fetch(name)
        return self.fetched(name) > before

    def _refresh(self, name: str) -> None:
        try:
            self._fetch(name)
        finally:
            self._fetching.discard(name)

    def _fetch(self, name: str) -> Answer:
        """Ask the directories."""
        known = self._answers.get(name)
        found, missing, failures = dict[str, Offer](), "", list[str]()
        for client in self._directories:
            try:
                offers = client.lookup(name)
            except FunctionNotFound as error:
                missing = str(error)
                continue
            except OSError as error:
                failures.append(f"{client.url}: {error}")
                continue
            for offer in offers:
                other = found.get(offer.address)
                # Of different answers, that of the directory which has heard the server last.
                if other is None or offer.age < other.age:
                    found[offer.address] = offer
        if found:
            known = Answer(time.monotonic(), list(found.values()))
        elif known is not None:
            # The directories are gone, or have forgotten the servers: known ones stay.
            now = time.monotonic()
            known = Answer(
                now, [one._replace(age=one.age + now - known.at) for one in known.offers]
            )
        elif missing:
            raise FunctionNotFound(missing)
        else:
            raise ConnectionError("no directory answers:\n  " + "\n  ".join(failures))
        self._answers[name] = known
        return known

    def server(self, offer: Offer) -> KnownServer:
        with self._lock:
            known = self._servers.get(offer.address)
            if known is None:
                known = KnownServer(offer.address, offer.name, self._options)
                self._servers[offer.address] = known
            return known

    def draw(self) -> int:
        """What policies need: the number of the call for "round-robin", or a random number."""
        if self.policy != "round-robin":
            return random.getrandbits(64)
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
        """Stand-in for the native grid of a grid with a directory."""
        return cast("_native.Grid", ServerGrids(self))

    def share(
        self, value: Any, name: str | None, keep: float | None, readers: str | Iterable[str]
    ) -> DirectoryShared:
        """Data for the servers that calls need it at."""
        from gridrpc._directory_shared import DirectoryShared

        shared = DirectoryShared(value, name, keep, readers)
        self._shared.append(shared)
        return shared

    def find_shared(self, name: str) -> FoundShared:
        """Data that servers keep under a name. Raises what `Grid.shared` raises."""
        from gridrpc._directory_shared import FoundShared

        offers, failures = dict[str, Offer](), list[str]()
        for client in self._directories:
            try:
                listed = client.servers()
            except OSError as error:
                failures.append(f"{client.url}: {error}")
                continue
            offers.update((one.address, one) for one in listed if not one.is_silent)
        if not offers and failures:
            raise ConnectionError("no directory answers:\n  " + "\n  ".join(failures))
        return FoundShared(name, [self.server(offer) for offer in offers.values()])

    def close(self) -> None:
        """Remove data without a name, and close the connections to directories."""
        for shared in self._shared:
            if not shared.is_named:
                shared.remove()
        self._shared.clear()
        for client in self._directories:
            client.close()
        for server in list(self._servers.values()):
            server.close()

    def opened(self) -> list[Grid]:
        """The grids of the servers that have been called."""
        grids = [server.grid for server in list(self._servers.values())]
        return [grid for grid in grids if grid is not None]


class ServerGrids:
    """The grids of all servers, in place of one native grid. Only calls of functions use it."""

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

    def cancel_all(self) -> int:
        return sum(grid.cancel_all() for grid in self._directory.opened())

    def close(self) -> None:
        self._directory.close()

    def __getattr__(self, name: str) -> Any:
        raise TypeError(
            "a grid with a directory calls functions that servers offer, by name: for functions of "
            "this program, name a server, as in Grid(servers=[...])"
        )

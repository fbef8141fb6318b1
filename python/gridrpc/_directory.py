"""Directories of `Grid(directory=...)`, and what is known of the servers in them."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from gridrpc import _native
from gridrpc._modules import ModuleFunction
from gridrpc.errors import ConfigError, FunctionNotFound, ServerNotFound

if TYPE_CHECKING:
    from http.client import HTTPConnection

    from gridrpc._directory_shared import DirectoryShared
    from gridrpc._grid import Grid
    from gridrpc._hosts import HostState
    from gridrpc._native import Call, CallOptions

#: Seconds for which an answer of a directory is used.
VALID = _native.ANSWER_VALID
#: Seconds up to which an older answer is used while the next one is fetched.
STALE = _native.ANSWER_STALE
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
#: Bytes of an answer.
LARGEST = 64 << 20
#: Names of policies, those of crates/placement.
POLICIES = (
    "least-time",
    "least-load",
    "two-choices",
    "round-robin",
    "random",
    "data-locality",
)
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


class Offer(NamedTuple):
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


class Answer(NamedTuple):
    """The offers for a function, when they were fetched."""

    at: float
    offers: list[Offer]


class KnownServer:
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
        self.queue = _native.Average()
        #: By function: operations or calls per second.
        self.speeds: dict[str, _native.Average] = {}
        #: Until when it is left out.
        self.refused_until = 0.0
        #: Calls of this program.
        self._calls = _native.OwnCalls()

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

    def own_calls(self, announced: float) -> tuple[int, int, float, float | None]:
        """Calls of this program when the server was announced and now, seconds until a core is free
        of them, and seconds that they have waited at the server."""
        with self._lock:
            calls = self._calls
            wait = calls.wait(time.monotonic())
            return calls.before(announced), calls.count, wait, self.queue.value

    def begin(self, seconds: float, cores: int) -> _native.OwnCall:
        """Count a call that begins, and is expected to keep a core for so long."""
        with self._lock:
            return self._calls.begin(time.monotonic(), seconds, cores)

    def end(self, call: _native.OwnCall) -> None:
        with self._lock:
            self._calls.end(time.monotonic(), call)

    def learn(self, function: str, call: Call[Any], operations: float, has_cost: bool) -> None:
        """Learn from the times of a call that has returned."""
        profile = call._profile()
        if profile["calc_in"]:
            speed = self.speeds.setdefault(function, _native.Average())
            speed.add_run(operations, profile["calc_out"] - profile["calc_in"], has_cost)
            if profile["received"]:
                self.queue.add_queue(profile["calc_in"] - profile["received"])
        error = 4 * profile["clock_error"]
        if profile["received"]:
            sending = profile["received"] - profile["sent"]
            self.bandwidth_in.add_transfer(profile["bytes_in"], sending, error)
        if profile["calc_out"]:
            receiving = profile["retrieve"] - profile["calc_out"]
            self.bandwidth_out.add_transfer(profile["bytes_out"], receiving, error)


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
            # The directories are gone, or have forgotten the servers: those that are known go on.
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
                known = KnownServer(offer.address, offer.name, self._directories[0].credentials)
                self._servers[offer.address] = known
            return known

    def draw(self) -> int:
        """What the policies "round-robin", "random" and "two-choices" need."""
        if self.policy in ("random", "two-choices"):
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
        return cast("_native.Grid", ServerGrids(self))

    def share(
        self, value: Any, name: str | None, keep: float | None, readers: str | Iterable[str]
    ) -> DirectoryShared:
        """Data for the servers that calls need it at."""
        from gridrpc._directory_shared import DirectoryShared

        shared = DirectoryShared(value, name, keep, readers)
        self._shared.append(shared)
        return shared

    def close(self) -> None:
        """Remove data without a name, and close the connections to directories."""
        for shared in self._shared:
            if not shared.is_named:
                shared.remove()
        self._shared.clear()
        for client in self._directories:
            client.close()

    def opened(self) -> list[Grid]:
        """The grids of the servers that have been called."""
        grids = [server.grid for server in list(self._servers.values())]
        return [grid for grid in grids if grid is not None]


class ServerGrids:
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
        self._directory.close()
        for grid in self._directory.opened():
            grid.close()

    def __getattr__(self, name: str) -> Any:
        raise TypeError(
            "a grid with a directory only calls functions of compiled modules: for anything else, "
            "name a server, as in Grid(servers=[...])"
        )


class DirectoryClient:
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
        #: Connections that wait for the next question.
        self._idle: list[HTTPConnection] = []

    def lookup(self, name: str) -> list[Offer]:
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

    def close(self) -> None:
        """Close idle connections."""
        while self._idle:
            self._idle.pop().close()

    def _get(self, name: str) -> tuple[int, bytes]:
        """Ask on a connection that an earlier question has left, or on a new one."""
        from http.client import HTTPException
        from urllib.parse import quote

        path = f"/lookup?function={quote(name, safe='')}&interface=no"
        while True:
            with contextlib.suppress(IndexError):
                # The directory may have closed it since.
                with contextlib.suppress(HTTPException, OSError):
                    return self._ask(self._idle.pop(), path)
                continue
            try:
                return self._ask(self._connect(), path)
            except HTTPException as error:
                raise ConnectionError(f"it speaks no HTTP: {error!r}") from None

    def _connect(self) -> HTTPConnection:
        from http.client import HTTPConnection, HTTPSConnection

        if not self._is_encrypted:
            return HTTPConnection(self._host, self._port, timeout=TIMEOUT)
        context = _context(self.credentials)
        return HTTPSConnection(self._host, self._port, timeout=TIMEOUT, context=context)

    def _ask(self, connection: HTTPConnection, path: str) -> tuple[int, bytes]:
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read(LARGEST)
            if answer.isclosed() and connection.sock is not None:
                self._idle.append(connection)
                return answer.status, body
        except BaseException:
            connection.close()
            raise
        connection.close()
        return answer.status, body


def _context(credentials: str) -> Any:
    import ssl

    folder = credentials or _native.credentials_folder() or "."
    context = ssl.create_default_context(cafile=os.path.join(folder, "authority.pem"))
    context.load_cert_chain(
        os.path.join(folder, "certificate.pem"), os.path.join(folder, "key.pem")
    )
    return context


def _offer(told: dict[str, Any]) -> Offer | None:
    """An offer of a directory; None: its address is none that a client may connect to."""
    address = str(told["address"])
    if not ADDRESS.fullmatch(address):
        return None
    signature = told.get("signature")
    return Offer(
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

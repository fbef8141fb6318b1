"""Scenario of `gridbench placement`: servers, clients, links, functions and the workload.

A scenario is built in, or a TOML file:

    interval = "3s"                 # between two announcements of a server

    [[servers]]
    name = "far"
    cores = 4
    speed = 2e9                     # operations per second of a core
    rate = "100mbit"                # of the link to each group of clients
    latency = "20ms"
    links.campus = { rate = "1gbit", latency = "1ms" }

    [[clients]]
    name = "campus"
    count = 8

    [[functions]]
    name = "solve"
    bytes_in = "8MB"
    bytes_out = "16KB"
    operations = 6.7e8

    [workload]
    kind = "poisson"
    load = "60%"
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeVar

from gridbench.errors import InputError
from gridbench.formats import as_given
from gridbench.links.options import LINK_RATE
from gridbench.quantities import SIZE, TEXT, Choice, Count, Duration, Probability, Quantity
from gridbench.read_config import line_of_key, parse_toml, read_text
from gridbench.schema import declarations, option
from gridbench.workload.numbers import parse_real, shown

WorkloadKind = Literal["poisson", "bursts", "steps", "batch"]
WORKLOADS: dict[WorkloadKind, str] = {
    "poisson": "calls at random times",
    "bursts": "bursts of calls of a client at random times",
    "steps": "a client calls at its steps with a probability, and leaves out steps during a call",
    "batch": "all calls at once",
}
OPEN_WORKLOADS: tuple[WorkloadKind, ...] = ("poisson", "bursts")
"""Those whose rate follows from a load."""
CallCores = Literal["one", "all"]
"""Cores that a call uses on a server."""
MOST_SERVERS, MOST_CLIENTS, MOST_CALLS = 10_000, 1_000_000, 20_000_000
MOST_LINKS = 30_000
"""Groups of clients times servers."""

_REMEDY = "docs/placement.md has an example"


class Amount(Quantity[float]):
    """A positive number, such as `6.7e8`."""

    name = "number"

    def read(self, value: Any, folder: Path | None = None) -> float:
        """The number."""
        del folder
        try:
            return parse_real("" if isinstance(value, bool) else str(value), 1e-9, 1e18)
        except ValueError:
            raise InputError(
                f"must be a number above 0 and up to 1e18, not `{shown(str(value))}`",
                remedy="write a number such as 2e9",
            ) from None


class SystemLoad(Quantity[float]):
    """Work that arrives, as a share of what all servers can do: `60%` or `0.6`."""

    name = "load"

    def read(self, value: Any, folder: Path | None = None) -> float:
        """The share."""
        del folder
        text = str(value).strip()
        try:
            share = parse_real(text.removesuffix("%"), 0.0, 1000.0)
            share /= 100 if text.endswith("%") else 1
        except ValueError:
            share = 0.0
        if isinstance(value, bool) or not 0.01 <= share <= 3:
            raise InputError(
                f"`{shown(text)}` is no load of all servers", remedy="give a share from 1% to 300%"
            )
        return share


_LATENCY = Duration(0.0, 10.0)
INTERVAL = Duration(0.0, 3600.0)
RUN_TIME = Duration(1e-3, 1e6)
_NAME = TEXT


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLink:
    """The link between a server and a group of clients, the same in both directions."""

    rate: float = option(LINK_RATE, help="Bits per second.", default=1e9)
    latency: float = option(_LATENCY, help="Of a message in one direction, s.", default=0.0)

    @property
    def bandwidth(self) -> float:
        """Bytes per second, of all transfers in one direction together."""
        return self.rate / 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioServer:
    """Servers that are alike."""

    name: str = option(_NAME, help="Name.")
    count: int = option(Count(1, MOST_SERVERS), help="Number of servers.", default=1)
    cores: int = option(Count(1, 100_000), help="Number of cores.", default=1)
    speed: float = option(Amount(), help="Operations per second of a core.", default=1e9)
    call_cores: CallCores = option(
        Choice[CallCores]({"one": "one", "all": "all"}),
        help="Cores of a call.",
        default="one",
    )
    announced_speed: float | None = option(
        Amount(), help="Speed of a call that the server announces, if not the true one."
    )
    link: ServerLink = ServerLink()
    """To groups of clients without one of their own."""
    links: Mapping[str, ServerLink] = field(default_factory=dict)
    """By group of clients."""

    @property
    def call_speed(self) -> float:
        """Operations per second of a call that runs alone."""
        return self.speed * (self.cores if self.call_cores == "all" else 1)

    @property
    def slots(self) -> int:
        """Calls that run at a time."""
        return 1 if self.call_cores == "all" else self.cores

    @property
    def announced(self) -> float:
        """The speed of a call that it announces."""
        return self.announced_speed or self.call_speed

    def link_to(self, group: str) -> ServerLink:
        """The link to a group of clients."""
        return self.links.get(group, self.link)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientGroup:
    """Clients that share their links to the servers."""

    name: str = option(_NAME, help="Name.")
    count: int = option(Count(1, MOST_CLIENTS), help="Number of clients.", default=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioFunction:
    """A function that all servers offer."""

    name: str = option(_NAME, help="Name.")
    bytes_in: int = option(SIZE, help="Bytes of the arguments.", default=0)
    bytes_out: int = option(SIZE, help="Bytes of the results.", default=0)
    operations: float = option(Amount(), help="Operations of a call.", default=1e9)
    weight: float = option(
        Amount(), help="How often it is called, relative to others.", default=1.0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementWorkload:
    """When clients call."""

    kind: WorkloadKind = option(
        Choice[WorkloadKind]({name: name for name in WORKLOADS}),
        help="How calls arrive.",
        default="poisson",
    )
    load: float = option(
        SystemLoad(), help="Of poisson and bursts: work that arrives, by capacity.", default=0.6
    )
    duration: float = option(RUN_TIME, help="Time in which clients begin calls.", default=120.0)
    burst: int = option(Count(1, 100_000), help="Calls of a burst.", default=10)
    step: float = option(RUN_TIME, help="Seconds between two steps of a client.", default=3.0)
    probability: float = option(Probability(), help="That a client calls at a step.", default=0.5)
    calls: int = option(Count(1, MOST_CALLS), help="Number of calls of a batch.", default=100)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementScenario:
    """All of a scenario. Servers and clients are numbered in the order of their groups."""

    name: str
    servers: tuple[ScenarioServer, ...]
    clients: tuple[ClientGroup, ...]
    functions: tuple[ScenarioFunction, ...]
    workload: PlacementWorkload = PlacementWorkload()
    interval: float = option(
        INTERVAL,
        help="Time between two announcements of a server; 0: clients always know all loads.",
        default=3.0,
    )

    @property
    def server_count(self) -> int:
        """Number of servers."""
        return sum(one.count for one in self.servers)

    @property
    def client_count(self) -> int:
        """Number of clients."""
        return sum(one.count for one in self.clients)

    def each_server(self) -> list[ScenarioServer]:
        """The servers by number, with names such as `far` or, of several, `far-2`."""
        return [
            one if one.count == 1 else replace(one, name=f"{one.name}-{number + 1}", count=1)
            for one in self.servers
            for number in range(one.count)
        ]

    def group_of_clients(self) -> list[int]:
        """For each client, by number, the number of its group."""
        return [number for number, one in enumerate(self.clients) for _ in range(one.count)]

    @property
    def capacity(self) -> float:
        """Operations per second of all servers."""
        return sum(one.count * one.cores * one.speed for one in self.servers)

    @property
    def mean_operations(self) -> float:
        """Of a call."""
        total = sum(one.weight for one in self.functions)
        return sum(one.weight * one.operations for one in self.functions) / total

    @property
    def rate(self) -> float:
        """Calls per second of an open workload."""
        return self.workload.load * self.capacity / self.mean_operations

    def described(self) -> dict[str, Any]:
        """All of it as texts, which results keep."""
        return {
            "scenario": self.name,
            "servers": [_describe(one) for one in self.servers],
            "clients": [_describe(one) for one in self.clients],
            "functions": [_describe(one) for one in self.functions],
            "workload": _describe(self.workload),
            "interval": self.interval,
        }

    def scaled(self, servers: int | None = None, clients: int | None = None) -> PlacementScenario:
        """With so many servers and clients, in the same shares. InputError for fewer than there
        are groups."""
        return replace(
            self,
            servers=_shared_out("--servers", self.servers, servers),
            clients=_shared_out("--clients", self.clients, clients),
        )

    def with_workload(self, **changed: Any) -> PlacementScenario:
        """With some of the workload changed."""
        return replace(self, workload=replace(self.workload, **changed))

    def with_interval(self, interval: float) -> PlacementScenario:
        """With this time between two announcements."""
        return replace(self, interval=interval)

    def check(self) -> None:
        """InputError if it is too large."""
        for count, most, what in (
            (self.server_count, MOST_SERVERS, "servers"),
            (self.client_count, MOST_CLIENTS, "clients"),
            (self.server_count * len(self.clients), MOST_LINKS, "links"),
        ):
            if count > most:
                raise InputError(
                    f"the scenario `{shown(self.name)}` has {count:,} {what}, and {most:,} at most"
                    " can be simulated",
                    remedy="lower `count`, or the number of groups of clients",
                )


DEFAULT_SCENARIO = PlacementScenario(
    name="four servers",
    servers=(
        ScenarioServer(
            name="near", cores=2, speed=1e9, link=ServerLink(rate=1e9, latency=0.0002)
        ),
        ScenarioServer(
            name="wide", cores=8, speed=0.5e9, link=ServerLink(rate=1e9, latency=0.001)
        ),
        ScenarioServer(
            name="far", cores=4, speed=2e9, link=ServerLink(rate=1e8, latency=0.01)
        ),
        ScenarioServer(
            name="slow", cores=2, speed=0.25e9, link=ServerLink(rate=1e9, latency=0.0002)
        ),
    ),
    clients=(ClientGroup(name="clients", count=8),),
    functions=(
        ScenarioFunction(name="solve", bytes_in=8 << 20, bytes_out=16 << 10, operations=6.7e8),
        ScenarioFunction(name="price", bytes_in=8 << 10, bytes_out=8 << 10, operations=3e8),
    ),
)  # fmt: skip
"""Four servers of different speed and link, 8 clients, and two functions: one with much data, one
with little."""


def _describe(part: Any, prefix: str = "") -> str:
    """`name=far cores=4 link.rate=1e+08`: what is not as it is by default."""
    words = []
    for own in fields(part):
        value, name = getattr(part, own.name), f"{prefix}{own.name}"
        if isinstance(value, ServerLink):
            words.append(_describe(value, f"{name}."))
        elif isinstance(value, Mapping):
            words += [
                f"{name}.{to}={as_given(one.rate, '')}/{one.latency}s" for to, one in value.items()
            ]
        elif value != own.default:
            shown = as_given(value, "") if isinstance(value, float) else str(value)
            words.append(f"{name}={shown}")
    return " ".join(filter(None, words))


# ---- Files


def read_scenario(path: Path) -> PlacementScenario:
    """The scenario of a TOML file. InputError gives the problem and its place."""
    text = read_text(path, "scenario", _REMEDY)
    table = parse_toml(path, text, _REMEDY)
    try:
        found = _scenario(table, path.stem)
        found.check()
    except _WrongKey as wrong:
        # Several servers have the same keys; the place is in the message.
        is_only = len(re.findall(rf"\b{re.escape(wrong.key)}\b", text)) == 1
        line = line_of_key(text, wrong.key) if is_only else None
        raise InputError(wrong.what, file=path, line=line, remedy=wrong.remedy) from None
    except InputError as error:
        raise InputError(error.what, file=path, remedy=error.remedy or _REMEDY) from None
    return found


class _WrongKey(Exception):
    """A key that is unknown, or whose value is wrong."""

    def __init__(self, key: str, what: str, remedy: str) -> None:
        super().__init__(what)
        self.key, self.what, self.remedy = key, what, remedy


def _scenario(table: dict[str, Any], stem: str) -> PlacementScenario:
    known = ("name", "interval", "servers", "clients", "functions", "workload")
    for key in table:
        if key not in known:
            raise _unknown(key, "the scenario", known)
    own = _read(PlacementScenario, {key: table[key] for key in ("interval",) if key in table}, "")
    clients = tuple(
        ClientGroup(**_read(ClientGroup, one, place)) for one, place in _tables(table, "clients")
    )
    groups = [one.name for one in clients]
    servers = tuple(_server(one, place, groups) for one, place in _tables(table, "servers"))
    functions = tuple(
        ScenarioFunction(**_read(ScenarioFunction, one, place))
        for one, place in _tables(table, "functions")
    )
    for kind, names in (
        ("servers", [one.name for one in servers]),
        ("clients", groups),
        ("functions", [one.name for one in functions]),
    ):
        if twice := [name for number, name in enumerate(names) if name in names[:number]]:
            raise InputError(
                f"two of `{kind}` have the name `{shown(twice[0])}`", remedy="rename one of them"
            )
    workload = table.get("workload", {})
    if not isinstance(workload, dict):
        raise _WrongKey("workload", "`workload` is no table", "write [workload]")
    return PlacementScenario(
        name=_NAME.parse("`name`", table.get("name", stem)),
        servers=servers,
        clients=clients,
        functions=functions,
        workload=PlacementWorkload(**_read(PlacementWorkload, workload, "workload")),
        **own,
    )


def _server(table: dict[str, Any], place: str, groups: Sequence[str]) -> ScenarioServer:
    own = dict(table)
    links = own.pop("links", {})
    link: dict[str, Any] = {key: own.pop(key) for key in ("rate", "latency") if key in own}
    if not isinstance(links, dict) or not all(isinstance(one, dict) for one in links.values()):
        raise _WrongKey(
            "links", f"{place}: `links` is no table", 'write links.GROUP = { rate = "1gbit" }'
        )
    default = _read(ServerLink, link, place)
    for group in links:
        if group not in groups:
            raise _unknown(group, f"{place}: `links`", groups, "group of clients")
    return ScenarioServer(
        **_read(ScenarioServer, own, place, ("rate", "latency", "links")),
        link=ServerLink(**default),
        links={
            group: ServerLink(**(default | _read(ServerLink, one, f"{place}: links.{group}")))
            for group, one in links.items()
        },
    )


def _tables(table: dict[str, Any], key: str) -> list[tuple[dict[str, Any], str]]:
    """The tables of an array, and how messages name them."""
    found = table.get(key)
    if not isinstance(found, list) or not found or not all(isinstance(one, dict) for one in found):
        raise _WrongKey(key, f"`{key}` is no array of tables", f"write [[{key}]] before each")
    return [(one, f"{key}[{number}]") for number, one in enumerate(found, 1)]


def _read(
    schema: type[Any], table: Mapping[str, Any], place: str, others: Sequence[str] = ()
) -> dict[str, Any]:
    """The values of a table by its schema. `others`: more keys that a message lists."""
    declared = {name: one for name, one, _ in declarations(schema)}
    found = {}
    prefix = f"{place}: " if place else ""
    for key, value in table.items():
        if key not in declared:
            raise _unknown(key, place or "the scenario", [*declared, *others])
        try:
            found[key] = declared[key].quantity.parse(f"{prefix}`{key}`", value)
        except InputError as error:
            raise _WrongKey(key, error.what, error.remedy or _REMEDY) from None
    if "name" in declared and "name" not in found:
        raise InputError(f"{place} has no `name`", remedy='write name = "..." below it')
    return found


def _unknown(key: str, place: str, known: Sequence[str], noun: str = "key") -> _WrongKey:
    near = difflib.get_close_matches(key, known, n=1)
    remedy = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(known)}"
    return _WrongKey(key, f"{place}: `{shown(key)}` is no known {noun}", remedy)


_Group = TypeVar("_Group", ScenarioServer, ClientGroup)


def _shared_out(flag: str, groups: tuple[_Group, ...], count: int | None) -> tuple[_Group, ...]:
    """Groups with so many members in all, in the shares that they have."""
    if count is None:
        return groups
    if count < len(groups):
        raise InputError(
            f"{flag}: {count} cannot be shared out among the {len(groups)} groups of the scenario",
            remedy=f"give {len(groups)} at least",
        )
    total = sum(one.count for one in groups)
    bounds, so_far = [0], 0
    for one in groups:
        so_far += one.count
        bounds.append(round(count * so_far / total))
    counts = [max(1, high - low) for low, high in pairwise(bounds)]
    counts[counts.index(max(counts))] += count - sum(counts)
    return tuple(replace(one, count=own) for one, own in zip(groups, counts, strict=True))

"""Servers of a grid whose workers an engine uses, all or fewer of them.

A server without `workers` starts a worker for each processor of its hosts. So gridbench opens a
grid once before it measures, to count workers, and to copy the program to new hosts. A run on fewer
cores uses the servers with fewer workers.
"""

from __future__ import annotations

import json
import socket
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

from gridbench.errors import InputError
from gridbench.read_config import parse_toml, read_text

SHARED = ("server", "gridrpc", "gridrpc+unix")
"""Launchers of servers that many clients share."""


@dataclass(frozen=True, slots=True)
class ServerHost:
    """A host of a server."""

    name: str
    """As in the configuration, and in profiles of calls."""
    server: str
    """Empty for workers of this machine without a server."""
    workers: int
    transport: str
    """Transport of tasks and results, in words."""
    launcher: str = ""
    """Its launcher; empty for workers of this machine."""
    url: str = ""
    """URL of its server, unless it is a table of a file."""

    def describe(self) -> str:
        """In one line."""
        workers = "1 worker" if self.workers == 1 else f"{self.workers:,} workers"
        return f"{self.name}: {workers}; {self.transport}"


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers whose workers an engine uses."""

    file: Path | None
    """A grid.toml."""
    names: tuple[str, ...]
    """Servers of the file, or URLs; none: all servers of the file."""
    hosts: tuple[ServerHost, ...]

    @property
    def workers(self) -> int:
        """Workers of all hosts."""
        return sum(host.workers for host in self.hosts)

    def arguments(self) -> dict[str, Any]:
        """Arguments of a grid."""
        chosen = {"servers": self.names} if self.names else {}
        return {"config": self.file, **chosen}

    def record(self) -> dict[str, Any]:
        """For the record of a run."""
        return {
            "file": None if self.file is None else str(self.file.resolve()),
            "servers": list(dict.fromkeys(host.server for host in self.hosts if host.server)),
            "hosts": [
                {
                    "name": host.name,
                    "server": host.server,
                    "workers": host.workers,
                    "transport": host.transport,
                }
                for host in self.hosts
            ],
        }


def names_in(words: Iterable[str]) -> tuple[str, ...]:
    """The servers in options: `NAME[,NAME]`, or a URL, which may contain commas."""
    found: list[str] = []
    for word in words:
        parts = [word] if ":" in word else [part.strip() for part in word.split(",")]
        if "" in parts:
            raise InputError(
                f"a server without a name: `{word}`", remedy="write --server NAME[,NAME]"
            )
        found += parts
    return tuple(found)


def ask(file: Path | None, names: tuple[str, ...], *, patience: float) -> Servers:
    """Start the workers of servers once, to count them.

    InputError if a name or the file is wrong, or a host does not start within `patience` seconds.
    """
    import gridrpc

    if file is None and (plain := [name for name in names if ":" not in name]):
        raise InputError(
            f"`{plain[0]}` is a server of a file, and no file is given",
            remedy="add --grid FILE, or give a URL such as ssh://node1",
        )
    known = _described(file, names)
    servers = Servers(file, names, ())
    try:
        with gridrpc.Grid(worker="native", **servers.arguments()) as grid:
            grid.wait_until_ready(patience)
            # Workers are numbered host by host; those of this machine have no host.
            own = socket.gethostname()
            counts = Counter(grid._native.host_of(n) or own for n in range(grid.workers))
    except (gridrpc.GridError, TimeoutError) as error:
        raise InputError(
            f"the servers cannot be used: {error}", remedy=_doctor(file, names)
        ) from error
    hosts = [replace(host, workers=counts[name]) for name, host in known.items() if name in counts]
    return replace(servers, hosts=tuple(hosts))


def _described(file: Path | None, names: tuple[str, ...]) -> dict[str, ServerHost]:
    """The hosts by name, without their workers. This machine comes last."""
    import gridrpc
    from gridrpc import _native

    try:
        chosen = _native.chosen_servers(list(names), file)
    except gridrpc.ConfigError as error:
        raise InputError(str(error), remedy=_remedy(file, names)) from error
    document = {} if file is None else read_document(file)
    if not chosen:
        raise InputError(
            "it has no servers", file=file, remedy="add a table [server.NAME] with `hosts`"
        )
    urls = [name for name in names if name not in document.get("server", {})]
    found: dict[str, ServerHost] = {}
    for server in chosen:
        url = ""
        if server.name in document.get("server", {}):
            table = {**document.get("defaults", {}), **document["server"][server.name]}
            launcher, encryption = table.get("launcher", "ssh"), table.get("encryption", "tls")
        else:
            url = urls.pop(0)
            parts = urlsplit(url)
            launcher = parts.scheme
            encryption = parse_qs(parts.query).get("encryption", ["tls"])[0]
        transport = _transport(launcher, encryption)
        for name in server.hosts:
            if name in found:
                raise InputError(
                    f"the host {name} is in two servers, and its tasks could not be told apart",
                    remedy="choose servers without common hosts",
                )
            found[name] = ServerHost(name, server.name, 0, transport, launcher, url)
    own = socket.gethostname()
    found.setdefault(own, ServerHost(own, "", 0, "Unix socket and shared memory"))
    return found


def _remedy(file: Path | None, names: tuple[str, ...]) -> str:
    if file is not None and not all(":" in name for name in names):
        try:
            return f"servers of {file} are {', '.join(read_document(file)['server'])}"
        except (InputError, KeyError, TypeError):
            pass
    return "docs/grid-toml.md has all keys"


def _transport(launcher: str, encryption: str) -> str:
    if launcher in SHARED:
        over = "Unix socket" if launcher == "gridrpc+unix" else "TLS 1.3 over TCP"
        return f"{over}; a server that many clients share"
    over = "TLS 1.3 over TCP" if encryption == "tls" else "TCP, not encrypted"
    return f"{over}; started by {launcher}"


def read_document(file: Path) -> dict[str, Any]:
    """Parse a file of servers. InputError if it cannot be read."""
    return parse_toml(file, read_text(file, "file of servers", "give a grid.toml"))


def _doctor(file: Path | None, names: tuple[str, ...]) -> str:
    urls = [f"'{name}'" for name in names if ":" in name]
    plain = [f"--server {name}" for name in names if ":" not in name]
    config = [] if file is None or (urls and not plain) else [f"--config {file}"]
    return f"`{' '.join(['gridrpc doctor', *config, *plain, *urls])}` reports what is wrong"


_BATCH = frozenset({"slurm", "gridengine", "htcondor", "pbs", "torque", "lsf", "flux"})
"""Launchers that request a number of equal nodes, without names."""


def spread(servers: Servers, cores: int) -> tuple[ServerHost, ...]:
    """The hosts for `cores` workers, and the workers of each.

    Hosts get workers in turn; a batch system gets the most nodes that divide them evenly.
    InputError if there are fewer workers, or if the number of a server cannot be changed.
    """
    if cores == servers.workers:
        return servers.hosts
    if cores > servers.workers:
        raise InputError(
            f"--cores asks for {cores:,} workers, and the servers have {servers.workers:,}",
            remedy="lower --cores, or raise `workers` of the servers",
        )
    if any(host.url and host.launcher not in _BATCH for host in servers.hosts):
        raise InputError(
            f"the workers of servers that are URLs cannot be lowered to {cores:,}",
            remedy="write the number into the URL, as in ssh://node1?workers=4, or name the servers"
            " in a file, for --grid FILE",
        )
    dealt = _dealt(servers.hosts, cores)
    found: list[ServerHost] = []
    for name in dict.fromkeys(host.server for host in dealt):
        own = [host for host in dealt if host.server == name]
        if own[0].launcher in _BATCH:
            nodes = [host for host in servers.hosts if host.server == name]
            own = _alike(nodes, sum(host.workers for host in own))
        found += own
    return tuple(found)


@contextmanager
def limited(servers: Servers, cores: int | None) -> Iterator[Servers]:
    """The servers with `cores` workers, as `spread` divides them; None: all.

    Fewer workers are in a temporary file, which exists in this context.
    """
    if cores is None or cores == servers.workers:
        yield servers
        return
    hosts = spread(servers, cores)
    urls = [_rewritten(own) for own in _by_server(hosts) if own[0].url]
    named = [own[0].server for own in _by_server(hosts) if own[0].server and not own[0].url]
    if servers.file is None:
        yield Servers(None, tuple(urls), hosts)
        return
    with tempfile.TemporaryDirectory(prefix="gridbench-servers-") as folder:
        file = Path(folder) / "grid.toml"
        file.write_text(_toml(_with_hosts(read_document(servers.file), hosts)), encoding="utf-8")
        yield Servers(file, (*named, *urls), hosts)


def _dealt(hosts: Sequence[ServerHost], cores: int) -> tuple[ServerHost, ...]:
    given = [0] * len(hosts)
    while cores:
        for number, host in enumerate(hosts):
            if cores and given[number] < host.workers:
                given[number] += 1
                cores -= 1
    both = zip(hosts, given, strict=True)
    return tuple(replace(host, workers=workers) for host, workers in both if workers)


def _alike(nodes: Sequence[ServerHost], workers: int) -> list[ServerHost]:
    """The most nodes that can have the same number of workers each."""
    most = min(node.workers for node in nodes)
    for count in range(len(nodes), 0, -1):
        if workers % count == 0 and workers // count <= most:
            return [replace(node, workers=workers // count) for node in nodes[:count]]
    raise InputError(
        f"{workers:,} workers cannot be divided evenly among at most {len(nodes):,} nodes of"
        f" {most:,} workers",
        remedy="choose a number that can, or servers with more workers on each node",
    )


def _by_server(hosts: Sequence[ServerHost]) -> list[list[ServerHost]]:
    names = dict.fromkeys(host.server for host in hosts)
    return [[host for host in hosts if host.server == name] for name in names]


def _rewritten(hosts: Sequence[ServerHost]) -> str:
    """The URL of the server of these nodes, with numbers of nodes and workers."""
    parts = urlsplit(hosts[0].url)
    stored = [pair for pair in parts.query.split("&") if pair]
    stored = [pair for pair in stored if pair.partition("=")[0] not in ("nodes", "workers")]
    numbers = [f"nodes={len(hosts)}", f"workers={hosts[0].workers}"]
    return urlunsplit(parts._replace(query="&".join([*stored, *numbers])))


def _with_hosts(document: dict[str, Any], hosts: Sequence[ServerHost]) -> dict[str, Any]:
    """A configuration with these hosts only."""
    grid = {key: value for key, value in document.get("grid", {}).items() if key != "workers"}
    tables: dict[str, Any] = {}
    for own in _by_server(hosts):
        server = own[0].server
        if not server:
            grid["workers"] = own[0].workers
        elif own[0].url:
            pass
        elif own[0].launcher in _BATCH:
            numbers = {"nodes": len(own), "workers": own[0].workers}
            tables[server] = {**document["server"][server], **numbers}
        else:
            names = [f"[{host.name}]" if ":" in host.name else host.name for host in own]
            counted = [f"{name}:{host.workers}" for name, host in zip(names, own, strict=True)]
            tables[server] = {**document["server"][server], "hosts": counted}
    return {"grid": grid, "defaults": document.get("defaults", {}), "server": tables}


def _toml(document: Mapping[str, Any]) -> str:
    """A configuration as TOML, with strings as in JSON."""
    lines = []
    tables = [("grid", document["grid"]), ("defaults", document["defaults"])]
    tables += [(f"server.{json.dumps(n)}", table) for n, table in document["server"].items()]
    for name, table in tables:
        lines += [f"[{name}]", *(f"{key} = {_value(value)}" for key, value in table.items())]
    return "\n".join([*lines, ""])


def _value(value: Any) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{json.dumps(key)} = {_value(one)}" for key, one in value.items())
        return f"{{ {inner} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value, ensure_ascii=False)

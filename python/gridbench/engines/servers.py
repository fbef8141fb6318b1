"""Servers of a grid that engines have their workers on, and what these servers give.

How many workers there are is for the servers to say: one without `workers` starts as many as its
hosts have processors. So before anything is measured they are asked, by a grid that is opened and
closed again. It also brings the program to hosts that have never seen it.
"""

from __future__ import annotations

import socket
import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from gridbench.errors import InputError
from gridbench.read_config import read_text

SHARED = ("server", "gridrpc", "gridrpc+unix")
"""Launchers of servers that many clients share."""


@dataclass(frozen=True, slots=True)
class Host:
    """A host of a server."""

    name: str
    """As the configuration has it, and as profiles of calls tell it."""
    server: str
    """Empty for workers of this machine that are no server's."""
    workers: int
    transport: str
    """What tasks and results go through, in words."""
    launcher: str = ""
    """What starts it; empty for workers of this machine."""
    url: str = ""
    """Of its server, if that is no table of a file."""

    def told(self) -> str:
        """In one line."""
        workers = "1 worker" if self.workers == 1 else f"{self.workers:,} workers"
        return f"{self.name}: {workers}; {self.transport}"


@dataclass(frozen=True, slots=True)
class Servers:
    """Where an engine has its workers."""

    file: Path | None
    """A grid.toml."""
    names: tuple[str, ...]
    """Servers of the file, or URLs; none: all servers of the file."""
    hosts: tuple[Host, ...]

    @property
    def workers(self) -> int:
        """How many all hosts have together."""
        return sum(host.workers for host in self.hosts)

    def arguments(self) -> dict[str, Any]:
        """How a grid is told."""
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
    """The servers that options name: `NAME[,NAME]`, or a URL, which may have commas of its own."""
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
    """Have servers start their workers once, and see what they give.

    InputError if a name or the file is wrong, or a host does not come within `patience` seconds.
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
            # Workers are numbered host by host; those of this machine are no host's.
            own = socket.gethostname()
            counts = Counter(grid._native.host_of(n) or own for n in range(grid.workers))
    except (gridrpc.GridError, TimeoutError) as error:
        raise InputError(
            f"the servers cannot be used: {error}", remedy=_doctor(file, names)
        ) from error
    hosts = [replace(host, workers=counts[name]) for name, host in known.items() if name in counts]
    return replace(servers, hosts=tuple(hosts))


def _described(file: Path | None, names: tuple[str, ...]) -> dict[str, Host]:
    """The hosts by name, their workers not yet known. This machine comes last."""
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
    found: dict[str, Host] = {}
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
            found[name] = Host(name, server.name, 0, transport, launcher, url)
    own = socket.gethostname()
    found.setdefault(own, Host(own, "", 0, "Unix socket and shared memory"))
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
    """A file of servers as it stands there. InputError if it cannot be read."""
    text = read_text(file, "file of servers", "give a grid.toml")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"is not TOML: {error}", file=file) from None


def _doctor(file: Path | None, names: tuple[str, ...]) -> str:
    urls = [f"'{name}'" for name in names if ":" in name]
    plain = [f"--server {name}" for name in names if ":" not in name]
    config = [] if file is None or (urls and not plain) else [f"--config {file}"]
    return f"`{' '.join(['gridrpc doctor', *config, *plain, *urls])}` tells what is wrong"

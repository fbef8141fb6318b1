"""Servers with fewer workers than they have: what a run on fewer cores needs."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from gridbench.engines.servers import Host, Servers, read_document
from gridbench.errors import InputError

_BATCH = frozenset({"slurm", "gridengine", "htcondor"})
"""Launchers that are told how many nodes to ask for, all alike, and not which."""


def spread(servers: Servers, cores: int) -> tuple[Host, ...]:
    """The hosts that have `cores` workers together, and how many each of them has.

    Hosts are dealt them in turn; a batch system is asked for as many nodes as divide them evenly.
    InputError if there are fewer, or where the servers cannot be told to have less.
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
    found: list[Host] = []
    for name in dict.fromkeys(host.server for host in dealt):
        own = [host for host in dealt if host.server == name]
        if own[0].launcher in _BATCH:
            nodes = [host for host in servers.hosts if host.server == name]
            own = _alike(nodes, sum(host.workers for host in own))
        found += own
    return tuple(found)


@contextmanager
def limited(servers: Servers, cores: int | None) -> Iterator[Servers]:
    """The servers with `cores` workers, as `spread` has them; None: all.

    They are then those of another file, which is there while this is active.
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


def _dealt(hosts: Sequence[Host], cores: int) -> tuple[Host, ...]:
    given = [0] * len(hosts)
    while cores:
        for number, host in enumerate(hosts):
            if cores and given[number] < host.workers:
                given[number] += 1
                cores -= 1
    both = zip(hosts, given, strict=True)
    return tuple(replace(host, workers=workers) for host, workers in both if workers)


def _alike(nodes: Sequence[Host], workers: int) -> list[Host]:
    """As many of the nodes as can have the same number of workers each."""
    most = min(node.workers for node in nodes)
    for count in range(len(nodes), 0, -1):
        if workers % count == 0 and workers // count <= most:
            return [replace(node, workers=workers // count) for node in nodes[:count]]
    raise InputError(
        f"{workers:,} workers cannot be divided evenly among at most {len(nodes):,} nodes of"
        f" {most:,} workers",
        remedy="choose a number that can, or servers with more workers on each node",
    )


def _by_server(hosts: Sequence[Host]) -> list[list[Host]]:
    names = dict.fromkeys(host.server for host in hosts)
    return [[host for host in hosts if host.server == name] for name in names]


def _rewritten(hosts: Sequence[Host]) -> str:
    """The URL of the server of these nodes, with their numbers."""
    parts = urlsplit(hosts[0].url)
    kept = [pair for pair in parts.query.split("&") if pair]
    kept = [pair for pair in kept if pair.partition("=")[0] not in ("nodes", "workers")]
    numbers = [f"nodes={len(hosts)}", f"workers={hosts[0].workers}"]
    return urlunsplit(parts._replace(query="&".join([*kept, *numbers])))


def _with_hosts(document: dict[str, Any], hosts: Sequence[Host]) -> dict[str, Any]:
    """A configuration with these hosts alone."""
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
    """A configuration as a file. Texts of JSON are texts of TOML."""
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

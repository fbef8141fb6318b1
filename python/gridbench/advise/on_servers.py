"""Advice for work on servers of a grid: what they have, and runs on them as runs of one place."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from gridbench.engines.limit_workers import spread
from gridbench.engines.servers import Servers, ask
from gridbench.errors import InputError
from gridbench.formats import counted
from gridbench.model.observation import Observation
from gridbench.report.source import place
from gridbench.terminal import say

_PATIENCE = 180.0
"""Seconds that servers may take to bring their workers."""


_LEAST = 2
"""Workers that tell what more of them cost."""


def servers_for(file: Path | None, names: Sequence[str], cores: int, console: Console) -> Servers:
    """The servers that options name, when their workers have come once. InputError if they cannot
    be used, have fewer workers than the work is to have cores, or cannot be told to have fewer."""
    say(console, "asking the servers for their workers")
    given = ask(file, tuple(names), patience=_PATIENCE)
    for host in given.hosts:
        say(console, host.told())
    if cores > given.workers:
        raise InputError(
            f"--cores asks for {cores:,}, and the servers have {counted(given.workers, 'worker')}",
            remedy="lower --cores, or raise `workers` of the servers",
        )
    if given.workers < _LEAST:
        raise InputError(
            "the servers have one worker, and advice compares runs on one with runs on several",
            remedy="raise `workers` of the servers",
        )
    try:
        spread(given, 1)  # runs on fewer cores tell what more of them cost
    except InputError as error:
        raise InputError(
            error.what,
            remedy="name the servers in a file, for --grid FILE",
        ) from None
    return given


def host_of(servers: Servers | None) -> str:
    """The host of a model's place: the client's, and where the workers are if that is elsewhere."""
    own = platform.node()
    return own if servers is None else f"{own}, workers {place({'grid': servers.record()})}"


def among(one: Observation, servers: Servers) -> Observation:
    """A run on as many of the servers' hosts as it had workers for, as one of all runs on these
    servers, which have one model. It deals workers to hosts in turn, as such runs do."""
    found = replace(one.place, host=host_of(servers), nodes=len(servers.hosts))
    return replace(one, place=found)

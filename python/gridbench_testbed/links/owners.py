"""Names that tell whose a network is, so that what a killed run has left is found and removed.

A network's namespaces are called gridbench-PID-START-NUMBER-PART: the process that made it, when
that process started (as process ids come again), which of its networks it is, and the part.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Iterator
from pathlib import Path

from gridbench_testbed.links import iproute

NAMESPACES = Path("/run/netns")
"""Where `ip netns` keeps names."""
CLIENT_PORT = "client"
"""The switch's end of the client's link."""

_LOCK = Path("/run/gridbench-links.lock")
_NAME = re.compile(r"(gridbench-([0-9]+)-([0-9]+)-[0-9]+)-(switch|node[0-9]+)")


def tag_of(number: int) -> str:
    """What the names of this process's network `number` begin with."""
    pid = os.getpid()
    return f"gridbench-{pid}-{_start_of(pid)}-{number}"


def switch_of(tag: str) -> str:
    """The namespace that the bridge is in."""
    return f"{tag}-switch"


def node_of(tag: str, number: int | str) -> str:
    """The namespace of node `number`, from 1."""
    return f"{tag}-node{number}"


def port_of(number: int | str) -> str:
    """The switch's end of the link of node `number`."""
    return f"port{number}"


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    """While active, no other process makes or removes a network."""
    with open(_LOCK, "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def remove(tag: str) -> None:
    """Remove what there is of a network, as far as it was made."""
    switch, node = switch_of(tag), node_of(tag, "")
    names = [name for name in _names() if name.startswith(f"{tag}-")]
    numbers = [name.removeprefix(node) for name in names if name.startswith(node)]
    if switch in names:
        # Workers that have not ended yet keep their namespaces; the links go at once.
        ports = [CLIENT_PORT, *map(port_of, numbers)]
        commands = [f"link delete dev {port}" for port in ports]
        iproute.run("ip", commands, namespace=switch, whatever_comes=True)
    if names:
        iproute.run("ip", [f"netns delete {name}" for name in names], whatever_comes=True)


def remove_leftovers() -> list[str]:
    """Remove all networks whose process is gone. Returns what their names begin with."""
    with one_at_a_time():
        left = leftovers()
        for tag in left:
            remove(tag)
    return left


def leftovers() -> list[str]:
    """What the names of networks begin with whose process is gone."""
    found = {}
    for name in _names():
        if match := _NAME.fullmatch(name):
            found[match[1]] = (int(match[2]), match[3])
    return sorted(tag for tag, (pid, start) in found.items() if _start_of(pid) != start)


def _names() -> list[str]:
    try:
        return sorted(os.listdir(NAMESPACES))
    except FileNotFoundError:
        return []


def _start_of(pid: int) -> str:
    """When a process started, in ticks since the machine did; empty if there is none, or it has
    ended."""
    try:
        # Behind the name, which may hold anything, come the 3rd field and what follows it.
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]

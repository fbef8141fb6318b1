"""Grids on the hosts of a rig, and what runs on these."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

import gridrpc
from gridbench_testbed.links.sshd import Rig, why_not
from grids import opened
from processes import HERE, LONG, until

#: As long a host may be silent, seconds: short, so that tests need not wait.
HEARTBEAT = 1.5


@contextmanager
def rig_of(nodes: int, delay: float = 0.0) -> Iterator[Rig]:
    """A rig, where there can be one. `delay`: seconds to each node, one way."""
    if why := why_not():
        pytest.skip(why)
    with Rig(nodes, delay=delay) as rig:
        yield rig


def server(rig: Rig, *hosts: str, name: str = "cluster", **keys: Any) -> str:
    """A table of a configuration file: these hosts, whose workers find the modules of the tests."""
    settings = {
        "hosts": list(hosts),
        "workers": 2,
        "command": f"ssh -F {rig.config}",
        "python": sys.executable,
        "heartbeat": HEARTBEAT,
        # What the tests count is what they send.
        "compression": "none",
        **keys,
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    path = f"environment = {{ PYTHONPATH = {json.dumps(str(HERE))} }}"
    return "\n".join([f"[server.{name}]", *lines, path, ""])


def configured(folder: Path, *tables: str) -> Path:
    """A configuration file of these tables."""
    file = folder / "grid.toml"
    file.write_text("\n".join(tables))
    return file


@contextmanager
def on_hosts(folder: Path, *tables: str, **settings: Any) -> Iterator[gridrpc.Grid]:
    """A grid whose workers have all answered."""
    with opened(config=configured(folder, *tables), **settings) as grid:
        grid.wait_until_ready(LONG)
        yield grid


def _command(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
    except OSError:
        return []


def agents(rig: Rig, node: int) -> list[int]:
    """The agents of a node."""
    found = [(pid, _command(pid)) for pid in rig.pids(node)]
    return [pid for pid, words in found if words[1:2] == ["agent"]]


def spawners(rig: Rig, node: int) -> list[int]:
    """What starts workers on a node."""
    return [one.pid for pid in agents(rig, node) for one in psutil.Process(pid).children()]


def ours(rig: Rig) -> dict[int, str]:
    """What there is on all nodes apart from sshd and its sessions, which end in their own time."""
    pids = [pid for node in rig.nodes for pid in rig.pids(node)]
    found = {pid: " ".join(_command(pid)) for pid in pids}
    # One without a command has ended, and waits for whoever has started it.
    return {pid: text for pid, text in found.items() if text.strip() and "sshd" not in text}


def nothing_is_left(rig: Rig, seconds: float = LONG) -> bool:
    """Whether nothing of ours is on any node, in the end; what there is goes to standard error."""
    if until(lambda: not ours(rig), seconds):
        return True
    print(ours(rig), file=sys.stderr)
    return False


def signal_all(pids: list[int], number: int) -> None:
    """Sends a signal to processes of a node."""
    assert pids
    for pid in pids:
        os.kill(pid, number)

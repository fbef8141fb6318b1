"""What the tests of links need, and whether they can run here at all."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from gridbench.engines.gridrpc_engines import servers_in
from gridbench.native import module
from gridbench_testbed.links.network import Network
from gridrpc import Grid
from running import DEADLINE

NAMESPACES = Path("/run/netns")


@functools.cache
def why_not() -> str:
    """Why there can be no links here; empty if there can. Asks the system itself, not gridbench."""
    if os.geteuid() != 0:
        return "links need root"
    probe = f"linktest-{os.getpid()}"
    try:
        for command in (
            f"ip netns add {probe}",
            f"ip -n {probe} link add name one type veth peer name other",
            f"ip -n {probe} link add name bridge type bridge",
            f"tc -n {probe} qdisc add dev one root tbf rate 1mbit burst 3000 limit 40000",
        ):
            ran = subprocess.run(command.split(), capture_output=True, text=True, check=False)
            if ran.returncode != 0:
                return f"`{command}`: {ran.stderr.strip()}"
        return ""
    finally:
        subprocess.run(["ip", "netns", "delete", probe], capture_output=True, check=False)


def skip_without_links() -> None:
    """Skip the tests of this module, with the reason, where there can be no links."""
    if why := why_not():
        pytest.skip(why, allow_module_level=True)


def ask(program: str, *arguments: str, namespace: str = "") -> list[dict[str, Any]]:
    """What `ip -json` or `tc -json` answers."""
    inside = ["-n", namespace] if namespace else []
    command = [program, *inside, "-json", *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(ran.stdout or "[]")  # type: ignore[no-any-return]


def in_namespace(path: Path) -> int:
    """What names a network namespace, or that of a process (its file in /proc)."""
    return path.stat().st_ino


def grid_behind(network: Network, workers: int, *, worker: Any = "python", **keys: Any) -> Grid:
    """A grid whose workers live in the nodes. `keys`: of the servers."""
    keys = {"heartbeat": 2, **keys}
    servers = servers_in(network.namespaces, workers, **keys)
    return Grid(servers=servers, worker=worker, modules=[module()])


@contextlib.contextmanager
def ready_behind(network: Network, workers: int, **settings: Any) -> Iterator[Grid]:
    """The same, when all workers have answered."""
    with grid_behind(network, workers, **settings) as grid:
        grid.wait_until_ready(DEADLINE)
        yield grid


def workers_of(process: psutil.Process) -> list[int]:
    """Process ids of the workers that descend from it."""
    found = []
    for child in process.children(recursive=True):
        with contextlib.suppress(OSError, psutil.NoSuchProcess):  # it has just ended
            name = Path(f"/proc/{child.pid}/comm").read_text().strip()
            if name.startswith("gridrpc-w") and child.status() != psutil.STATUS_ZOMBIE:
                found.append(child.pid)
    return found


def workers_in(node: Path) -> list[int]:
    """Process ids of this process's workers in a node."""
    inside = in_namespace(node)
    found = []
    for pid in workers_of(psutil.Process()):
        with contextlib.suppress(OSError):  # it has just ended
            if in_namespace(Path(f"/proc/{pid}/ns/net")) == inside:
                found.append(pid)
    return found


def moved(interface: str, *, namespace: str = "") -> tuple[int, int]:
    """Bytes that a device has received and sent."""
    (link,) = ask("ip", "-s", "link", "show", "dev", interface, namespace=namespace)
    return link["stats64"]["rx"]["bytes"], link["stats64"]["tx"]["bytes"]


def left_of(pid: int) -> list[str]:
    """Namespaces and devices of this machine that a process's networks have left."""
    names = os.listdir(NAMESPACES) if NAMESPACES.exists() else []
    devices = [link["ifname"] for link in ask("ip", "link")]
    return [name for name in names if name.startswith(f"gridbench-{pid}-")] + [
        name for name in devices if name.startswith(f"gb{pid}n")
    ]

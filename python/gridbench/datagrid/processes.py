"""Member and client processes: the controller of each host, and all hosts together."""

from __future__ import annotations

import contextlib
import os
import platform
import select
import shutil
import socket
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import psutil

import gridrpc
from gridbench.datagrid.engine import CLIENT, MEMBER, find_engine
from gridbench.errors import InputError
from gridbench.hosts.host_group import HostGroup
from gridbench.process.child import Child, Ended
from gridbench.process.children import descendants_of
from gridbench.process.children import end as end_processes
from gridbench_testbed.daemons import free_ports
from gridrpc._native import processors

# ---- On each host

Role = Literal["member", "client"]
_MAINS = {"member": MEMBER, "client": CLIENT}
_TAIL = 25
"""Lines of a process's log that are shown."""
_TO_END = 2.0
"""Seconds that processes have to end by themselves, when their input has ended."""
_TO_TAKE_IN = 0.2
"""Seconds that a process may need to take in those below it that were killed."""
_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class DataGridHost:
    """A host."""

    host: str
    """Its own name of itself."""
    cores: int
    memory: int
    """Bytes available."""
    address: str
    """Of an interface that other hosts reach; the loopback device's if it has no other."""
    folder: str
    """For files of members and clients."""


@dataclass(frozen=True, slots=True)
class ProcessStart:
    """A process that is to be started."""

    name: str
    engine: str
    """Its name, or the path of its file."""
    role: Role
    memory: int
    """Bytes of heap."""
    settings: dict[str, Any]
    """Its first request."""


@dataclass(frozen=True, slots=True)
class Said:
    """A line of a process, or its end."""

    name: str
    message: dict[str, Any] | None
    """None: it has ended."""
    ended: str = ""
    """In words."""
    log: tuple[str, ...] = ()
    """The last lines of what it printed."""


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """Bytes of a process and all that it has started."""

    resident: int
    most: int
    """The most that was resident at a time."""


class HostController:
    """Members and clients by their names, until it is closed."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="gridbench-data-"))
        self._children: dict[str, Child] = {}

    def facts(self) -> DataGridHost:
        """About the host."""
        return DataGridHost(
            platform.node(),
            processors(),
            psutil.virtual_memory().available,
            _address(),
            str(self._folder),
        )

    def clock(self) -> int:
        """The time, as members and clients see it."""
        return time.monotonic_ns()

    def free_ports(self, address: str, count: int) -> list[int]:
        """Ports of an interface that nobody listens at."""
        return free_ports(count, address)

    def start(self, wanted: ProcessStart) -> str:
        """Start a process; why that cannot be, or nothing."""
        name = wanted.name
        folder = self._folder / name
        try:
            folder.mkdir()
            command = find_engine(wanted.engine).command(_MAINS[wanted.role], wanted.memory)
            # What products write to their current folder stays here.
            child = Child.of_program(command, dict(os.environ), folder=folder)
        except InputError as error:
            return str(error)
        except OSError as error:
            return f"`{error.filename}`: {error.strerror}"
        self._children[name] = child
        child.send(wanted.settings)
        return ""

    def send(self, name: str, message: dict[str, Any]) -> None:
        """Send a request to a process; `poll` reports its end."""
        if name in self._children:
            self._children[name].send(message)

    def poll(self, seconds: float) -> list[Said]:
        """What processes have said by now; if it is nothing, what they say within `seconds`."""
        owners = {
            descriptor: name
            for name, child in self._children.items()
            for descriptor in child.descriptors
        }
        if not (found := self._said(set(self._children))):
            ready, _, _ = select.select(owners, [], [], seconds)
            found = self._said({owners[descriptor] for descriptor in ready})
        return found

    def log(self, name: str) -> list[str]:
        """The last lines of what a process has printed."""
        return self._children[name].last_lines(_TAIL) if name in self._children else []

    def memory(self, name: str, process: str = "") -> ProcessMemory:
        """What a member or client uses. `process`: only what those of this name use, which it has
        started."""
        pids = self._tree(name)
        if process:
            pids = [pid for pid in pids if _status(pid).get("Name") == process]
        reported = [_status(pid) for pid in pids]
        return ProcessMemory(sum(_bytes(one, "VmRSS") for one in reported),
                      sum(_bytes(one, "VmHWM") for one in reported))  # fmt: skip

    def kill(self, name: str) -> int:
        """Kill a process, with all that it has started, and without a word; when it was."""
        at = time.monotonic_ns()
        if name in self._children:
            self._kill([name])
        return at

    def end(self, names: list[str]) -> None:
        """End processes: they do so when their input ends, or are killed."""
        children = [self._children.pop(name) for name in names if name in self._children]
        pids = [child.process.pid for child in children]
        below = {pid: descendants_of(pid) for pid in pids}
        for child in children:
            child.close()
        end_processes(pids, _TO_END)
        for pid in pids:
            end_processes(below[pid], 0.0)
        for child in children:
            child.process.wait()
        for name in names:
            shutil.rmtree(self._folder / name, ignore_errors=True)

    def close(self) -> None:
        """End all, and remove the files."""
        self.end(list(self._children))
        shutil.rmtree(self._folder, ignore_errors=True)

    def _said(self, names: set[str]) -> list[Said]:
        found = []
        for name in sorted(names):
            child = self._children[name]
            with contextlib.suppress(TimeoutError):
                try:
                    while True:
                        found.append(Said(name, child.receive(0.0)))
                except Ended:
                    log = tuple(child.last_lines(_TAIL))
                    found.append(Said(name, None, child.ending(), log))
                    self.end([name])
                except ValueError as error:
                    log = tuple(child.last_lines(_TAIL))
                    found.append(Said(name, None, f"said what is no JSON: {error}", log))
                    self.end([name])
        return found

    def _tree(self, name: str) -> list[int]:
        if name not in self._children:
            return []
        pid = self._children[name].process.pid
        return [pid, *descendants_of(pid)]

    def _kill(self, names: list[str]) -> None:
        for name in names:
            child = self._children[name]
            below = descendants_of(child.process.pid)
            # It is to take in those that it has started: what they used counts as ours by that.
            end_processes(below, 0.0)
            _await_gone(below, _TO_TAKE_IN)
            child.process.kill()
            child.process.wait()


def _await_gone(pids: Iterable[int], patience: float) -> None:
    until = time.monotonic() + patience
    while any(psutil.pid_exists(pid) for pid in pids) and time.monotonic() < until:
        time.sleep(0.001)


def _address() -> str:
    """The first of the host's addresses that is not the loopback device's, of those that are up."""
    states = psutil.net_if_stats()
    for name, addresses in psutil.net_if_addrs().items():
        up = name in states and states[name].isup
        for one in addresses:
            if up and one.family == socket.AF_INET and not one.address.startswith("127."):
                return str(one.address)
    return _LOOPBACK


def _status(pid: int) -> dict[str, str]:
    """/proc/PID/status; nothing if it has gone."""
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    return {}


def _bytes(status: dict[str, str], name: str) -> int:
    return int(status[name].split()[0]) << 10 if name in status else 0


# ---- On all hosts, from here

_LOOK = 0.1
"""Seconds between looks at whether the user wants an end."""
Progress = Callable[[str, Mapping[str, Any]], float | None]
"""Of the name of a process, and what it says on the way to its answer; until when there has to be
one now, or None: as before."""


class ProcessError(Exception):
    """A member or client that cannot do what it is asked, or has ended."""

    def __init__(
        self,
        name: str,
        what: str,
        log: tuple[str, ...] = (),
        *,
        port: bool = False,
        goes_on: bool = False,
    ) -> None:
        super().__init__(name, what)
        self.name = name
        self.what = what
        self.log = log
        """The last lines of what it printed."""
        self.port = port
        """Whether a port that it needs is taken."""
        self.goes_on = goes_on
        """Whether it is there, and can be asked again."""

    def __str__(self) -> str:
        lines = [f"{self.name} {self.what}", *(f"  | {line}" for line in self.log)]
        return "\n".join(lines)


class Processes:
    """All of them, by their names."""

    def __init__(self, place: HostGroup, check: Callable[[], None]) -> None:
        """`check` is called ten times a second while something is waited for, and may raise."""
        self._controllers = {member.host.name: member.remote for member in place.members}
        self.facts: dict[str, DataGridHost] = {
            name: self._request(name, controller.facts)
            for name, controller in self._controllers.items()
        }
        """Of the hosts."""
        self._check = check
        self._host_of: dict[str, str] = {}
        self._inbox: dict[str, deque[Said]] = {}
        self._away = len(place.members) > 1 or not place.members[0].near

    @property
    def away(self) -> bool:
        """Whether they are on hosts, and not just on this machine."""
        return self._away

    @property
    def hosts(self) -> list[str]:
        """The names of the hosts."""
        return list(self._controllers)

    def address(self, host: str) -> str:
        """The address that its processes bind to."""
        return self.facts[host].address if self._away else "127.0.0.1"

    def free_ports(self, host: str, count: int) -> list[int]:
        """Ports of that address."""
        controller = self._controllers[host]
        found: list[int] = self._request(host, controller.free_ports, self.address(host), count)
        return found

    def start(self, wanted: ProcessStart, host: str) -> None:
        """Start a process. ProcessError if that cannot be."""
        self._host_of[wanted.name] = host
        self._inbox[wanted.name] = deque()
        why = self._request(host, self._controllers[host].start, wanted)
        if why:
            raise ProcessError(wanted.name, f"cannot be started: {why}")

    def send(self, name: str, message: dict[str, Any]) -> None:
        """Say something to a process."""
        self._ask(name, "send", message)

    def answers(
        self, names: Iterable[str], key: str, until: float, progress: Progress | None = None
    ) -> dict[str, Any]:
        """What each of these processes says under `key`; other messages go to `progress`.

        ProcessError if one fails or ends, and TimeoutError if one does not answer by `until` (of
        the monotonic clock), or by what `progress` makes of that.
        """
        found: dict[str, Any] = {}
        waiting = list(names)
        while waiting:
            for name in list(waiting):
                inbox = self._inbox[name]
                while inbox and name in waiting:
                    message = self._message(inbox.popleft())
                    if key in message:
                        found[name] = message[key]
                        waiting.remove(name)
                    elif progress is not None:
                        until = progress(name, message) or until
            if waiting:
                if time.monotonic() > until:
                    raise TimeoutError(", ".join(waiting))
                self._listen({self._host_of[name] for name in waiting})
        return found

    def memory(self, name: str, process: str = "") -> ProcessMemory:
        """What it uses; `process`: only those processes below it that are called so."""
        found: ProcessMemory = self._ask(name, "memory", process)
        return found

    def log(self, name: str) -> tuple[str, ...]:
        """The last lines of what it has printed."""
        lines: list[str] = self._ask(name, "log")
        return tuple(lines)

    def kill(self, name: str) -> int:
        """Kill it with all that it has started; when, in nanoseconds of its host's clock."""
        at: int = self._ask(name, "kill")
        return at

    def end(self, names: Iterable[str]) -> None:
        """End processes; those that are not there are none."""
        by_host: dict[str, list[str]] = {}
        for name in names:
            if name in self._host_of:
                by_host.setdefault(self._host_of.pop(name), []).append(name)
                del self._inbox[name]
        for host, ours in by_host.items():
            # On a host that is lost they have ended.
            with contextlib.suppress(ProcessError):
                self._request(host, self._controllers[host].end, ours)

    def clock(self, host: str) -> Callable[[], int]:
        """What tells the time of a host."""
        controller = self._controllers[host]
        return lambda: int(self._request(host, controller.clock))

    def host_of(self, name: str) -> str:
        """Where it is."""
        return self._host_of[name]

    def _message(self, said: Said) -> Mapping[str, Any]:
        if said.message is None:
            raise ProcessError(said.name, said.ended, said.log)
        if "failed" in said.message:
            failed = said.message["failed"]
            log = self.log(said.name)
            what = f"fails: {failed['what']}"
            raise ProcessError(said.name, what, log, port=failed["port"], goes_on=True)
        return said.message

    def _listen(self, hosts: set[str]) -> None:
        for host in hosts:
            self._check()
            for said in self._request(host, self._controllers[host].poll, _LOOK / len(hosts)):
                if said.name in self._inbox:
                    self._inbox[said.name].append(said)

    def _ask(self, name: str, method: str, *arguments: object) -> Any:
        host = self._host_of[name]
        return self._request(host, getattr(self._controllers[host], method), name, *arguments)

    def _request(self, host: str, method: Callable[..., Any], *arguments: object) -> Any:
        try:
            return method(*arguments)
        except gridrpc.GridError as error:
            raise ProcessError(f"the host {host}", f"has been lost: {error}") from error

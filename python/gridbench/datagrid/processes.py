"""Members and clients on all hosts: saying something to them, and waiting for their answers."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import gridrpc
from gridbench.datagrid.host_controller import KeeperFacts, Memory, Said, Start
from gridbench.hosts.place import Place

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

    def __init__(self, place: Place, check: Callable[[], None]) -> None:
        """`check` is called ten times a second while something is waited for, and may raise."""
        self._keepers = {member.host.name: member.remote for member in place.members}
        self.facts: dict[str, KeeperFacts] = {
            name: self._asked(name, keeper.facts) for name, keeper in self._keepers.items()
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
        return list(self._keepers)

    def address(self, host: str) -> str:
        """The address that its processes bind to."""
        return self.facts[host].address if self._away else "127.0.0.1"

    def free_ports(self, host: str, count: int) -> list[int]:
        """Ports of that address."""
        keeper = self._keepers[host]
        found: list[int] = self._asked(host, keeper.free_ports, self.address(host), count)
        return found

    def start(self, wanted: Start, host: str) -> None:
        """Start a process. ProcessError if that cannot be."""
        self._host_of[wanted.name] = host
        self._inbox[wanted.name] = deque()
        why = self._asked(host, self._keepers[host].start, wanted)
        if why:
            raise ProcessError(wanted.name, f"cannot be started: {why}")

    def send(self, name: str, message: dict[str, Any]) -> None:
        """Say something to a process."""
        self._ask(name, "send", message)

    def answers(
        self, names: Iterable[str], key: str, until: float, progress: Progress | None = None
    ) -> dict[str, Any]:
        """What each of these processes says under `key`; other messages are told to `progress`.

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

    def memory(self, name: str, process: str = "") -> Memory:
        """What it uses; `process`: only those processes below it that are called so."""
        found: Memory = self._ask(name, "memory", process)
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
                self._asked(host, self._keepers[host].end, ours)

    def clock(self, host: str) -> Callable[[], int]:
        """What tells the time of a host."""
        keeper = self._keepers[host]
        return lambda: int(self._asked(host, keeper.clock))

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
            for said in self._asked(host, self._keepers[host].poll, _LOOK / len(hosts)):
                if said.name in self._inbox:
                    self._inbox[said.name].append(said)

    def _ask(self, name: str, method: str, *arguments: object) -> Any:
        host = self._host_of[name]
        return self._asked(host, getattr(self._keepers[host], method), name, *arguments)

    def _asked(self, host: str, method: Callable[..., Any], *arguments: object) -> Any:
        try:
            return method(*arguments)
        except gridrpc.GridError as error:
            raise ProcessError(f"the host {host}", f"has been lost: {error}") from error

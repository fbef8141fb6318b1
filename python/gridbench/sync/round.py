"""One round: prepare all tasks, agree on an instant, let go, gather."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gridrpc
from gridbench.hosts.clock import Clock, ask, between
from gridbench.hosts.place import Member
from gridbench.sync.messages import Done, Order, Prepared, TaskOutcome
from gridbench.sync.record import HostUse, Start, Task

_LOOK = 0.1
"""Seconds between two looks whether the user wants an end."""
_LEAST_LEAD = 0.02
"""Seconds from the decision on the instant to it, on this machine."""
_LEAST_LEAD_AWAY = 0.05
_MOST_LEAD = 5.0
_TRIPS = 10
"""Times a message there and back that the lead allows for."""
_SLACK = 30.0
"""Seconds beyond the limit of a round after which a host that says nothing is given up."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A task with its place."""

    order: Order
    member: Member
    rank: int


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of a round."""

    tasks: tuple[Task, ...]
    hosts: tuple[HostUse, ...]
    at: float
    """The instant, seconds since the epoch."""
    prepared_in: float
    printed: Mapping[int, tuple[bytes, bytes]]
    """Output and errors of workers that printed something."""
    clocks: Mapping[str, Clock]
    """What the times of each host's tasks have been corrected by."""


class Rounds:
    """Runs rounds; keeps how early orders have to be given."""

    def __init__(self, check: Callable[[], None]) -> None:
        """`check`: raises Stopped if the user wants an end."""
        self._check = check
        self._lead = 0.0

    def run(self, planned: Sequence[Planned], start: Start, timeout: float) -> Ran:
        """Run a round. Raises Stopped."""
        began = time.monotonic()
        crews = _by_member(planned)
        prepared = self._on_all(
            crews, lambda on, ours: on.remote.prepare.submit([p.order for p in ours], start),
            timeout + _SLACK,
        )  # fmt: skip
        prepared_in = time.monotonic() - began
        waiting = {
            host: ours
            for host, ours in crews.items()
            if isinstance(prepared[host], list) and any(not one.why_not for one in prepared[host])
        }
        before = self._clocks(waiting)
        lead = self._needed(before.values())
        at = time.monotonic_ns() + round(lead * 1e9)
        instant = time.time() + lead
        done = self._on_all(
            waiting,
            lambda on, _: on.remote.run.submit(at + before[on.host.name].offset, timeout),
            timeout + lead + _SLACK,
        )  # fmt: skip
        after = self._clocks({h: p for h, p in waiting.items() if isinstance(done[h], Done)})
        clocks = {host: between(one, after.get(host, one)) for host, one in before.items()}
        self._learn(done)
        found = [
            _task(one, prepared[_host(one)], done.get(_host(one)), at, clocks.get(_host(one)))
            for one in planned
        ]
        for host, ours in crews.items():
            if isinstance(prepared[host], BaseException) or isinstance(
                done.get(host), BaseException
            ):
                ours[0].member.remote = None
        outcomes = [o for one in done.values() if isinstance(one, Done) for o in one.outcomes]
        return Ran(
            tasks=tuple(found),
            hosts=tuple(
                replace(one.use, host=host)
                for host, one in done.items()
                if isinstance(one, Done) and one.use is not None
            ),
            at=instant,
            prepared_in=prepared_in,
            printed={o.worker: (o.output, o.errors) for o in outcomes if o.output or o.errors},
            clocks=clocks,
        )

    def _on_all(
        self,
        crews: Mapping[str, Sequence[Planned]],
        submit: Callable[[Member, Sequence[Planned]], gridrpc.Call[Any]],
        seconds: float,
    ) -> dict[str, Any]:
        """What the call gives on each host; or the error that it ended in."""
        calls: dict[str, Any] = {}
        for host, ours in crews.items():
            if ours[0].member.remote is None:
                calls[host] = gridrpc.GridError("it was lost in an earlier round, and is not back")
                continue
            try:
                calls[host] = submit(ours[0].member, ours)
            except gridrpc.GridError as error:
                calls[host] = error
        until = time.monotonic() + seconds
        return {
            host: call if isinstance(call, BaseException) else self._result(call, until)
            for host, call in calls.items()
        }

    def _result(self, call: gridrpc.Call[Any], until: float) -> Any:
        while True:
            self._check()
            try:
                return call.result(_LOOK)
            except TimeoutError as error:
                if time.monotonic() > until:
                    return error
            except Exception as error:  # its own, or what the crew raised there
                return error

    def _clocks(self, crews: Mapping[str, Sequence[Planned]]) -> dict[str, Clock]:
        members = {host: ours[0].member for host, ours in crews.items()}
        far = {host: member for host, member in members.items() if not member.near}
        clocks = dict.fromkeys(members, Clock())
        for host, member in far.items():
            try:
                clocks[host] = ask(member.remote.clock)
            except gridrpc.GridError:  # what is asked of it next tells why
                continue
        return clocks

    def _needed(self, clocks: Iterable[Clock]) -> float:
        """Seconds that orders are given before the instant."""
        trips = [one.trip / 1e9 for one in clocks]
        away = any(trips)
        needed = max(trips, default=0.0) * _TRIPS + 1e-3 * len(trips)
        return max(self._lead, needed, _LEAST_LEAD_AWAY if away else _LEAST_LEAD)

    def _learn(self, done: Mapping[str, Any]) -> None:
        """Orders that came too late come earlier from now on."""
        late = max((one.late for one in done.values() if isinstance(one, Done)), default=0) / 1e9
        if late > 0:
            self._lead = min(_MOST_LEAD, 2 * max(self._lead, _LEAST_LEAD) + 2 * late)


def _by_member(planned: Sequence[Planned]) -> dict[str, list[Planned]]:
    found: dict[str, list[Planned]] = {}
    for one in planned:
        found.setdefault(_host(one), []).append(one)
    return found


def _host(planned: Planned) -> str:
    return planned.member.host.name


def _task(planned: Planned, prepared: Any, done: Any, at: int, clock: Clock | None) -> Task:
    """The record of a task."""
    worker, host = planned.order.worker, _host(planned)
    lost = _lost(worker, prepared, done)
    if lost:
        return Task(worker=worker, host=host, rank=planned.rank, status="lost", why=lost)
    one: TaskOutcome = next(o for o in done.outcomes if o.worker == worker)
    clock = clock or Clock()

    def here(time_there: int | None) -> float | None:
        return None if time_there is None else (time_there - clock.offset - at) / 1e9

    return Task(
        worker=worker,
        host=host,
        rank=planned.rank,
        status=one.status,
        start=one.start,
        began=here(one.began),
        ended=here(one.ended),
        clock_error=clock.error / 1e9,
        late=done.late / 1e9,
        exit=one.exit,
        why=one.why,
        user=one.user,
        system=one.system,
        memory=one.memory,
        phases=one.phases,
    )


def _lost(worker: int, prepared: Any, done: Any) -> str:
    """Why a task could not begin, or was lost with its host; empty: neither."""
    if isinstance(prepared, BaseException):
        return f"its host cannot prepare it: {prepared}"
    mine: Prepared = next(one for one in prepared if one.worker == worker)
    if mine.why_not:
        return f"it could not be started: {mine.why_not}"
    if isinstance(done, BaseException):
        return f"its host was lost: {done}"
    return ""

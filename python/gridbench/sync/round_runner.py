"""Run one round: hold all tasks, agree on an instant, release, and collect the results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gridrpc
from gridbench.hosts.clock import Clock, ask, between
from gridbench.hosts.place import Member
from gridbench.sync.record import HoldPoint, HostUse, TaskRun
from gridbench.sync.task_group import HeldReply, HostOutcome, TaskOrder, TaskOutcome

_LOOK = 0.1
"""Seconds between two checks for Ctrl-C."""
_LEAST_LEAD = 0.02
"""Least seconds from choosing the instant to the instant, with hosts on this machine only."""
_LEAST_LEAD_AWAY = 0.05
_MOST_LEAD = 5.0
_TRIPS = 10
"""Number of round trips that fit into the lead."""
_SLACK = 30.0
"""Seconds after the time limit of a round until a silent host counts as lost."""


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """A task and the host that it runs on."""

    order: TaskOrder
    member: Member
    rank: int


@dataclass(frozen=True, slots=True)
class RoundOutcome:
    """Results of a round."""

    tasks: tuple[TaskRun, ...]
    hosts: tuple[HostUse, ...]
    at: float
    """The instant, in seconds since the epoch."""
    prepared_in: float
    printed: Mapping[int, tuple[bytes, bytes]]
    """Standard output and standard error of the workers that printed something."""
    clocks: Mapping[str, Clock]
    """The clocks by which the times of each host's tasks were corrected."""


class RoundRunner:
    """Runs rounds, and learns how early orders must be sent."""

    def __init__(self, check: Callable[[], None]) -> None:
        """`check`: raises Stopped after Ctrl-C."""
        self._check = check
        self._lead = 0.0

    def run(self, planned: Sequence[PlannedTask], start: HoldPoint, timeout: float) -> RoundOutcome:
        """Run a round. Raises Stopped."""
        began = time.monotonic()
        groups = _by_host(planned)
        prepared = self._on_all(
            groups, lambda on, ours: on.remote.prepare.submit([p.order for p in ours], start),
            timeout + _SLACK,
        )  # fmt: skip
        prepared_in = time.monotonic() - began
        waiting = {
            host: ours
            for host, ours in groups.items()
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
        after = self._clocks({h: p for h, p in waiting.items() if isinstance(done[h], HostOutcome)})
        clocks = {host: between(one, after.get(host, one)) for host, one in before.items()}
        self._learn(done)
        found = [
            _task(one, prepared[_host(one)], done.get(_host(one)), at, clocks.get(_host(one)))
            for one in planned
        ]
        for host, ours in groups.items():
            if isinstance(prepared[host], BaseException) or isinstance(
                done.get(host), BaseException
            ):
                ours[0].member.remote = None
        outcomes = [
            o for one in done.values() if isinstance(one, HostOutcome) for o in one.outcomes
        ]
        return RoundOutcome(
            tasks=tuple(found),
            hosts=tuple(
                replace(one.use, host=host)
                for host, one in done.items()
                if isinstance(one, HostOutcome) and one.use is not None
            ),
            at=instant,
            prepared_in=prepared_in,
            printed={o.worker: (o.output, o.errors) for o in outcomes if o.output or o.errors},
            clocks=clocks,
        )

    def _on_all(
        self,
        groups: Mapping[str, Sequence[PlannedTask]],
        submit: Callable[[Member, Sequence[PlannedTask]], gridrpc.Call[Any]],
        seconds: float,
    ) -> dict[str, Any]:
        """The result of a call on each host, or its error."""
        calls: dict[str, Any] = {}
        for host, ours in groups.items():
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
            except Exception as error:  # of the grid, or raised by the task group
                return error

    def _clocks(self, groups: Mapping[str, Sequence[PlannedTask]]) -> dict[str, Clock]:
        members = {host: ours[0].member for host, ours in groups.items()}
        far = {host: member for host, member in members.items() if not member.near}
        clocks = dict.fromkeys(members, Clock())
        for host, member in far.items():
            try:
                clocks[host] = ask(member.remote.clock)
            except gridrpc.GridError:  # the next call gives the reason
                continue
        return clocks

    def _needed(self, clocks: Iterable[Clock]) -> float:
        """Seconds from sending orders to the instant."""
        trips = [one.trip / 1e9 for one in clocks]
        away = any(trips)
        needed = max(trips, default=0.0) * _TRIPS + 1e-3 * len(trips)
        return max(self._lead, needed, _LEAST_LEAD_AWAY if away else _LEAST_LEAD)

    def _learn(self, done: Mapping[str, Any]) -> None:
        """Send orders earlier after some arrived too late."""
        late = (
            max((one.late for one in done.values() if isinstance(one, HostOutcome)), default=0)
            / 1e9
        )
        if late > 0:
            self._lead = min(_MOST_LEAD, 2 * max(self._lead, _LEAST_LEAD) + 2 * late)


def _by_host(planned: Sequence[PlannedTask]) -> dict[str, list[PlannedTask]]:
    found: dict[str, list[PlannedTask]] = {}
    for one in planned:
        found.setdefault(_host(one), []).append(one)
    return found


def _host(planned: PlannedTask) -> str:
    return planned.member.host.name


def _task(planned: PlannedTask, prepared: Any, done: Any, at: int, clock: Clock | None) -> TaskRun:
    """The record of a task."""
    worker, host = planned.order.worker, _host(planned)
    lost = _lost(worker, prepared, done)
    if lost:
        return TaskRun(worker=worker, host=host, rank=planned.rank, status="lost", why=lost)
    one: TaskOutcome = next(o for o in done.outcomes if o.worker == worker)
    clock = clock or Clock()

    def here(time_there: int | None) -> float | None:
        return None if time_there is None else (time_there - clock.offset - at) / 1e9

    return TaskRun(
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
    """Why a task did not start, or was lost with its host; empty: neither."""
    if isinstance(prepared, BaseException):
        return f"its host cannot prepare it: {prepared}"
    mine: HeldReply = next(one for one in prepared if one.worker == worker)
    if mine.why_not:
        return f"it could not be started: {mine.why_not}"
    if isinstance(done, BaseException):
        return f"its host was lost: {done}"
    return ""

"""Run one round: hold all tasks, agree on an instant, release, and collect the results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gridrpc
from gridbench.hosts.host_group import HostClock, Member, ask_clock, clock_between
from gridbench.sync.record import HoldPoint, HostUse, TaskRun
from gridbench.sync.task_group import HostOutcome, TaskOrder

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
    clocks: Mapping[str, HostClock]
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
            if isinstance(prepared[host], dict) and len(prepared[host]) < len(ours)
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
        outcomes = {host: one for host, one in done.items() if isinstance(one, HostOutcome)}
        after = self._clocks({host: waiting[host] for host in outcomes})
        clocks = {host: clock_between(one, after.get(host, one)) for host, one in before.items()}
        self._learn(outcomes.values())
        none = HostClock()
        tasks = [
            _task(
                one, prepared[host], done.get(host), before.get(host, none), clocks.get(host, none)
            )
            for one in planned
            for host in [one.order.host]
        ]
        for host, ours in groups.items():
            if isinstance(prepared[host], BaseException) or isinstance(
                done.get(host), BaseException
            ):
                ours[0].member.remote = None
        return RoundOutcome(
            tasks=tuple(tasks),
            hosts=tuple(
                replace(one.use, host=host) for host, one in outcomes.items() if one.use is not None
            ),
            at=instant,
            prepared_in=prepared_in,
            printed={
                worker: printed
                for one in outcomes.values()
                for worker, printed in one.printed.items()
                if any(printed)
            },
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

    def _clocks(self, groups: Mapping[str, Sequence[PlannedTask]]) -> dict[str, HostClock]:
        members = {host: ours[0].member for host, ours in groups.items()}
        far = {host: member for host, member in members.items() if not member.near}
        clocks = dict.fromkeys(members, HostClock())
        for host, member in far.items():
            try:
                clocks[host] = ask_clock(member.remote.clock)
            except gridrpc.GridError:  # the next call gives the reason
                continue
        return clocks

    def _needed(self, clocks: Iterable[HostClock]) -> float:
        """Seconds from sending orders to the instant."""
        trips = [one.trip / 1e9 for one in clocks]
        away = any(trips)
        needed = max(trips, default=0.0) * _TRIPS + 1e-3 * len(trips)
        return max(self._lead, needed, _LEAST_LEAD_AWAY if away else _LEAST_LEAD)

    def _learn(self, outcomes: Iterable[HostOutcome]) -> None:
        """Send orders earlier after some arrived too late."""
        late = max((one.late for one in outcomes), default=0) / 1e9
        if late > 0:
            self._lead = min(_MOST_LEAD, 2 * max(self._lead, _LEAST_LEAD) + 2 * late)


def _by_host(planned: Sequence[PlannedTask]) -> dict[str, list[PlannedTask]]:
    found: dict[str, list[PlannedTask]] = {}
    for one in planned:
        found.setdefault(one.order.host, []).append(one)
    return found


def _task(
    planned: PlannedTask, prepared: Any, done: Any, before: HostClock, clock: HostClock
) -> TaskRun:
    """The record of a task, in the client's time. `before`: the clock by which its host knew the
    instant; `clock`: the best estimate."""
    order = planned.order
    lost = _lost(order.worker, prepared, done)
    if lost:
        return TaskRun(
            worker=order.worker, host=order.host, rank=order.rank, status="lost", why=lost
        )
    one: TaskRun = next(run for run in done.tasks if run.worker == order.worker)
    wrong = (before.offset - clock.offset) / 1e9
    return replace(
        one,
        began=None if one.began is None else one.began + wrong,
        ended=None if one.ended is None else one.ended + wrong,
        clock_error=clock.error / 1e9,
    )


def _lost(worker: int, prepared: Any, done: Any) -> str:
    """Why a task did not start, or was lost with its host; empty: neither."""
    if isinstance(prepared, BaseException):
        return f"its host cannot prepare it: {prepared}"
    if worker in prepared:
        return f"it could not be started: {prepared[worker]}"
    if isinstance(done, BaseException):
        return f"its host was lost: {done}"
    return ""

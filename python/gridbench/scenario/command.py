"""The whole of `gridbench scenario`: plan, run what is missing, tell."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from gridbench.engines.leftovers import Leftovers
from gridbench.errors import InputError
from gridbench.record_file import Header
from gridbench.run.folders import prepare
from gridbench.run.interrupt import Interrupt
from gridbench.run.machine import machine_facts, versions
from gridbench.run.participants import find_participant
from gridbench.scenario.grids import Choice, cases_of
from gridbench.scenario.linked import open_place, refuse_links
from gridbench.scenario.listing import print_listing
from gridbench.scenario.messages import Order
from gridbench.scenario.needs import Need, Place
from gridbench.scenario.one import Outcome, run_case
from gridbench.scenario.plan import Item, Judge, Limits, items_of, missing, seconds_of
from gridbench.scenario.progress import Progress
from gridbench.scenario.results import RUNS, CaseResult, CasesFile, open_cases
from gridbench.scenario.workloads import Times, write_workload

_FACTS = ("host", "system", "processor", "cores", "cores_usable", "memory")
_OVERLOADED = 0.1  # share of all processors that others may use; more makes a run invalid
_LEAST_DISK = 1 << 20  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the user asked for."""

    scenarios: Sequence[int]
    engines: Sequence[str]
    choice: Choice = field(default_factory=Choice)
    times: Times = field(default_factory=Times)
    place: Place = field(default_factory=Place)
    limits: Limits = field(default_factory=Limits)
    rounds: int = 1
    warm: bool = False
    check: bool = False
    start_timeout: float = 180.0
    folder: Path | None = None
    """None: one below `runs`, named after the time."""
    fresh: bool = False
    dry_run: bool = False


def run_scenarios(request: Request) -> int:
    """Run what is missing, and report; the exit status. InputError for bad input.

    0: every case was run or skipped. 1: a case failed. 128 + n: ended by signal n; what was
    measured is kept.
    """
    grids = {number: cases_of(number, request.choice) for number in request.scenarios}
    for number, engine in enumerate(request.engines):
        if engine in request.engines[:number]:
            raise InputError(f"the engine `{engine}` is asked for twice", remedy="name it once")
    refuse_links(request.place, request.engines)
    judge = Judge(
        [find_participant(name) for name in request.engines],
        times=request.times,
        place=request.place,
        warm=request.warm,
        limits=request.limits,
    )
    if request.dry_run:
        for number, cases in grids.items():
            items = [
                Item(case, engine, n)
                for case in cases
                for engine in request.engines
                for n in range(request.rounds)
            ]
            print_listing(Console(), number, items, judge, request.limits)
        return 0
    base = request.folder or _default_folder(request.scenarios)
    folders = {n: base if len(grids) == 1 else base / f"scenario-{n}" for n in grids}
    console = Console(stderr=True, highlight=False)
    statuses = [0]
    with Interrupt() as interrupt, Leftovers() as leftovers, open_place(request.place) as spaces:
        session = _Session(
            request,
            judge=judge,
            interrupt=interrupt,
            leftovers=leftovers,
            console=console,
            spaces=spaces,
        )
        for number, cases in grids.items():
            items = items_of(cases, request.engines, request.rounds, request.times.seed)
            statuses.append(session.run(number, items, folders[number]))
            if interrupt.came:
                break
        if interrupt.came:
            console.print(f"stopped: what was measured is kept; --out {base} goes on with the rest")
            return interrupt.exit_status
    print(f"results: {base}", file=sys.stderr)
    return max(statuses)


class _Session:
    """One call of the program: what its scenarios share."""

    def __init__(
        self,
        request: Request,
        *,
        judge: Judge,
        interrupt: Interrupt,
        leftovers: Leftovers,
        console: Console,
        spaces: tuple[str, ...],
    ) -> None:
        self._request = request
        self._judge = judge
        self._interrupt = interrupt
        self._leftovers = leftovers
        self._console = console
        self._spaces = spaces
        whole = request.limits.whole
        self._until = None if whole is None else time.monotonic() + whole

    def run(self, scenario: int, items: list[Item], folder: Path) -> int:
        """Run what is missing of a scenario; 1 if something failed."""
        file = open_cases(folder, _header(scenario, self._request), fresh=self._request.fresh)
        try:
            for result in file.current():
                self._judge.experience.learn(result)
            todo = missing(items, file.current())
            if len(todo) < len(items):
                self._console.print(f"{len(items) - len(todo)} of {len(items)} cases are there")
            seconds = seconds_of(todo, self._judge, self._why_not)
            with Progress(self._console, len(todo), seconds) as progress:
                while todo and not self._interrupt.came:
                    self._next(todo, file, progress)
            return int(any(result.status == "failed" for result in file.current()))
        finally:
            file.close()

    def _next(self, todo: list[Item], file: CasesFile, progress: Progress) -> None:
        """Run, or skip, the first of the items."""
        item = todo[0]
        need = self._judge.need(item)
        why_not = self._why_not(item, need)
        if why_not:
            result = self._result(item, need, "skipped", why_not)
            # What is known of the case is more than that it was not tried again.
            before = {one.identity: one for one in file.records}.get(item.identity)
            if before is None or (before.status == "skipped" and before.reason != why_not):
                file.add(result)
        else:
            expected = seconds_of(todo, self._judge, self._why_not)
            progress.begin(f"{item.engine}, {item.case.told()}", need.seconds, expected)
            found = self._run(item, need, file.path.parent, progress)
            if found is None:
                return
            result = found
            file.add(result)
            self._judge.experience.learn(result)
        progress.end(result)
        todo.pop(0)

    def _run(self, item: Item, need: Need, folder: Path, progress: Progress) -> CaseResult | None:
        """The result of running the item; None if the user has ended it."""
        request = self._request
        place = folder / RUNS / item.case.key
        name = item.engine if item.round == 0 else f"{item.engine}-{item.round + 1}"
        setup = write_workload(item.case, request.times, place)
        prepare(place / name, [item.engine], replace=True)
        outcome = run_case(
            Order(
                engine=item.engine,
                setup=setup,
                folder=place / name,
                time_scale=request.times.scale,
                warm=request.warm,
                check=request.check,
                start_timeout=request.start_timeout,
                namespaces=self._spaces,
            ),
            leftovers=self._leftovers,
            limit=self._limit(),
            stopped=lambda: self._interrupt.came,
            glance=progress.glance,
        )
        if self._interrupt.came and outcome.answer.status in ("interrupted", "failed"):
            return None
        if outcome.answer.status == "failed" and shutil.disk_usage(folder).free < _LEAST_DISK:
            raise InputError(
                f"the disk is full: {outcome.answer.reason}",
                file=folder,
                remedy="make room, and run the same again: it goes on with what is missing",
            )
        status, reason = _judged(outcome, item)
        return self._result(
            item, need, status, reason, outcome=outcome, folder=Path(RUNS, item.case.key, name)
        )

    def _result(
        self,
        item: Item,
        need: Need,
        status: str,
        reason: str,
        *,
        outcome: Outcome | None = None,
        folder: Path | None = None,
    ) -> CaseResult:
        request, case = self._request, item.case
        measured = outcome is not None and status in ("done", "invalid")
        answer = outcome.answer if outcome is not None else None
        return CaseResult(
            scenario=case.scenario,
            case=case.key,
            engine=item.engine,
            round=item.round,
            cores=case.cores,
            tasks=case.tasks,
            sleep_s=case.sleep * request.times.scale,
            stddev_s=request.times.deviation(case) * request.times.scale,
            time_scale=request.times.scale,
            bytes_in=case.bytes_in,
            bytes_shared=case.bytes_shared,
            bytes_out=case.bytes_out,
            transport="links" if request.place.linked else "one host",
            nodes=request.place.nodes,
            link_rate=request.place.rate,
            start="warm" if request.warm else "cold",
            status=status,  # type: ignore[arg-type]
            reason=reason,
            total_s=answer.total_s if answer is not None and measured else None,
            ideal_s=answer.ideal_s if answer is not None and measured else need.ideal,
            figures=answer.figures if answer is not None and measured else {},
            expected_s=need.seconds,
            took_s=0.0 if outcome is None else outcome.took,
            load={} if outcome is None else outcome.load,
            at=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            folder=folder,
        )

    def _why_not(self, item: Item, need: Need) -> str:
        left = None if self._until is None else self._until - time.monotonic()
        return self._judge.why_not(item, need, left)

    def _limit(self) -> float | None:
        """Seconds that the next case may take."""
        limits = [self._request.limits.case]
        if self._until is not None:
            limits.append(self._until - time.monotonic())
        return min((limit for limit in limits if limit is not None), default=None)


def _judged(outcome: Outcome, item: Item) -> tuple[str, str]:
    """Status and reason of a case that was run."""
    answer = outcome.answer
    if outcome.ended_for:
        told = f"; {answer.returned:,} of {item.case.tasks:,} tasks had come back"
        return "skipped", outcome.ended_for + told
    if answer.status == "interrupted":
        return "failed", "the run was interrupted"
    if answer.status == "done" and outcome.load["others"] > _OVERLOADED:
        return "invalid", (
            f"overloaded machine: other programs used {outcome.load['others']:.0%} of its"
            f" processors, and {_OVERLOADED:.0%} are tolerated"
        )
    return answer.status, answer.reason


def _header(scenario: int, request: Request) -> Header:
    facts = machine_facts()
    return Header(
        machine={name: facts[name] for name in _FACTS},
        versions=versions(),
        options={
            "scenario": scenario,
            "time_scale": request.times.scale,
            "stddev": request.times.stddev,
            "stddev_share": request.times.stddev_share,
            "seed": request.times.seed,
            "split_data": request.choice.split_data,
            "nodes": request.place.nodes,
            "link_rate": request.place.rate,
            "start": "warm" if request.warm else "cold",
        },
        started=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        seed=request.times.seed,
    )


def _default_folder(scenarios: Sequence[int]) -> Path:
    stamp = time.strftime("%Y-%m-%dT%H-%M-%S")
    name = f"scenario-{scenarios[0]}" if len(scenarios) == 1 else "scenarios"
    folder, number = Path("runs", f"{name}-{stamp}"), 1
    while folder.exists():
        number += 1
        folder = Path("runs", f"{name}-{stamp}-{number}")
    return folder

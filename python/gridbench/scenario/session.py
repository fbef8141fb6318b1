"""Running the cases of scenarios one by one, and keeping what comes of each."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from gridbench.engines.limit_workers import spread
from gridbench.errors import InputError
from gridbench.formats import counted, duration
from gridbench.jsonl_store import Header, missing
from gridbench.process.interrupt import Interrupt
from gridbench.process.leftovers import Leftovers
from gridbench.progress import Steps
from gridbench.results_folder import say_failed_before
from gridbench.run.machine import new_header
from gridbench.scenario.grids import ScenarioCase
from gridbench.scenario.messages import CaseOrder
from gridbench.scenario.needs import Need
from gridbench.scenario.one import CaseOutcome, run_case
from gridbench.scenario.plan import Judge, ScenarioItem, failed_before
from gridbench.scenario.request import ScenarioRequest
from gridbench.scenario.results import RUNS, CaseResult, CasesFile, Status, open_cases
from gridbench.scenario.rounds import rounds_of
from gridbench.scenario.workloads import write_workload

_LEAST_DISK = 1 << 20  # bytes


def header_of(scenario: int, request: ScenarioRequest) -> Header:
    """What all results of a scenario that is run so have in common."""
    return new_header(
        {
            "scenario": scenario,
            "task": request.times.body,
            "time_scale": request.times.scale,
            "stddev": request.times.stddev,
            "stddev_share": request.times.stddev_share,
            "seed": request.times.seed,
            "split_data": request.choice.split_data,
            "nodes": request.place.nodes,
            "link_rate": request.place.rate,
            "start": "warm" if request.warm else "cold",
            **({} if request.servers is None else {"servers": request.servers.record()}),
        },
        seed=request.times.seed,
    )


class ScenarioSession:
    """One call of the program: what its scenarios share."""

    def __init__(
        self,
        request: ScenarioRequest,
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

    def run(self, scenario: int, cases: Sequence[ScenarioCase], folder: Path) -> int:
        """Run what is missing of a scenario; 1 if something failed."""
        request = self._request
        file = open_cases(folder, header_of(scenario, request), fresh=request.fresh)
        try:
            for result in file.current():
                self._judge.experience.learn(result)
            batches = rounds_of(
                cases,
                request.engines,
                request.rounds,
                seed=request.times.seed,
                results=file.current,
            )
            for items in batches:
                self._run_batch(items, file)
                if self._interrupt.came:
                    break
            return int(any(result.status == "failed" for result in file.current()))
        finally:
            file.close()

    def _run_batch(self, items: list[ScenarioItem], file: CasesFile) -> None:
        todo = missing(items, file.current())
        failed = [] if self._request.retry_failed else failed_before(todo, file.current())
        todo = [item for item in todo if item not in failed]
        if items[0].round:
            cases = counted(len({item.case.key for item in items}), "case")
            self._console.print(f"round {items[0].round + 1}: the outcome of {cases} is open")
        if len(todo) < len(items):
            self._console.print(f"{len(items) - len(todo)} of {len(items)} cases are there")
        names = [f"{item.engine}, {item.case.told()}" for item in failed]
        say_failed_before(self._console, names, "case")
        with Steps(self._console, "case", len(todo), transient=False) as progress:
            while todo and not self._interrupt.came:
                self._next(todo, file, progress)

    def _next(self, todo: list[ScenarioItem], file: CasesFile, progress: Steps) -> None:
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
            progress.begin(
                f"{item.engine}, {item.case.told()}",
                expected=need.seconds,
                seconds=self._judge.seconds(todo),
            )
            found = self._run(item, need, file.path.parent, progress)
            if found is None:
                return
            result = found
            file.add(result)
            self._judge.experience.learn(result)
        self._tell(result, progress)
        todo.pop(0)

    def _tell(self, result: CaseResult, progress: Steps) -> None:
        if result.status == "skipped" and result.took_s == 0:
            progress.skip()
        else:
            progress.end(result.took_s)
        if result.status != "done" or not self._console.is_terminal:
            progress.say(
                f"{progress.number}/{progress.steps} {result.engine}, {result.case}: {told(result)}"
            )

    def _run(
        self, item: ScenarioItem, need: Need, folder: Path, progress: Steps
    ) -> CaseResult | None:
        """The result of running the item; None if the user has ended it."""
        request = self._request
        place = folder / RUNS / item.case.key
        name = item.engine if item.round == 0 else f"{item.engine}-{item.round + 1}"
        setup = write_workload(item.case, request.times, place)
        _make_empty(place / name)
        outcome = run_case(
            CaseOrder(
                engine=item.engine,
                setup=setup,
                folder=place / name,
                time_scale=request.times.scale,
                body=request.times.body,
                warm=request.warm,
                check=request.check,
                start_timeout=request.start_timeout,
                facts=self._judge.facts(item),
                namespaces=self._spaces,
                servers=request.servers,
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
        item: ScenarioItem,
        need: Need,
        status: Status,
        reason: str,
        *,
        outcome: CaseOutcome | None = None,
        folder: Path | None = None,
    ) -> CaseResult:
        request, case = self._request, item.case
        measured = outcome is not None and status in ("done", "invalid")
        answer = outcome.answer if outcome is not None else None
        may_be_gone = outcome is not None and (
            outcome.disturbed or outcome.answer.status == "interrupted"
        )
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
            transport="links" if request.place.apart else "one host",
            nodes=self._nodes(case),
            link_rate=request.place.rate,
            start="warm" if request.warm else "cold",
            status=status,
            reason=reason,
            again=status == "failed" and may_be_gone,
            total_s=answer.total_s if answer is not None and measured else None,
            ideal_s=answer.ideal_s if answer is not None and measured else need.ideal,
            figures=answer.figures if answer is not None and measured else {},
            expected_s=need.seconds,
            took_s=0.0 if outcome is None else outcome.took,
            load={} if outcome is None else outcome.load,
            at=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            folder=folder,
        )

    def _nodes(self, case: ScenarioCase) -> int:
        """The places that its workers are spread over."""
        if self._request.servers is None:
            return self._request.place.nodes
        try:
            return len(spread(self._request.servers, case.cores))
        except InputError:  # it is skipped for that reason
            return self._request.place.nodes

    def _why_not(self, item: ScenarioItem, need: Need) -> str:
        left = None if self._until is None else self._until - time.monotonic()
        return self._judge.why_not(item, need, left)

    def _limit(self) -> float | None:
        """Seconds that the next case may take."""
        limits = [self._request.limits.case]
        if self._until is not None:
            limits.append(self._until - time.monotonic())
        return min((limit for limit in limits if limit is not None), default=None)


def _make_empty(folder: Path) -> None:
    """An empty folder for a run, also where a killed one has left something."""
    try:
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
    except OSError as error:
        raise InputError(
            f"cannot make the folder of a run: {error.strerror}",
            file=folder,
            remedy="choose another --out, one that can be written",
        ) from None


def _judged(outcome: CaseOutcome, item: ScenarioItem) -> tuple[Status, str]:
    """Status and reason of a case that was run."""
    answer = outcome.answer
    if outcome.ended_for:
        told = f"; {answer.returned:,} of {item.case.tasks:,} tasks had come back"
        return "skipped", outcome.ended_for + told
    if answer.status == "interrupted":
        return "failed", "the run was interrupted"
    return answer.status, answer.reason


def told(result: CaseResult) -> str:
    """The outcome of a case in a line."""
    times = ""
    if result.total_s is not None and result.ideal_s is not None:
        times = f"{duration(result.total_s)}, without overhead {duration(result.ideal_s)}"
    if result.status == "done":
        return times
    return f"{result.status}: {result.reason}" + (f" ({times})" if times else "")

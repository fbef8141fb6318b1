"""Scenarios as an `Experiment`: which cases there are, and how one is run."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from gridbench.engines.environments import environment
from gridbench.engines.registry import find_engine, load_engine
from gridbench.engines.servers import Servers, ask, spread
from gridbench.errors import InputError
from gridbench.experiment import Bench, Experiment
from gridbench.formats import about, counted, duration, size
from gridbench.jsonl_store import Header, RecordFile, latest
from gridbench.machine.judgement import DISTURBED
from gridbench.pages.document import EVERYWHERE, Document, TableBlock
from gridbench.pages.table import Column, table_of
from gridbench.pages.terminal import print_document
from gridbench.printing import Printing
from gridbench.process.children import Leftovers
from gridbench.process.interrupt import Stopped
from gridbench.results_folder import exclusive_lock
from gridbench.run.participants import find_participant
from gridbench.scenario import result_kind
from gridbench.scenario.grids import ScenarioCase, cases_of, write_workload
from gridbench.scenario.options import ScenarioParameters
from gridbench.scenario.plan import (
    Judge,
    Need,
    ScenarioItem,
    WorkerPlace,
    items_of,
    undecided_engines,
)
from gridbench.scenario.results import (
    FORM,
    RUNS,
    CaseResult,
    ScenarioFiles,
    Status,
    folders_of_results,
)
from gridbench.scenario.run_case import CaseOrder, CaseOutcome, run_case
from gridbench.statistics.claims import FEWEST, MOST
from gridbench.terminal import say
from gridbench_testbed.links.network import Network, require_links

_LEAST_DISK = 1 << 20  # bytes


class ScenarioExperiment(Experiment[ScenarioItem, CaseResult]):
    """The cases of all scenarios on all engines, in rounds."""

    kind = result_kind
    form = FORM

    def __init__(self, scenarios: Sequence[int], parameters: ScenarioParameters) -> None:
        """InputError for options that contradict each other or the engines."""
        self.parameters = parameters
        self.seed = parameters.seed
        self.grids = {number: cases_of(number, parameters.choice) for number in scenarios}
        self._times = parameters.times()
        self._place = parameters.place()
        _refuse_links(self._place, parameters.all_engines)
        self._participants = [find_participant(name) for name in parameters.all_engines]
        if self._place.servers:
            for one in self._participants:
                one.require_servers()
        self._judge = self._new_judge(None)
        self._servers: Servers | None = None
        self._leftovers: Leftovers | None = None
        self._namespaces: tuple[str, ...] = ()
        self._until: float | None = None
        self._console: Console | None = None

    def _new_judge(self, servers: Servers | None) -> Judge:
        own = self.parameters
        return Judge(
            self._participants,
            servers=servers,
            times=self._times,
            place=self._place,
            warm=own.start == "warm",
            case_limit=own.case_limit,
        )

    @property
    def name(self) -> str:
        """After the scenario."""
        numbers = list(self.grids)
        return f"scenario-{numbers[0]}" if len(numbers) == 1 else "scenarios"

    def record(self) -> dict[str, Any]:
        """Options and servers."""
        servers = {} if self._servers is None else {"servers": self._servers.record()}
        return {**self.parameters.record(self._place), **servers}

    def prepare(self, bench: Bench) -> None:
        """Ask the servers for their workers. InputError if they have too few for each case."""
        self._console = bench.console
        if not self._place.servers:
            return
        own = self.parameters
        say(bench.console, "asking the servers for their workers")
        found = ask(own.where.grid, own.where.servers, patience=own.where.start_timeout)
        for host in found.hosts:
            say(bench.console, host.describe())
        fewest = min(case.cores for cases in self.grids.values() for case in cases)
        if found.workers < fewest:
            raise InputError(
                f"the servers have {counted(found.workers, 'worker')}, and no case needs less than"
                f" {fewest:,}",
                remedy=f"add --cores {found.workers}, or raise `workers` of the servers",
            )
        self._servers = found
        self._place = replace(self._place, nodes=len(found.hosts))
        self._judge = self._new_judge(found)

    def open(self, folder: Path, header: Header, *, fresh: bool) -> ScenarioFiles:
        """The files of all scenarios."""
        assert self._console is not None
        files: dict[int, RecordFile[CaseResult]] = {}
        with ExitStack() as stack:
            for number in self.grids:
                own = self._folder(folder, number)
                if own != folder:
                    stack.enter_context(exclusive_lock(own, self._console))
                options = {"scenario": number, **header.options}
                files[number] = FORM.open(own, replace(header, options=options), fresh=fresh)
                stack.callback(files[number].close)
            found = ScenarioFiles(files, stack.pop_all())
        for result in found.records:
            self._judge.experience.learn(result)
        return found

    def _folder(self, base: Path, scenario: int) -> Path:
        return base if len(self.grids) == 1 else base / f"scenario-{scenario}"

    def read(self, folder: Path) -> list[CaseResult]:
        """The latest results of all scenarios."""
        return [one for n in self.grids for one in FORM.read(self._folder(folder, n))[1]]

    def _items(self, rounds: int) -> list[ScenarioItem]:
        own = self.parameters
        return [
            item
            for cases in self.grids.values()
            for item in items_of(cases, own.all_engines, rounds, own.seed)
        ]

    def batches(
        self, bench: Bench, records: Sequence[CaseResult]
    ) -> Iterator[Sequence[ScenarioItem]]:
        """All rounds; if their number is open, one after another of the cases whose outcome is."""
        self._leftovers = bench.stack.enter_context(Leftovers())
        self._namespaces = bench.stack.enter_context(_namespaces(self._place))
        limit = self.parameters.limit
        self._until = None if limit is None else time.monotonic() + limit
        yield self._items(self.parameters.most_rounds or FEWEST)
        if self.parameters.most_rounds is not None:
            return
        for number in range(FEWEST, MOST):
            undecided = undecided_engines(latest(records), self.parameters.all_engines)
            items = [
                item
                for item in self._items(number + 1)
                if item.round == number
                and item.engine in undecided.get((item.case.scenario, item.case.key), ())
            ]
            if not items:
                return
            cases = counted(len({item.case for item in items}), "case")
            bench.console.print(f"round {number + 1}: the outcome of {cases} is open")
            yield items

    def seconds(self, cases: Sequence[ScenarioItem]) -> float:
        """What the judge expects."""
        return self._judge.seconds(cases)

    def run(self, case: ScenarioItem, bench: Bench) -> CaseResult:
        """Run, or skip, a case. InputError if the disk is full."""
        need = self._judge.need(case)
        left = None if self._until is None else self._until - time.monotonic()
        if why_not := self._judge.why_not(case, need, left):
            return self._result(case, need, "skipped", why_not)
        base = self._folder(bench.folder, case.case.scenario)
        name = case.engine if case.round == 0 else f"{case.engine}-{case.round + 1}"
        folder = Path(RUNS, case.case.key, name)
        outcome = self._outcome(case, base / folder, bench)
        answer = outcome.answer
        if bench.interrupt.came and answer.status in ("interrupted", "failed"):
            raise Stopped
        if answer.status == "failed" and shutil.disk_usage(base).free < _LEAST_DISK:
            raise InputError(
                f"the disk is full: {answer.reason}",
                file=base,
                remedy="make room, and run the same again: it resumes",
            )
        status, reason = _judged(outcome, case)
        return self._result(case, need, status, reason, outcome=outcome, folder=folder)

    def _outcome(self, item: ScenarioItem, folder: Path, bench: Bench) -> CaseOutcome:
        assert self._leftovers is not None
        assert bench.steps is not None
        own = self.parameters
        setup = write_workload(item.case, self._times, folder.parent)
        _make_empty(folder)
        limits = [own.case_limit]
        if self._until is not None:
            limits.append(self._until - time.monotonic())
        return run_case(
            CaseOrder(
                engine=item.engine,
                setup=setup,
                folder=folder,
                time_scale=self._times.scale,
                body=own.task,
                warm=own.start == "warm",
                check=own.check,
                start_timeout=own.where.start_timeout,
                facts=self._judge.facts(item),
                namespaces=self._namespaces,
                servers=self._servers,
            ),
            leftovers=self._leftovers,
            limit=min((limit for limit in limits if limit is not None), default=None),
            stopped=lambda: bench.interrupt.came,
            glance=bench.steps.glance,
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
        case, times, place = item.case, self._times, self._place
        answer = None if outcome is None else outcome.answer
        measured = answer if status in ("done", "invalid") else None
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
            sleep_s=case.sleep * times.scale,
            stddev_s=times.deviation(case) * times.scale,
            time_scale=times.scale,
            bytes_in=case.bytes_in,
            bytes_shared=case.bytes_shared,
            bytes_out=case.bytes_out,
            transport="links" if place.apart else "one host",
            nodes=self._nodes(case),
            link_rate=place.rate,
            start=self.parameters.start,
            status=status,
            reason=reason,
            again=status == "failed" and may_be_gone,
            total_s=None if measured is None else measured.total_s,
            ideal_s=need.ideal if measured is None else measured.ideal_s,
            figures={} if measured is None else measured.figures,
            expected_s=need.seconds,
            took_s=0.0 if outcome is None else outcome.took,
            load={} if outcome is None else outcome.load,
            at=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            folder=folder,
        )

    def _nodes(self, case: ScenarioCase) -> int:
        """The places over which its workers are spread."""
        if self._servers is None:
            return self._place.nodes
        try:
            return len(spread(self._servers, case.cores))
        except InputError:  # the case is skipped for that reason
            return self._place.nodes

    def saved(self, record: CaseResult, number: int, bench: Bench) -> None:
        """Learn how long cases take."""
        del number, bench
        self._judge.experience.learn(record)

    def outcome(self, record: CaseResult) -> str:
        """The times, or why there are none. The table at the end counts skipped cases."""
        if record.status == "skipped" and record.took_s == 0:
            return ""
        times = ""
        if record.total_s is not None and record.ideal_s is not None:
            times = f"{duration(record.total_s)}, without overhead {duration(record.ideal_s)}"
        if record.status == "done":
            return times
        return f"{record.status}: {record.reason}" + (f" ({times})" if times else "")

    def disturbed(self, record: CaseResult) -> bool:
        """Also a case that failed while other programs were at work, or was interrupted."""
        return record.again or record.reason_kind == DISTURBED

    def parts(self, folder: Path) -> Sequence[Path]:
        """Those of several scenarios."""
        folders = folders_of_results(folder)
        return [] if folders == [folder] else folders

    def list_cases(self, printing: Printing) -> None:
        """Print what the cases of each scenario need, in the order of its grid, and which of them
        are skipped; nothing is run, and servers are not asked."""
        records = []
        for number, cases in self.grids.items():
            rows = self._listed(cases)
            run = [row for row in rows if not row["skipped"]]
            skipped = len(rows) - len(run)
            columns = [
                Column[dict[str, Any]]("case", lambda row: row["case"]),
                Column("engine", lambda row: row["engine"], words=True),
                Column("time", lambda row: about(row["seconds"])),
                Column("memory", lambda row: size(row["memory"])),
                Column("data", lambda row: size(row["bytes_moved"])),
                Column(
                    "skipped for",
                    lambda row: row["skipped"].partition(":")[0],
                    words=True,
                    condition=skipped > 0,
                ),
            ]
            of_them = f", {skipped} of them skipped" if skipped else ""
            title = f"Scenario {number}"
            document = Document(
                kind="gridbench scenario",
                title=title,
                heading=title,
                sentences=[
                    f"scenario {number}: {len(rows)} cases{of_them}; about"
                    f" {about(sum(row['seconds'] for row in run))},"
                    f" {size(sum(row['bytes_moved'] for row in run))} to move"
                ],
                summary=[TableBlock(title, table_of(columns, rows), media=EVERYWHERE)],
            )
            print_document(printing.tables(), document)
            records.append({"scenario": number, "cases": rows})
        printing.document(lambda: records)

    def _listed(self, cases: Sequence[ScenarioCase]) -> list[dict[str, Any]]:
        own, rows, seconds = self.parameters, [], 0.0
        for case in cases:
            for engine in own.all_engines:
                for number in range(own.most_rounds or FEWEST):
                    item = ScenarioItem(case, engine, number)
                    need = self._judge.need(item)
                    left = None if own.limit is None else own.limit - seconds
                    why = self._judge.why_not(item, need, left)
                    seconds += 0.0 if why else need.seconds
                    rows.append(
                        {
                            "case": case.describe(),
                            "engine": engine,
                            "seconds": need.seconds,
                            "memory": need.memory,
                            "bytes_moved": need.bytes_moved,
                            "skipped": why,
                        }
                    )
        return rows


def _refuse_links(place: WorkerPlace, engines: Sequence[str]) -> None:
    """InputError if there are to be links, and this machine or an engine cannot have them."""
    if not place.linked:
        return
    for name in engines:
        # Engines with environments of their own cannot be imported here, and take none.
        point = find_engine(name)
        if environment(name) is not None or not load_engine(point).takes_namespaces:
            raise InputError(
                f"the engine `{name}` cannot put its workers behind links",
                remedy="leave out --nodes and --link, or choose gridrpc-native or gridrpc-python",
            )
    require_links()


@contextmanager
def _namespaces(place: WorkerPlace) -> Iterator[tuple[str, ...]]:
    """The network namespaces of the workers; none without links. InputError if this machine cannot
    have them."""
    if place.rate is None:
        yield ()
        return
    with Network(place.nodes, place.rate) as network:
        yield tuple(map(str, network.namespaces))


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
        text = f"; {answer.returned:,} of {item.case.tasks:,} tasks had come back"
        return "skipped", outcome.ended_for + text
    if answer.status == "interrupted":
        return "failed", "the run was interrupted"
    return answer.status, answer.reason

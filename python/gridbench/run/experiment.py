"""Runs as an `Experiment`: a workload on engines, round after round.

Nothing starts before all that can be wrong with the input was checked. The libraries for tables
and plots are loaded only after the last engine was measured: an engine that forks from this
process would have to copy them.
"""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from gridbench.engines.python_tasks import one_line
from gridbench.engines.servers import ask, limited
from gridbench.errors import InputError, print_error, print_warning
from gridbench.experiment import Bench, Experiment
from gridbench.formats import about, duration, spread
from gridbench.jsonl_store import Header
from gridbench.machine.options import Policy
from gridbench.printing import Printing
from gridbench.process.inside import make_room_for_files
from gridbench.run.client import EngineFacts
from gridbench.run.feasibility import check_body, check_memory, check_workers, most_at_once
from gridbench.run.options import ROUNDS_LIMIT, RunParameters
from gridbench.run.participants import find_participant
from gridbench.run.present import (
    answer_of,
    counting,
    document,
    median_run,
    name_of,
    print_summaries,
)
from gridbench.run.recorder import REPORT, complete, make_places, place_of, replaceable
from gridbench.run.runner import EngineRun, PlannedRun, run_engine
from gridbench.schema import record_of
from gridbench.statistics.claims import MOST, undecided
from gridbench.terminal import say


class RunFolders:
    """Runs, each of which writes a folder of its own."""

    def __init__(self, places: dict[str, Path]) -> None:
        self.places = places
        """Of the first round of each engine."""
        self.records: list[EngineRun] = []

    def add(self, record: EngineRun) -> None:
        """Note a run."""
        self.records.append(record)

    def discard(self) -> None:
        """Remove the folders, which are empty."""
        for place in self.places.values():
            with contextlib.suppress(OSError):
                place.rmdir()

    def close(self) -> None:
        """Nothing is open."""


class RunExperiment(Experiment[PlannedRun, EngineRun]):
    """A workload on one or several engines."""

    name = ""
    noun = "run"
    resumes = False
    shows_progress = True

    def __init__(self, parameters: RunParameters, policy: Policy) -> None:
        """InputError for what cannot be meant."""
        make_room_for_files()
        self.parameters = parameters
        self.policy = policy
        self._workload_on = parameters.workload()
        self._participants = {
            one.name: one for one in map(find_participant, parameters.all_engines())
        }
        if parameters.where.grid or parameters.where.servers:
            for one in self._participants.values():
                one.require_servers()
        else:
            self._workload = self._workload_on(parameters.cores or 0)
            check_workers(self._workload.setup)
        self._most = parameters.most_rounds()
        self._facts: dict[str, EngineFacts] = {}
        self._old: list[Path] = []
        self._folders = RunFolders({})
        self._status = 0
        self._measured: list[Path] = []

    def record(self) -> dict[str, Any]:
        """The parameters."""
        return record_of(self.parameters)

    def prepare(self, bench: Bench) -> None:
        """Look at the servers, the engines and the folder. InputError if one cannot be used."""
        where, console = self.parameters.where, bench.console
        if where.grid or where.servers:
            say(console, "asking the servers for their workers")
            given = ask(where.grid, where.servers, patience=where.start_timeout)
            servers = bench.stack.enter_context(limited(given, self.parameters.cores))
            for host in servers.hosts:
                say(console, host.told())
            for one in self._participants.values():
                one.use_servers(servers)
            self._workload = self._workload_on(servers.workers)
        setup, warm = self._workload.setup, self.parameters.start == "warm"
        for name, one in self._participants.items():
            if one.environment() is not None:  # which takes seconds
                say(console, f"{name}: loading")
            self._facts[name] = one.facts(most_at_once(setup), warm=warm)
        check_body(self._workload.body, self._facts)
        if not (where.grid or where.servers):  # their doctor looks at the memory of servers
            check_memory(setup, self._facts)
        self._old = replaceable(bench.folder, replace=self.parameters.force)

    def open(self, folder: Path, header: Header, *, fresh: bool) -> RunFolders:
        """The folders of the engines; an older run is removed."""
        del header, fresh
        apart = len(self._participants) > 1 or self._most != 1
        self._folders = RunFolders(
            make_places(folder, list(self._participants), self._old, apart=apart)
        )
        return self._folders

    def read(self, folder: Path) -> list[EngineRun]:
        """The runs."""
        del folder
        return self._folders.records

    def cases(self, bench: Bench) -> list[PlannedRun]:
        """The first round."""
        del bench
        return [
            PlannedRun(engine=engine, round=None if self._most == 1 else 1)
            for engine in self._participants
        ]

    def batches(self, bench: Bench, records: Sequence[EngineRun]) -> Iterator[Sequence[PlannedRun]]:
        """Round after round."""
        limit = self.parameters.limit or ROUNDS_LIMIT
        accept = self.policy.accept
        engines, console = list(self._participants), bench.console
        return rounds(engines, records, self._most, limit=limit, accept=accept, console=console)

    def run(self, case: PlannedRun, bench: Bench) -> EngineRun:
        """Run the workload on the engine of the case."""
        return run_engine(
            self._participants[case.engine],
            self._facts[case.engine],
            self._workload,
            warm=self.parameters.start == "warm",
            check=self.parameters.check,
            start_timeout=self.parameters.where.start_timeout,
            folder=place_of(self._folders.places[case.engine], case.round),
            interrupt=bench.interrupt,
            console=bench.console,
            round=case.round,
        )

    def outcome(self, record: EngineRun) -> str:
        """The total time."""
        return duration(record.total)

    def show(self, records: list[EngineRun], printing: Printing, folder: Path) -> None:
        """Complete the folders of the runs; print the summary, the answer and what went wrong."""
        problems: list[tuple[Callable[[object], None], str]] = []
        summaries = {}
        self._status = max((one.exit_status for one in records), default=0)
        for one in records:
            name = name_of(one, records)
            printed = print_error if one.exit_status else print_warning
            problems += [(printed, f"{name}: {message}") for message in one.messages]
            try:
                summaries[one.folder] = complete(one.folder, one.record, self._workload.setup)
            except InputError as error:
                self._status = max(self._status, 2)
                if str(error) not in one.messages:
                    problems.append((print_error, f"{name}: {error}"))
        print_summaries(printing.tables(), records, summaries)
        if answer := answer_of(records):
            say(printing.tables(), answer)
        printing.document(lambda: document(folder, records, answer))
        self._measured = [
            place for place, summary in summaries.items() if summary.ok or summary.failed
        ]
        sys.stdout.flush()
        for print_problem, problem in problems:
            print_problem(problem)

    def write_report(self, folder: Path, page: Path) -> None:
        """Write a page of each engine and, of several runs, one of all. InputError if that fails,
        whatever the reason: the results are safe."""
        measured = self._measured
        if not measured:
            return
        records = self._folders.records
        shown = [median_run(records, engine) for engine in dict.fromkeys(r.engine for r in records)]
        pages = [([one.folder], one.folder / REPORT) for one in shown if one.folder in measured]
        if folder not in measured:
            pages.append((measured, page))
        out = page
        try:
            from gridbench.pages.document import write_page
            from gridbench.result_kind import RUNS, module_of

            for sources, out in pages:
                write_page(module_of(RUNS).document(sources, out), out)
        except Exception as error:
            reason = error.what if isinstance(error, InputError) else one_line(error)
            raise InputError(
                f"the report could not be written: {reason}",
                file=out,
                remedy="the results are kept; `gridbench report` makes it from them",
            ) from error

    def exit_status(
        self,
        cases: Sequence[PlannedRun],
        records: list[EngineRun],
        policy: Policy,
        report: int,
    ) -> int:
        """2: input, or the folder, cannot be used. 1: tasks or an engine failed, or there is no
        report. 3: all runs of an engine were disturbed."""
        del cases
        claims = all(counting(records, engine) for engine in self._participants)
        return max(self._status, report) or policy.exit_status(claims=claims)


def rounds(
    engines: Sequence[str],
    records: Sequence[EngineRun],
    number: int | None = 1,
    *,
    limit: float = math.inf,
    accept: bool = False,
    console: Console,
) -> Iterator[list[PlannedRun]]:
    """The runs of each round, numbered from 1 if there are several.

    Each round begins with another engine, so that none always runs first. An engine that has failed
    is not run again. Without a `number`, rounds end when it is known who is fastest (`undecided`);
    none begins that would end more than `limit` seconds after the first began, nor, with `accept`,
    after one in which other programs disturbed all runs.
    """
    todo, most = list(engines), number or MOST
    begun = time.monotonic()
    for current in range(1, most + 1):
        before, round_begun = len(records), time.monotonic()
        first = (current - 1) % len(todo)
        yield [
            PlannedRun(engine=engine, round=current if most > 1 else None)
            for engine in (*todo[first:], *todo[:first])
        ]
        todo = _still_running(engines, records, number)
        if not todo or current == most:
            return
        now = time.monotonic()
        if number is None and accept and all(one.disturbed for one in records[before:]):
            say(console, "no further round: other programs use the machine")
            return
        if number is None and now - begun + now - round_begun > limit:
            say(
                console,
                f"no further round: it would end after the {about(limit)} of --limit;"
                f" {_so_far(todo, records)}",
            )
            return
        say(console, f"round {current + 1}: {_so_far(todo, records)}")


def _still_running(
    engines: Sequence[str], records: Sequence[EngineRun], number: int | None
) -> list[str]:
    """The engines of the next round."""
    failed = {one.engine for one in records if one.exit_status}
    sound = [engine for engine in engines if engine not in failed]
    if number is not None:
        return sound
    return undecided({engine: counting(records, engine) for engine in sound})


def _so_far(engines: Sequence[str], records: Sequence[EngineRun]) -> str:
    told = []
    for engine in engines:
        totals = counting(records, engine)
        told.append(f"{engine} {spread(totals) if totals else 'has no run that counts'}")
    return f"{', '.join(told)} so far"

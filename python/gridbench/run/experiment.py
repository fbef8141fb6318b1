"""Runs as an `Experiment`: a workload on engines, round after round.

Nothing starts before all that can be wrong with the input was checked. The libraries for tables
and plots are loaded only after the last engine was measured: an engine that forks from this
process would have to copy them.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from gridbench.engines.servers import ask, limited
from gridbench.errors import InputError, print_error, print_warning
from gridbench.experiment import Bench, Experiment
from gridbench.formats import about, duration, spread
from gridbench.jsonl_store import Header
from gridbench.machine.options import Policy
from gridbench.process.inside import make_room_for_files
from gridbench.result_kind import RUNS, module_of
from gridbench.run.client import EngineFacts
from gridbench.run.comparison import counting, median_run
from gridbench.run.feasibility import check_body, check_memory, check_workers, most_at_once
from gridbench.run.options import ROUNDS_LIMIT, RunParameters
from gridbench.run.participants import find_participant
from gridbench.run.recorder import complete_run, make_places, place_of, replaceable
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

    kind = module_of(RUNS)
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
        if parameters.where.elsewhere:
            for one in self._participants.values():
                one.require_servers()
        else:
            self._workload = self._workload_on(parameters.cores or 0)
            check_workers(self._workload.setup)
        self._most = parameters.most_rounds()
        self._facts: dict[str, EngineFacts] = {}
        self._old: list[Path] = []
        self._folders = RunFolders({})

    def record(self) -> dict[str, Any]:
        """The parameters."""
        return record_of(self.parameters)

    def prepare(self, bench: Bench) -> None:
        """Look at the servers, the engines and the folder. InputError if one cannot be used."""
        where, console = self.parameters.where, bench.console
        if where.elsewhere:
            say(console, "asking the servers for their workers")
            given = ask(where.grid, where.servers, patience=where.start_timeout)
            servers = bench.stack.enter_context(limited(given, self.parameters.cores))
            for host in servers.hosts:
                say(console, host.describe())
            for one in self._participants.values():
                one.use_servers(servers)
            self._workload = self._workload_on(servers.workers)
        setup, warm = self._workload.setup, self.parameters.start == "warm"
        for name, one in self._participants.items():
            if one.environment() is not None:  # which takes seconds
                say(console, f"{name}: loading")
            self._facts[name] = one.facts(most_at_once(setup), warm=warm)
        check_body(self._workload.body, self._facts)
        if not where.elsewhere:  # their doctor looks at the memory of servers
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

    def complete(self, folder: Path, records: list[EngineRun]) -> None:
        """Complete the folders of the runs."""
        del folder
        for one in records:
            try:
                complete_run(one.folder, one.record, self._workload.setup)
            except InputError as error:
                one.exit_status = max(one.exit_status, 2)
                if str(error) not in one.messages:
                    one.messages.append(str(error))

    def parts(self, folder: Path) -> Sequence[Path]:
        """Of several runs the shown one of each engine."""
        records = self._folders.records
        engines = dict.fromkeys(one.engine for one in records)
        shown = [median_run(records, engine).folder for engine in engines]
        return [one for one in shown if one != folder]

    def print_problems(self, records: list[EngineRun]) -> None:
        """Print what went wrong, or limits what the runs say."""
        for one in records:
            several = sum(one.engine == other.engine for other in records) > 1
            name = f"{one.engine}, round {one.round}" if several else one.engine
            print_problem = print_error if one.exit_status else print_warning
            for message in one.messages:
                print_problem(f"{name}: {message}")

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
        status = max((one.exit_status for one in records), default=0)
        return max(status, report) or policy.exit_status(claims=claims)


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
    reported = []
    for engine in engines:
        totals = counting(records, engine)
        reported.append(f"{engine} {spread(totals) if totals else 'has no run that counts'}")
    return f"{', '.join(reported)} so far"

"""Micro benchmarks as an `Experiment`: which points there are, and how one is measured."""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import subprocess
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import click
from rich.console import Console

import gridrpc
from gridbench.atomic_write import replace_file
from gridbench.bench.points import DataPoint, PlannedPoint, stands
from gridbench.bench.programs import built
from gridbench.bench.session import Item, Limits, RepeatBudget, Runner, Session
from gridbench.engines.environments import environment, launch_of
from gridbench.engines.names import NULL_ENGINE, ONLY_IF_NAMED
from gridbench.engines.registry import find_engine, installed_engines
from gridbench.engines.servers import ask, limited
from gridbench.errors import InputError
from gridbench.experiment import Bench, Experiment, run_experiment
from gridbench.formats import as_given, counted
from gridbench.jsonl_store import Header, RecordFile
from gridbench.machine.options import Policy
from gridbench.micro import result_kind
from gridbench.micro.options import FOLDER, MicroParameters
from gridbench.micro.record import FORM, RESULTS, Completeness, Results
from gridbench.micro.results import results_of
from gridbench.micro.sessions import Elsewhere, sessions_of
from gridbench.micro.workloads import LIMITS, PYTHON, WORKLOADS, C, Sizes, case_of, check_workloads
from gridbench.printing import Printing
from gridbench.process.children import Leftovers, PythonLaunch
from gridbench.quantities import AUTO
from gridbench.results_folder import unwritable
from gridbench.run.participants import find_participant
from gridbench.schema import record_of
from gridbench.statistics.series import Status
from gridbench.terminal import say

# ---- The points of a run


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPoint(PlannedPoint):
    """A planned point, and how its session measures it."""

    session: Session
    item: Item
    series: Hashable
    """The key of its points of all rounds."""
    companions: tuple[Hashable, ...]
    """Those of all items of its session."""

    @property
    def seconds(self) -> float:
        """Estimate; the first item of a session has the start."""
        start = self.session.start_seconds if self.item is self.session.items[0] else 0.0
        return start + self.item.seconds

    def describe(self) -> str:
        """Engine, workload and round."""
        case = case_of(self.workload, self.parameters)
        return f"{self.engine} {case}, round {self.round + 1}"


def points_of(session: Session, number: int) -> list[SessionPoint]:
    """The points of a session in a round."""
    points = [
        PlannedPoint(
            workload=item.workload, engine=item.engine, parameters=item.parameters, round=number
        )
        for item in session.items
    ]
    series = tuple(point.key_without("round") for point in points)
    return [
        SessionPoint(
            **point.planned_fields, session=session, item=item, series=key, companions=series
        )
        for point, item, key in zip(points, session.items, series, strict=True)
    ]


def planned(sessions: Sequence[Session], seed: int) -> list[SessionPoint]:
    """All points in the order in which they are measured.

    Rounds are outermost, so that a run that is cut off has all engines; within a round the sessions
    come in random order.
    """
    found = []
    for number in range(max((session.rounds for session in sessions), default=0)):
        due = [session for session in sessions if number < session.rounds]
        random.Random(f"{seed} {number}").shuffle(due)
        found += [point for session in due for point in points_of(session, number)]
    return found


class Attempts:
    """What was tried in which round."""

    def __init__(self, points: Iterable[DataPoint] = ()) -> None:
        self._by_series: dict[Hashable, list[DataPoint]] = {}
        self._failed: set[Hashable] = set()
        for point in points:
            self.add(point)

    def add(self, point: DataPoint) -> None:
        """One more."""
        key = point.key_without("round")
        self._by_series.setdefault(key, []).append(point)
        if point.status != "ok":
            self._failed.add(key)

    def futile(self, case: SessionPoint) -> str:
        """Why another try would be a waste of time; empty if it is none."""
        if self._failed.isdisjoint(case.companions):  # the usual case, and a quick answer
            return ""
        own = self._earlier(case.series, case.round)
        if own and all(point.at_limit for point in own):
            return "it did not end within its time limit in earlier rounds"
        tries = [point for key in case.companions for point in self._earlier(key, case.round)]
        if tries and all(point.status in ("failed", "cannot") for point in tries):
            return "its session failed in earlier rounds"
        return ""

    def _earlier(self, series: Hashable, number: int) -> list[DataPoint]:
        return [point for point in self._by_series.get(series, []) if point.round < number]


def completeness(cases: Sequence[SessionPoint], points: Sequence[DataPoint]) -> Completeness:
    """How many of the planned points exist; futile ones are not planned."""
    keys, attempts = {point.identity for point in points}, Attempts(points)
    there = sum(case.identity in keys for case in cases)
    left = [
        case.round + 1 for case in cases if case.identity not in keys and not attempts.futile(case)
    ]
    rounds = max((case.round + 1 for case in cases), default=0)
    return Completeness(
        points=there, planned=there + len(left), round=min(left, default=rounds), rounds=rounds
    )


# ---- The experiment

_REPEATING = 0.08  # the share of the planned time that may go into repeating what was disturbed
_IMPORT_LIMIT = 60.0  # seconds for an engine to be imported


def run_micro(parameters: MicroParameters, sizes: Sizes, policy: Policy, printing: Printing) -> int:
    """Measure what is missing, and report; the exit status of `run_experiment`."""
    workloads = check_workloads(parameters.workloads)
    engines = known_engines(parameters.engines)
    results = replace(parameters.results, out=parameters.results.out or FOLDER)
    with _elsewhere(engines, parameters, sizes, printing.progress()) as elsewhere:
        experiment = MicroExperiment(parameters, sizes, engines, workloads, elsewhere)
        return run_experiment(experiment, results, policy, printing)


def known_engines(names: Sequence[str]) -> dict[str, str]:
    """Driver (MODULE:CLASS) by engine; gridrpc from C counts as one. Without names, all but those
    on batch systems and the null engine. InputError if one is unknown, or measures nothing here."""
    for name in names:
        if name == NULL_ENGINE:
            raise InputError(
                f"the engine `{NULL_ENGINE}` calls no function, and there is nothing to compare",
                remedy="leave it out; `gridbench run --engine null` shows what the benchmark takes",
            )
        if name != C:
            find_engine(name)
    known = {name: point.value for name, point in installed_engines().items()} | {C: ""}
    wanted = names or known.keys() - ONLY_IF_NAMED - {NULL_ENGINE}
    return {name: place for name, place in known.items() if name in wanted}


@contextlib.contextmanager
def _elsewhere(
    engines: Iterable[str], parameters: MicroParameters, sizes: Sizes, console: Console
) -> Iterator[Elsewhere | None]:
    """What is measured on servers, if any are named, with as many workers as on this machine."""
    if not parameters.where.elsewhere:
        yield None
        return
    refusals = [
        InputError(f"`{C}` is measured on this machine only", remedy=f"add --engine {PYTHON}")
    ]
    able: list[str] = []
    for name in engines:
        try:
            if name != C:
                find_participant(name).require_servers()
                able.append(name)
        except InputError as error:
            refusals.append(error)
    if not able:
        raise refusals[-1]
    say(console, "asking the servers for their workers")
    given = ask(parameters.where.grid, parameters.where.servers, patience=sizes.start_limit)
    if given.workers < sizes.workers:
        raise InputError(
            f"the servers have {counted(given.workers, 'worker')}, and {sizes.workers} are"
            " measured",
            remedy="raise `workers` of the servers, or name more of them",
        )
    with limited(given, sizes.workers) as servers:
        for host in servers.hosts:
            say(console, host.describe())
        yield Elsewhere(tuple(able), servers)


class MicroExperiment(Experiment[SessionPoint, DataPoint]):
    """All workloads on all engines."""

    kind = result_kind
    form = FORM
    name = "micro"

    def __init__(
        self,
        parameters: MicroParameters,
        sizes: Sizes,
        engines: Mapping[str, str],
        workloads: Sequence[str],
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self.seed = random.SystemRandom().randrange(1 << 30)
        self._parameters = parameters
        self._sizes = sizes
        self._engines = engines
        self._workloads = workloads
        self._elsewhere = elsewhere
        self._order = 0
        self._note: Callable[[DataPoint], None] | None = None
        self._results: Results | None = None
        self._attempts = Attempts()
        self._usable = UsableSessions([], {}, [])
        self._cases: list[SessionPoint] = []
        self._runner: Runner | None = None

    def record(self) -> dict[str, Any]:
        """How much is measured, and where."""
        sizes = self._sizes
        options = {"sizes": sizes.name, "budget": sizes.budget, "workers": sizes.workers}
        hosts = self._elsewhere.servers.hosts if self._elsewhere else ()
        servers = {"servers": " / ".join(host.describe() for host in hosts)} if hosts else {}
        return options | record_of(self._parameters) | servers

    def open(self, folder: Path, header: Header, *, fresh: bool) -> RecordFile[DataPoint]:
        """InputError also for points of another state of gridrpc's files."""
        header = replace(header, versions=header.versions | {"gridrpc files": _digest()})
        file = self.form.open(folder, header, fresh=fresh)
        self._order, self._note = file.header.seed, file.add
        retry = self._parameters.results.retry_failed
        self._attempts = Attempts(one for one in file.records if stands(one, retry_failed=retry))
        return file

    def batches(
        self, bench: Bench, records: Sequence[DataPoint]
    ) -> Iterator[Sequence[SessionPoint]]:
        """The points of all engines that can be used."""
        del records
        assert self._note is not None
        self._usable = choose(
            self._engines, self._workloads, self._sizes, self._elsewhere, self._parameters.rounds
        )
        self._cases = planned(self._usable.sessions, self._order)
        seconds = sum(case.seconds for case in self._cases)
        sizes = self._sizes
        self._runner = bench.stack.enter_context(
            Runner(
                Limits(start=sizes.start_limit, item=sizes.item_limit, budget=sizes.budget),
                bench.stack.enter_context(Leftovers()),
                RepeatBudget(_REPEATING * seconds),
                note=self._note,
                check=bench.interrupt.check,
            )
        )
        yield self._cases

    def missing(
        self, cases: Sequence[SessionPoint], records: list[DataPoint], policy: Policy
    ) -> Sequence[SessionPoint]:
        """Those without a value, even a disturbed one: disturbed points are repeated at once."""
        del policy
        there = {one.identity for one in records if one.status in ("ok", "cannot")}
        return [case for case in cases if case.identity not in there]

    def ready(self, case: SessionPoint, records: list[DataPoint]) -> SessionPoint | str:
        """Whether earlier rounds leave hope for it."""
        del records
        return self._attempts.futile(case) or case

    def seconds(self, cases: Sequence[SessionPoint]) -> float:
        """The estimates of those that are worth measuring."""
        return sum(case.seconds for case in cases if not self._attempts.futile(case))

    def disturbed(self, record: DataPoint) -> bool:
        """Whether other programs disturbed it, or it was not begun."""
        return record.disturbed or not record.at

    def run(self, case: SessionPoint, bench: Bench) -> DataPoint:
        """Measure a point in the client process of its session."""
        del bench
        assert self._runner is not None
        launch = self._usable.launches[case.session.engine]
        return self._runner.measure(case.session, case.item, launch, case.round)

    def saved(self, record: DataPoint, number: int, bench: Bench) -> None:
        """Remember the outcome, for further rounds."""
        del number, bench
        self._attempts.add(record)

    def outcome(self, record: DataPoint) -> str:
        """Why there is no value; values are in the tables."""
        return "" if record.status == "ok" else f"{record.status}: {record.why}"

    def complete(self, folder: Path, records: list[DataPoint]) -> None:
        """Write results.json."""
        now = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        every = [*records, *self._usable.refusals]
        found = replace(
            results_of(self.form.read(folder)[0], every, now),
            extent=completeness(self._cases, records),
        )
        self._results = found
        try:
            replace_file(folder / RESULTS, json.dumps(found.to_record(), indent=1) + "\n")
        except OSError as error:
            raise unwritable(folder / RESULTS, error) from None

    def exit_status(
        self,
        cases: Sequence[SessionPoint],
        records: list[DataPoint],
        policy: Policy,
        report: int,
    ) -> int:
        """1 also for engines that cannot be loaded; 3 if nothing can be claimed."""
        from gridbench.micro.sentences import claims_something

        assert self._results is not None
        wanted = {case.identity for case in cases}
        found = [one for one in records if one.identity in wanted]
        if any(one.status == "failed" for one in (*found, *self._usable.refusals)):
            return 1
        return report or policy.exit_status(claims=claims_something(self._results))


# ---- The engines that can be used


@dataclass(frozen=True, slots=True)
class UsableSessions:
    """The sessions that can be run."""

    sessions: list[Session]
    launches: dict[str, PythonLaunch]
    """By engine."""
    refusals: list[DataPoint]
    """What cannot be measured, with the reason: the engine is missing, or cannot do it."""


def choose(
    engines: Mapping[str, str],
    workloads: Sequence[str],
    sizes: Sizes,
    elsewhere: Elsewhere | None = None,
    rounds: int | Literal["auto"] = AUTO,
) -> UsableSessions:
    """The sessions of all engines that can be used, and why others cannot. `rounds`: of all
    sessions; AUTO: as many as the sizes say."""
    launches = {LIMITS: launch_of(PYTHON)}
    refused: dict[str, tuple[Status, str]] = {}
    cannot: dict[str, Mapping[str, str]] = {}
    for name, place in engines.items():
        own = environment(name)
        state = own.state() if own else None
        if state is not None and state.kind != "installed":
            refused[name] = ("missing", f"{state.what}: {state.remedy}")
            continue
        launches[name] = launch_of(name)
        if name != C:
            try:
                cannot[name] = _cannot(place, launches[name])
            except ValueError as error:
                refused[name] = ("failed", str(error))
    programs = ""
    try:
        programs = str(built())
    except InputError as error:
        refused[C] = ("missing", " ".join(str(error).split()))
    chosen: list[Session] = []
    refusals: list[DataPoint] = []
    for session in sessions_of(engines, workloads, sizes, programs, elsewhere):
        items = []
        for item in session.items:
            why = reason(cannot.get(session.engine, {}), item.workload, item.parameters)
            status: Status = "cannot" if why else "missing"
            status, why = refused.get(session.engine, (status, why or session.left_out))
            if why:
                refusals.append(
                    DataPoint(
                        workload=item.workload,
                        engine=item.engine,
                        parameters=item.parameters,
                        round=0,
                        status=status,
                        why=why,
                    )
                )
            else:
                items.append(item)
        if items:
            number = session.rounds if rounds == AUTO else rounds
            chosen.append(replace(session, items=tuple(items), rounds=number))
    return UsableSessions(chosen, launches, refusals)


def reason(cannot: Mapping[str, str], workload: str, parameters: dict[str, Any]) -> str:
    """Why an engine cannot do this; empty if it can."""
    return cannot.get(case_of(workload, parameters)) or cannot.get(workload) or ""


def _cannot(place: str, launch: PythonLaunch) -> dict[str, str]:
    """What an engine cannot do: reasons by workload. It is asked in the Python that it lives in.
    ValueError if it cannot be loaded."""
    try:
        ended = subprocess.run(
            [*launch.command, "-m", "gridbench.bench.client", place],
            env=launch.variables, capture_output=True, text=True, check=False,
            timeout=_IMPORT_LIMIT,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ValueError(f"could not be imported within {as_given(_IMPORT_LIMIT)}") from None
    lines = [line.strip() for line in ended.stderr.splitlines() if line.strip()]
    if ended.returncode != 0:
        raise ValueError(lines[-1][:300] if lines else f"ended with {ended.returncode}")
    cannot: dict[str, str] = json.loads(ended.stdout.splitlines()[-1])
    return cannot


def _digest() -> str:
    """Tells one state of gridrpc's files from another of the same version."""
    digest = hashlib.sha256()
    folder = Path(gridrpc.__file__).parent
    for path in sorted(folder.iterdir()):
        if path.suffix in (".py", ".so"):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def list_names(printing: Printing) -> None:
    """Print workloads and engines, and whether engines can be used."""
    engines = {}
    for name in (*known_engines(()), *sorted(ONLY_IF_NAMED)):
        own = environment(name)
        state = own.state() if own else None
        missing = state is not None and state.kind != "installed"
        engines[name] = f"{state.what}: {state.remedy}" if state and missing else "can be used"
        if name in ONLY_IF_NAMED:
            engines[name] += "; only if it is named"
    listed = {"workloads": WORKLOADS, "engines": engines}
    printing.document(lambda: listed)
    if not printing.as_json:
        for title, names in listed.items():
            width = max(map(len, names))
            click.echo(f"{title}:")
            for name, text in names.items():
                click.echo(f"  {name:{width}}  {text}")

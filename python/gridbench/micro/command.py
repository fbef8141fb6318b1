"""The whole of `gridbench micro`: plan, measure what is missing, tell."""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from rich.console import Console

import gridrpc
from gridbench.atomic_write import replace_file
from gridbench.bench.plan import Item, Session, order_of
from gridbench.bench.points import Header, Point, PointsFile, open_points
from gridbench.bench.programs import built
from gridbench.bench.series import Points
from gridbench.bench.session import Repeats, Runner
from gridbench.engines.default import NULL_ENGINE, ONLY_IF_NAMED
from gridbench.engines.environments import environment, launch_of
from gridbench.engines.limit_workers import limited
from gridbench.engines.registry import installed_engines
from gridbench.engines.servers import ask
from gridbench.errors import InputError
from gridbench.formats import about, counted
from gridbench.machine.policy import Policy
from gridbench.machine.quiet import settle
from gridbench.micro.figures import RESULTS, Results
from gridbench.micro.present.notes import claims_something, headline
from gridbench.micro.probe import ProbeFailed, asked
from gridbench.micro.remaining import extent_of, failed_before, missing, seconds_left
from gridbench.micro.results import results_of
from gridbench.micro.sessions import Elsewhere, sessions_of
from gridbench.micro.sizes import FULL, Sizes
from gridbench.micro.workloads import LIMITS, PYTHON, C, case_of, check_workloads
from gridbench.printing import Printing
from gridbench.process.interrupt import Interrupt, Stopped
from gridbench.process.launch import Launch
from gridbench.process.leftovers import Leftovers
from gridbench.progress import Steps
from gridbench.provisional import answer_record
from gridbench.results_folder import say_failed_before
from gridbench.results_lock import sole_use
from gridbench.run.machine import new_header
from gridbench.run.participants import find_participant
from gridbench.terminal import say

_Status = Literal["missing", "failed", "cannot"]
_Refused = tuple[_Status, str]
"""Of what is not measured: the status of its row, and why."""
_REPEATING = 0.08  # the share of the planned time that may go into repeating what was disturbed


@dataclass(frozen=True, kw_only=True, slots=True)
class MicroRequest:
    """What the user asked for."""

    workloads: Sequence[str] = ()
    """Names; none: all."""
    engines: Sequence[str] = ()
    """Names; none: all that are known."""
    sizes: Sizes = FULL
    """What tasks of `work` do is among them."""
    grid: Path | None = None
    """A grid.toml, on whose servers the engines that can are measured besides."""
    servers: tuple[str, ...] = ()
    """Servers of that file, or URLs; none: all of the file."""
    rounds: int | None = None
    """Instead of what the sizes say, for all sessions alike."""
    folder: Path = Path("runs", "micro")
    fresh: bool = False
    retry_failed: bool = False
    policy: Policy = field(default_factory=Policy)
    """What to do if other programs use the machine."""
    printing: Printing = field(default_factory=Printing)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done, and where with."""

    sessions: list[Session]
    launches: dict[str, Launch]
    refusals: list[Point]
    """What is not measured, with the reason: engines that are missing or cannot do it."""

    @property
    def rounds(self) -> int:
        """The most that any session has."""
        return max((session.rounds for session in self.sessions), default=0)


def run_micro(request: MicroRequest) -> int:
    """Measure what is missing, print, keep. Returns the exit status.

    0: all was measured. 1: something failed. 3: other programs disturbed it, so that nothing can be
    claimed, and that was not accepted. 128 + n: ended by signal n; what was measured is kept.
    InputError for bad input.
    """
    console = request.printing.progress()
    workloads = check_workloads(request.workloads)
    known = known_engines(request.engines)
    with sole_use(request.folder, console), _elsewhere(known, request, console) as elsewhere:
        return _measured(request, known, workloads, elsewhere, console)


@contextlib.contextmanager
def _elsewhere(
    known: Iterable[str], request: MicroRequest, console: Console
) -> Iterator[Elsewhere | None]:
    """What is measured on servers, if any are named, with as many workers as on this machine."""
    if not (request.grid or request.servers):
        yield None
        return
    refusals: list[InputError] = []
    able: list[str] = []
    for name in known:
        try:
            if name != C:
                find_participant(name).require_servers()
                able.append(name)
        except InputError as error:
            refusals.append(error)
    if not able:
        raise (
            refusals[0]
            if refusals
            else InputError(
                f"`{C}` is measured on this machine only", remedy=f"add --engine {PYTHON}"
            )
        )
    say(console, "asking the servers for their workers")
    given = ask(request.grid, request.servers, patience=request.sizes.start_limit)
    if given.workers < request.sizes.workers:
        raise InputError(
            f"the servers have {counted(given.workers, 'worker')}, and {request.sizes.workers} are"
            " measured",
            remedy="raise `workers` of the servers, or name more of them",
        )
    with limited(given, request.sizes.workers) as servers:
        for host in servers.hosts:
            say(console, host.told())
        yield Elsewhere(tuple(able), servers)


def _measured(
    request: MicroRequest,
    known: dict[str, str],
    workloads: Sequence[str],
    elsewhere: Elsewhere | None,
    console: Console,
) -> int:
    """Measure what is missing, print, keep; the exit status."""
    if request.fresh:  # before earlier results are forgotten
        settle(request.policy, console)
    header = _header(request.sizes, elsewhere)
    points = open_points(
        request.folder, header, fresh=request.fresh, retry_failed=request.retry_failed
    )
    try:
        with Interrupt() as interrupt, Leftovers() as leftovers:
            plan = make_plan(known, workloads, request, elsewhere)
            say_failed_before(console, failed_before(plan.sessions, points), "measurement")
            seconds = sum(seconds_left(session, points.standing) for session in plan.sessions)
            if seconds:
                say(
                    console,
                    f"this takes about {about(seconds)}; Ctrl-C ends it, and the same"
                    " command goes on with what is missing",
                )
                if not request.fresh:
                    settle(request.policy, console, stopped=lambda: interrupt.came)
            progress = Steps(console, "session", seconds=seconds)
            runner = Runner(
                request.sizes.limits,
                leftovers,
                Repeats(_REPEATING * seconds),
                save=points.add,
                check=interrupt.check,
            )
            with contextlib.suppress(Stopped), progress:
                measure(plan, points, runner, progress)
        results = results_of(points.header, points.points + plan.refusals, seconds_now())
        results = replace(results, extent=extent_of(plan.sessions, points.points))
        tell(results, request.folder, request.printing.tables())
        request.printing.document(lambda: answer_record(headline(results)[0]) | results.to_record())
        if interrupt.came:
            console.print("stopped: what was measured is kept")
            return interrupt.exit_status
        if Points(points.points + plan.refusals).failed:
            return 1
        return request.policy.exit_status(claims=claims_something(results))
    finally:
        points.close()


def known_engines(names: Sequence[str]) -> dict[str, str]:
    """Driver (MODULE:CLASS) by engine; gridrpc from C counts as one. Without names, all but those
    on batch systems and the null engine. InputError if one is unknown, or measures nothing here."""
    known = {name: point.value for name, point in installed_engines().items()} | {C: ""}
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            guess = f"did you mean `{near[0]}`? " if near else ""
            raise InputError(
                f"unknown engine `{name}`", remedy=f"{guess}the engines are {', '.join(known)}"
            )
    if NULL_ENGINE in names:
        raise InputError(
            f"the engine `{NULL_ENGINE}` calls no function, and there is nothing to compare",
            remedy="leave it out; `gridbench run --engine null` shows what the benchmark takes",
        )
    wanted = names or known.keys() - ONLY_IF_NAMED - {NULL_ENGINE}
    return {name: place for name, place in known.items() if name in wanted}


def make_plan(
    known: dict[str, str],
    workloads: Sequence[str],
    request: MicroRequest,
    elsewhere: Elsewhere | None = None,
) -> Plan:
    """The sessions of all engines that can be used, and why the others cannot."""
    launches = {LIMITS: launch_of(PYTHON)}
    refused: dict[str, _Refused] = {}
    cannot: dict[str, dict[str, str]] = {}
    for name, place in known.items():
        own = environment(name)
        state = own.state() if own else None
        if state is not None and state.kind != "installed":
            refused[name] = ("missing", f"{state.what}: {state.remedy}")
            continue
        launches[name] = launch_of(name)
        if name != C:
            try:
                cannot[name] = asked(place, launches[name])
            except ProbeFailed as failure:
                refused[name] = ("failed", str(failure))
    programs = ""
    try:
        programs = str(built())
    except InputError as error:
        refused[C] = ("missing", " ".join(str(error).split()))
    sessions = sessions_of(known, workloads, request.sizes, programs, elsewhere)
    if request.rounds:
        sessions = [replace(session, rounds=request.rounds) for session in sessions]
    chosen: list[Session] = []
    refusals: list[Point] = []
    for session in sessions:
        items = []
        for item in session.items:
            why = reason(cannot.get(session.engine, {}), item)
            other: _Refused = ("cannot", why) if why else ("missing", session.left_out)
            status, why = refused.get(session.engine, other)
            if why:
                refusals.append(_refusal(item, status, why))
            else:
                items.append(item)
        if items:
            chosen.append(replace(session, items=tuple(items)))
    return Plan(chosen, launches, refusals)


def reason(cannot: dict[str, str], item: Item) -> str:
    """Why an engine cannot do this; nothing if it can."""
    return cannot.get(case_of(item)) or cannot.get(item.workload) or ""


def _refusal(item: Item, status: _Status, why: str) -> Point:
    return Point(
        workload=item.workload,
        engine=item.engine,
        parameters=item.parameters,
        round=0,
        status=status,
        why=why,
    )


def measure(plan: Plan, points: PointsFile, runner: Runner, progress: Steps) -> None:
    """Run the sessions round by round, as far as their points are missing. Raises Stopped."""
    for number in range(plan.rounds):
        for session in order_of(plan.sessions, number, points.header.seed):
            if items := missing(session, number, points.standing):
                progress.begin(
                    f"round {number + 1} of {plan.rounds}, {session.label}, {session.name}",
                    expected=session.seconds_of(items),
                )
                began = time.monotonic()
                runner.run(session, items, plan.launches[session.engine], number)
                progress.end(time.monotonic() - began)


def tell(results: Results, folder: Path, console: Console) -> None:
    """Show the results, and keep them and their reports, as far as there are any yet."""
    from gridbench.micro.present import print_tables, write_markdown, write_report

    print_tables(console, results)
    path = folder / RESULTS
    try:
        text = json.dumps(results.to_record(), indent=1) + "\n"
        replace_file(path, text)
        for name, write in (("report.html", write_report), ("performance.md", write_markdown)):
            path = folder / name
            write(results, path)
    except OSError as error:
        raise InputError(
            f"cannot write the results: {error.strerror}",
            file=path,
            remedy="make room, and run the same again: all that was measured is kept",
        ) from None
    say(console, f"results: {folder}")


def seconds_now() -> str:
    """The time, ISO 8601."""
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")


def _header(sizes: Sizes, elsewhere: Elsewhere | None) -> Header:
    hosts = elsewhere.servers.hosts if elsewhere else ()
    options = {
        "sizes": sizes.name,
        "budget": sizes.budget,
        "workers": sizes.workers,
        "task": sizes.body,
        **({"servers": " / ".join(host.told() for host in hosts)} if hosts else {}),
    }
    header = new_header(options, seed=random.SystemRandom().randrange(1 << 30))
    return replace(header, versions=header.versions | {"gridrpc files": _digest()})


def _digest() -> str:
    """Tells one state of gridrpc's files from another of the same version."""
    digest = hashlib.sha256()
    folder = Path(gridrpc.__file__).parent
    for path in sorted(folder.iterdir()):
        if path.suffix in (".py", ".so"):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]

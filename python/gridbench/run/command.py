"""The whole of `gridbench run`: check everything, run each engine, then tell and report.

Nothing is started before all that can be wrong with the input has been looked at. The
libraries for tables and plots are loaded only after the last engine was measured: an
engine that forks from this process would have to copy them with it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gridbench.engines.limit_workers import limited
from gridbench.engines.python_tasks import one_line
from gridbench.engines.servers import ask
from gridbench.errors import InputError, print_error
from gridbench.machine.policy import Policy
from gridbench.machine.quiet import settle
from gridbench.printing import Printing
from gridbench.process.fd_limit import make_room_for_files
from gridbench.process.interrupt import Interrupt
from gridbench.provisional import answer_record
from gridbench.results_folder import default_folder
from gridbench.results_lock import sole_use
from gridbench.run.client import EngineFacts
from gridbench.run.feasibility import check_body, check_memory, check_workers, most_at_once
from gridbench.run.machine import usable_processors
from gridbench.run.participants import Participant, find_participant
from gridbench.run.present import ahead
from gridbench.run.recorder import REPORT, complete, place_of, prepare
from gridbench.run.rounds import Rounds, counting, disturbed_only, run_rounds
from gridbench.run.runner import Options, Verdict, run_engine
from gridbench.statistics.interval import index_of_median
from gridbench.terminal import say
from gridbench.workload.body import SLEEP
from gridbench.workload.workload import Setup, Tasks, Workload, read_workload

if TYPE_CHECKING:
    from rich.console import Console

    from gridbench.analysis.summary import Summary


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What the command line asks for."""

    setup_file: Path | None
    """None: `tasks` are run."""
    engines: Sequence[str]
    folder: Path | None
    """None: one below `runs`, named after the time."""
    tasks: Tasks = field(default_factory=Tasks)
    time_scale: float = 1.0
    body: str = SLEEP
    """What tasks do: see `gridbench.workload.body`."""
    grid: Path | None = None
    """A grid.toml, whose servers have the workers."""
    servers: tuple[str, ...] = ()
    """Which of them; or URLs."""
    cores: int | None = None
    """Workers, instead of as many as the set-up or the servers say."""
    replace: bool = False
    policy: Policy = field(default_factory=Policy)
    """What to do if other programs use the machine."""
    printing: Printing = field(default_factory=Printing)
    options: Options = field(default_factory=Options)
    rounds: Rounds = field(default_factory=Rounds)


def run_benchmark(request: RunRequest) -> int:
    """Run it all; the exit status. InputError if the input cannot be used.

    0: all is well. 1: tasks failed, data was altered, an engine failed, or there is no report.
    2: the input or the output folder cannot be used. 3: all runs of an engine were disturbed, and
    that was not accepted. 128 + n: ended by signal n.
    """
    make_room_for_files()
    workload_on = _workload(request)
    _refuse_doubles(request.engines)
    participants = [find_participant(name) for name in request.engines]
    console = request.printing.progress()
    if not (request.grid or request.servers):
        workload = workload_on(request.cores)
        check_workers(workload.setup)
        return _run(request, workload, participants, console)
    for one in participants:
        one.require_servers()
    say(console, "asking the servers for their workers")
    given = ask(request.grid, request.servers, patience=request.options.start_timeout)
    with limited(given, request.cores) as servers:
        for host in servers.hosts:
            say(console, host.told())
        for one in participants:
            one.use_servers(servers)
        return _run(request, workload_on(servers.workers), participants, console)


def _workload(request: RunRequest) -> Callable[[int | None], Workload]:
    """The workload on so many workers; None: on as many as the set-up file says, or as this machine
    has processors. InputError if the file cannot be used."""
    if request.setup_file is None:

        def with_workers(workers: int | None) -> Workload:
            cores = workers or usable_processors()
            return request.tasks.workload(cores, request.time_scale, request.body)

        return with_workers
    read = read_workload(request.setup_file, request.time_scale, request.body)
    return lambda workers: replace(
        read, setup=replace(read.setup, nnodes=workers or read.setup.nnodes)
    )


def _run(
    request: RunRequest, workload: Workload, participants: list[Participant], console: Console
) -> int:
    setup, options = workload.setup, request.options
    named = {one.name: one for one in participants}
    facts: dict[str, EngineFacts] = {}
    for one in participants:
        if one.environment() is not None:  # which takes seconds
            say(console, f"{one.name}: loading")
        facts[one.name] = one.facts(most_at_once(setup), warm=options.warm)
    check_body(workload.body, facts)
    if not any(one.servers for one in participants):  # whose memory is for their doctor to look at
        check_memory(setup, facts)
    folder = request.folder or default_folder()
    with ExitStack() as stack:
        stack.enter_context(sole_use(folder, console))
        places = prepare(
            folder,
            list(named),
            apart=len(named) > 1 or request.rounds.most > 1,
            replace=request.replace,
            settled=lambda: settle(request.policy, console),
        )
        interrupt = stack.enter_context(Interrupt())

        def run(engine: str, number: int | None) -> Verdict:
            return run_engine(
                named[engine],
                facts[engine],
                workload,
                options=replace(options, round=number),
                folder=place_of(places[engine], number),
                interrupt=interrupt,
                console=console,
            )

        verdicts = run_rounds(
            list(named), run, request.rounds, interrupt=interrupt, console=console
        )
        statuses = [verdict.exit_status for verdict in verdicts]
        statuses.append(_conclude(folder, verdicts, setup, request.printing))
    # An engine of which no run counts, though none failed, was disturbed each time.
    claims = all(counting(verdicts, engine) for engine in named)
    return max(statuses) or request.policy.exit_status(claims=claims)


def _refuse_doubles(engines: Sequence[str]) -> None:
    for number, name in enumerate(engines):
        if name in engines[:number]:
            raise InputError(f"the engine `{name}` is asked for twice", remedy="name it once")


def _conclude(folder: Path, verdicts: list[Verdict], setup: Setup, printing: Printing) -> int:
    """Timelines, summaries and reports of what was measured; the exit status of this part."""
    from gridbench.run.present import Shown, print_summaries

    problems: list[str] = []
    status = 0
    summaries: dict[Path, Summary] = {}
    rounds = Counter(verdict.engine for verdict in verdicts)
    for verdict in verdicts:
        number = f", round {verdict.record['round']}" if rounds[verdict.engine] > 1 else ""
        name = f"{verdict.engine}{number}"
        problems += [f"{name}: {message}" for message in verdict.messages]
        try:
            summaries[verdict.folder] = complete(verdict.folder, verdict.record, setup)
        except InputError as error:
            status = 2
            if str(error) not in verdict.messages:
                problems.append(f"{name}: {error}")
    totals = {engine: counting(verdicts, engine) for engine in rounds}
    shown = [_middle([v for v in verdicts if v.engine == engine]) for engine in rounds]
    columns = [
        Shown(
            one.engine,
            summaries[one.folder],
            tuple(totals[one.engine] or disturbed_only(verdicts, one.engine)),
            len(totals[one.engine]),
            rounds[one.engine],
        )
        for one in shown
        if one.folder in summaries
    ]
    if columns:
        print_summaries(printing.tables(), columns)
    told = _answer(verdicts, totals)
    if told:
        say(printing.tables(), told)
    printing.document(lambda: _document(folder, verdicts, told))
    measured = [place for place, summary in summaries.items() if summary.ok or summary.failed]
    if measured:
        reports = [([one.folder], one.folder / REPORT) for one in shown if one.folder in measured]
        if folder not in measured:
            reports.append((measured, folder / REPORT))
        if problem := _write_reports(reports):
            problems.append(problem)
            status = max(status, 1)
    sys.stdout.flush()
    for problem in problems:
        print_error(problem)
    printing.say(f"results: {folder}")
    return status


def _answer(verdicts: Sequence[Verdict], totals: Mapping[str, Sequence[float]]) -> str:
    """Who was ahead; empty for a single run that counts, or that did not end well."""
    busy = {engine: disturbed_only(verdicts, engine) for engine in totals}
    neither = [engine for engine in totals if not totals[engine] and not busy[engine]]
    if not neither:
        return ahead(totals, busy)
    if len(totals) == 1:
        return ""
    return f"Nothing can be claimed: no run of {' or '.join(neither)} ended well."


def _middle(rounds: Sequence[Verdict]) -> Verdict:
    """That of median time of the rounds of an engine that count or, if none does, of those that
    only other programs keep from counting; the first one without either."""
    valid = [one for one in rounds if one.record["valid"]] or [
        one for one in rounds if one.only_disturbed
    ]
    return valid[index_of_median([one.total for one in valid])] if valid else rounds[0]


def _document(folder: Path, verdicts: list[Verdict], told: str) -> dict[str, object]:
    """What `--json` prints: of each run what its run.json holds, and who was ahead. A run goes by
    its engine, in further rounds with their number, as its folder does."""
    names = [
        one.engine if one.record["round"] in (None, 1) else f"{one.engine}-{one.record['round']}"
        for one in verdicts
    ]
    records = {name: one.record for name, one in zip(names, verdicts, strict=True)}
    return {"results": folder, **answer_record(told), "runs": records}


def _write_reports(reports: list[tuple[list[Path], Path]]) -> str:
    """Write each report; what went wrong, if anything. The results are safe in any case."""
    try:
        from gridbench.result_kind import RUNS, module_of

        while reports:
            module_of(RUNS).write_report(*reports[0])
            reports.pop(0)
    except Exception as error:  # whatever it is, it must not hide the run's own outcome
        reason = error.what if isinstance(error, InputError) else one_line(error)
        return (
            f"{reports[0][1]}: the report could not be written: {reason}\n"
            "hint: the results are kept; `gridbench report` makes it from them"
        )
    return ""

"""The whole of `gridbench run`: check everything, run each engine, then tell and report.

Nothing is started before all that can be wrong with the input has been looked at. The
libraries for tables and plots are loaded only after the last engine was measured: an
engine that forks from this process would have to copy them with it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gridbench.engines.fewer import limited
from gridbench.engines.python_tasks import one_line
from gridbench.engines.servers import ask
from gridbench.errors import InputError
from gridbench.machine.policy import Policy
from gridbench.machine.quiet import settle
from gridbench.printing import Printing
from gridbench.process.interrupt import Interrupt
from gridbench.results_folder import default_folder
from gridbench.run.client import Facts
from gridbench.run.feasibility import check_body, check_memory, check_workers, most_at_once
from gridbench.run.folders import prepare
from gridbench.run.participants import Participant, find_participant
from gridbench.run.recorder import REPORT, complete
from gridbench.run.runner import Options, Verdict, run_engine
from gridbench.workload.body import SLEEP
from gridbench.workload.setup_file import Setup
from gridbench.workload.workload import Workload, read_workload

if TYPE_CHECKING:
    from rich.console import Console

    from gridbench.analysis.summary import Summary


@dataclass(frozen=True, slots=True)
class Request:
    """What the command line asks for."""

    setup_file: Path
    engines: Sequence[str]
    folder: Path | None
    """None: one below `runs`, named after the time."""
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


def run_benchmark(request: Request) -> int:
    """Run it all; the exit status. InputError if the input cannot be used.

    0: all is well. 1: tasks failed, data was altered, an engine failed, or there is no report.
    2: the input or the output folder cannot be used. 3: a run was disturbed, and that was not
    accepted. 128 + n: ended by signal n.
    """
    workload = read_workload(request.setup_file, request.time_scale, request.body)
    _refuse_doubles(request.engines)
    participants = [find_participant(name) for name in request.engines]
    console = request.printing.progress()
    if not (request.grid or request.servers):
        workload = _on(workload, request.cores or workload.setup.nnodes)
        check_workers(workload.setup)
        return _run(request, workload, participants, console)
    for one in participants:
        one.require_servers()
    console.print("asking the servers for their workers", soft_wrap=True)
    given = ask(request.grid, request.servers, patience=request.options.start_timeout)
    with limited(given, request.cores) as servers:
        for host in servers.hosts:
            console.print(host.told(), soft_wrap=True)
        for one in participants:
            one.use_servers(servers)
        return _run(request, _on(workload, servers.workers), participants, console)


def _on(workload: Workload, workers: int) -> Workload:
    """The workload on so many workers."""
    return replace(workload, setup=replace(workload.setup, nnodes=workers))


def _run(
    request: Request, workload: Workload, participants: list[Participant], console: Console
) -> int:
    setup, options = workload.setup, request.options
    facts: dict[str, Facts] = {}
    for one in participants:
        if one.environment() is not None:  # which takes seconds
            console.print(f"{one.name}: loading", soft_wrap=True)
        facts[one.name] = one.facts(most_at_once(setup), warm=options.warm)
    check_body(workload.body, facts)
    if not any(one.servers for one in participants):  # whose memory is for their doctor to look at
        check_memory(setup, facts)
    folder = request.folder or default_folder()
    places = prepare(
        folder,
        list(request.engines),
        replace=request.replace,
        settled=lambda: settle(request.policy, console),
    )

    verdicts: list[Verdict] = []
    with Interrupt() as interrupt:
        for participant in participants:
            verdicts.append(
                run_engine(
                    participant,
                    facts[participant.name],
                    workload,
                    options=options,
                    folder=places[participant.name],
                    interrupt=interrupt,
                    console=console,
                )
            )
            if interrupt.came:
                break
        statuses = [verdict.exit_status for verdict in verdicts]
        statuses.append(_conclude(folder, verdicts, setup, request.printing))
    claims = not any(verdict.disturbed for verdict in verdicts)
    return max(statuses) or request.policy.exit_status(claims=claims)


def _refuse_doubles(engines: Sequence[str]) -> None:
    for number, name in enumerate(engines):
        if name in engines[:number]:
            raise InputError(f"the engine `{name}` is asked for twice", remedy="name it once")


def _conclude(folder: Path, verdicts: list[Verdict], setup: Setup, printing: Printing) -> int:
    """Timelines, summaries and reports of what was measured; the exit status of this part."""
    from gridbench.run.summary_table import print_summaries

    problems: list[str] = []
    status = 0
    summaries: list[tuple[str, Summary]] = []
    measured: list[Path] = []
    for verdict in verdicts:
        problems += [f"{verdict.engine}: {message}" for message in verdict.messages]
        try:
            summary = complete(verdict.folder, verdict.record, setup)
        except InputError as error:
            status = 2
            if str(error) not in verdict.messages:
                problems.append(f"{verdict.engine}: {error}")
            continue
        summaries.append((verdict.engine, summary))
        if summary.ok or summary.failed:
            measured.append(verdict.folder)
    if summaries:
        print_summaries(printing.tables(), summaries)
    printing.document(lambda: _document(folder, verdicts))
    if measured:
        reports = [([place], place / REPORT) for place in measured]
        if folder not in measured:
            reports.append((measured, folder / REPORT))
        if problem := _write_reports(reports):
            problems.append(problem)
            status = max(status, 1)
    sys.stdout.flush()
    for problem in problems:
        print(f"gridbench: {problem}", file=sys.stderr)
    printing.say(f"results: {folder}")
    return status


def _document(folder: Path, verdicts: list[Verdict]) -> dict[str, object]:
    """What `--json` prints: of each engine what its run.json holds."""
    return {
        "results": folder,
        "runs": {verdict.engine: verdict.record for verdict in verdicts},
    }


def _write_reports(reports: list[tuple[list[Path], Path]]) -> str:
    """Write each report; what went wrong, if anything. The results are safe in any case."""
    try:
        from gridbench.results.kinds import RUNS, module_of

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

"""The whole of `gridbench scenario`: plan, run what is missing, tell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from gridbench.engines.servers import ask
from gridbench.errors import InputError, print_error
from gridbench.formats import counted
from gridbench.machine.quiet import settle
from gridbench.machine.words import DISTURBED
from gridbench.printing import Printing
from gridbench.process.interrupt import Interrupt
from gridbench.process.leftovers import Leftovers
from gridbench.provisional import answer_record
from gridbench.results_folder import default_folder, say_stopped
from gridbench.results_lock import sole_use
from gridbench.run.participants import find_participant
from gridbench.scenario.grids import ScenarioCase, cases_of
from gridbench.scenario.linked import open_place, refuse_links
from gridbench.scenario.listing import listing_record, print_listing
from gridbench.scenario.plan import Judge, ScenarioItem
from gridbench.scenario.request import ScenarioRequest
from gridbench.scenario.results import REPORT, folders_of_results, read_cases
from gridbench.scenario.session import ScenarioSession
from gridbench.statistics.claims import FEWEST
from gridbench.terminal import say


def run_scenarios(request: ScenarioRequest) -> int:
    """Run what is missing, and report; the exit status. InputError for bad input.

    0: every case was run or skipped. 1: a case failed. 3: other programs disturbed all that were
    run, and that was not accepted. 128 + n: ended by signal n; what was measured is kept.
    """
    grids = {number: cases_of(number, request.choice) for number in request.scenarios}
    for number, engine in enumerate(request.engines):
        if engine in request.engines[:number]:
            raise InputError(f"the engine `{engine}` is asked for twice", remedy="name it once")
    refuse_links(request.place, request.engines)
    participants = [find_participant(name) for name in request.engines]
    if request.place.servers:
        for one in participants:
            one.require_servers()
        if not request.dry_run:
            request = _asked(request, grids.values())
    judge = Judge(
        participants,
        servers=request.servers,
        times=request.times,
        place=request.place,
        warm=request.warm,
        limits=request.limits,
    )
    if request.dry_run:
        _list_cases(request, grids, judge)
        return 0
    base = request.folder or default_folder(_name(request.scenarios))
    folders = {n: base if len(grids) == 1 else base / f"scenario-{n}" for n in grids}
    console = request.printing.progress()
    statuses = [0]
    with ExitStack() as stack:
        for folder in dict.fromkeys([base, *folders.values()]):
            stack.enter_context(sole_use(folder, console))
        settle(request.policy, console)
        interrupt = stack.enter_context(Interrupt())
        leftovers = stack.enter_context(Leftovers())
        spaces = stack.enter_context(open_place(request.place))
        session = ScenarioSession(
            request,
            judge=judge,
            interrupt=interrupt,
            leftovers=leftovers,
            console=console,
            spaces=spaces,
        )
        for number, cases in grids.items():
            statuses.append(session.run(number, cases, folders[number]))
            if interrupt.came:
                break
        statuses.append(tell(base, request.printing))
        if interrupt.came:
            say_stopped(console, base)
            return interrupt.exit_status
    request.printing.say(f"results: {base}")
    return max(statuses) or request.policy.exit_status(claims=_claims(base))


def _list_cases(
    request: ScenarioRequest, grids: Mapping[int, Sequence[ScenarioCase]], judge: Judge
) -> None:
    records = []
    for number, cases in grids.items():
        items = [
            ScenarioItem(case, engine, n)
            for case in cases
            for engine in request.engines
            for n in range(request.rounds or FEWEST)
        ]
        print_listing(request.printing.tables(), number, items, judge, request.limits)
        records.append(listing_record(number, items, judge, request.limits))
    request.printing.document(lambda: records)


def _claims(base: Path) -> bool:
    """Whether any case counts, or none was disturbed."""
    results = [result for folder in folders_of_results(base) for result in read_cases(folder)]
    disturbed = any(result.reason_kind == DISTURBED for result in results)
    return not disturbed or any(result.status == "done" for result in results)


def _asked(request: ScenarioRequest, grids: Iterable[Sequence[ScenarioCase]]) -> ScenarioRequest:
    """The request with what the servers have, which they are asked for once.

    InputError if they cannot be used, or have too few workers for each and every case.
    """
    console = request.printing.progress()
    say(console, "asking the servers for their workers")
    given = ask(request.grid, request.names, patience=request.start_timeout)
    for host in given.hosts:
        say(console, host.told())
    fewest = min(case.cores for cases in grids for case in cases)
    if given.workers < fewest:
        raise InputError(
            f"the servers have {counted(given.workers, 'worker')}, and no case needs less than"
            f" {fewest:,}",
            remedy=f"add --cores {given.workers}, or raise `workers` of the servers",
        )
    place = replace(request.place, nodes=len(given.hosts))
    return replace(request, servers=given, place=place)


def tell(base: Path, printing: Printing) -> int:
    """Say what the results in `base` tell, and write their reports; 1 if one cannot be written."""
    from gridbench.scenario.present import print_answers, write_overall, write_report

    status = 0
    folders = folders_of_results(base)
    print_answers(printing.tables(), folders)
    printing.document(lambda: _document(base, folders))
    reports: list[Callable[[], None]] = [
        partial(write_report, folder, folder / REPORT) for folder in folders
    ]
    if folders and folders != [base]:
        reports.append(partial(write_overall, folders, base / REPORT))
    for write in reports:
        try:
            write()
        except InputError as error:
            status = 1
            print_error(error)
    return status


def _document(base: Path, folders: Sequence[Path]) -> dict[str, object]:
    """What `--json` prints: the answer of each folder, and the cases of all scenarios as
    cases.jsonl has them."""
    from gridbench.scenario.cells import cells_of
    from gridbench.scenario.present.verdict import verdict

    results = {folder: list(read_cases(folder)) for folder in folders}
    answers = [
        {"folder": folder, **answer_record(verdict(cells_of(cases)))}
        for folder, cases in results.items()
    ]
    records = [asdict(case) for own in results.values() for case in own]
    return {"results": base, "answers": answers, "cases": records}


def _name(scenarios: Sequence[int]) -> str:
    return f"scenario-{scenarios[0]}" if len(scenarios) == 1 else "scenarios"

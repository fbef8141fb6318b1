"""The whole of `gridbench data`: plan, run what is missing, tell."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path

from rich.console import Console

from gridbench.datagrid.figures import verdict
from gridbench.datagrid.going_on import open_folder
from gridbench.datagrid.plan import (
    Plan,
    measured_disturbed,
    missing,
    plan_of,
    without,
)
from gridbench.datagrid.record import FORM
from gridbench.datagrid.request import Request
from gridbench.datagrid.session import open_session
from gridbench.errors import InputError
from gridbench.formats import counted
from gridbench.machine.quiet import settle
from gridbench.machine.rule import disturbed
from gridbench.process.interrupt import Interrupt
from gridbench.provisional import answer_record
from gridbench.record_file import Header, failed_before, latest
from gridbench.results_folder import (
    default_folder,
    report_in,
    say_failed_before,
    say_stopped,
    say_what_is_there,
)
from gridbench.run.machine import new_header
from gridbench.sole_use import sole_use
from gridbench.terminal import say


def run_data(request: Request) -> int:
    """Run what is missing, and report; the exit status. InputError for bad input.

    0: all cases went well, and all data were right. 1: one did not. 3: other programs disturbed all
    cases, and that was not accepted. 128 + n: ended by signal n; what was measured is kept.
    """
    folder = request.folder or default_folder(request.name)
    console = request.printing.progress()
    plan = plan_of(request)
    with sole_use(folder, console):
        return _run(request, plan, folder, console)


def _run(request: Request, plan: Plan, folder: Path, console: Console) -> int:
    for one, why in plan.skipped:
        say(console, f"{one.told()}: left out, as {why}")
    built, failure = _build(request, console)
    settle(request.policy, console)
    file = open_folder(folder, header_of(request), request.engines, fresh=request.fresh)
    todo = missing(plan.wanted, file.records, accepted=request.policy.accept)
    failed = [] if request.retry_failed else failed_before(todo, latest(file.records))
    todo = [one for one in without(todo, failed) if one.engine in built]
    say_what_is_there(console, len(plan.wanted) - len(todo), len(plan.wanted), "case")
    say_failed_before(console, [one.told() for one in failed], "case")
    before = measured_disturbed(latest(file.records))
    if again := len({one.identity for one in todo} & before):
        are = "is" if again == 1 else "are"
        console.print(
            f"{counted(again, 'case')} that other programs disturbed {are} measured again"
        )
    with Interrupt() as interrupt:
        try:
            if todo:
                with open_session(request, interrupt.check, console) as session:
                    session.run(todo, file)
        except InputError as error:
            # What was measured before, and on other data grids, is told first.
            if not file.records:
                raise
            failure = error
        finally:
            file.close()
        status = _tell(folder, request)
        if interrupt.came:
            say_stopped(console, folder)
            return interrupt.exit_status
    request.printing.say(f"results: {folder}")
    if failure is not None:
        raise failure
    cases = FORM.read(folder)[1]
    verdicts = [verdict(case)[0] for case in cases]
    if "failed" in verdicts:
        return 1
    undisturbed = not all(map(disturbed, cases))
    return status or request.policy.exit_status(claims=undisturbed)


def header_of(request: Request) -> Header:
    """What all cases of a folder have in common."""
    return new_header(request.record())


def _tell(folder: Path, request: Request) -> int:
    """Say what the results tell, and write their report; 1 if it cannot be written."""
    from gridbench.datagrid.present import answer, print_table, write_report

    cases = FORM.read(folder)[1]
    print_table(request.printing.tables(), cases)
    request.printing.document(
        lambda: {
            "results": folder,
            **answer_record(answer(cases)),
            "cases": [asdict(one) for one in cases],
        }
    )
    return report_in(folder, write_report)


def _build(request: Request, console: Console) -> tuple[set[str], InputError | None]:
    """Build the engines that are not there, or not of these sources. Returns the names of those
    that can be used, and why the first of the others cannot. InputError if none can be used."""
    built: set[str] = set()
    failure: InputError | None = None

    def tell(name: str, line: str) -> None:
        say(console, f"{name}: {line}")

    for engine in request.engines:
        try:
            engine.ensure(partial(tell, engine.name))
        except InputError as error:
            failure = failure or error
            if len(request.engines) > 1:
                tell(engine.name, f"left out: {error}")
        else:
            built.add(engine.name)
    if failure and not built:
        raise failure
    return built, failure

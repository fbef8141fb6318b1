"""The whole of `gridbench data crossover`: plan, measure what is missing, tell."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from gridbench.datagrid.crossover.answer import answer_of
from gridbench.datagrid.crossover.grid import plans_of
from gridbench.datagrid.crossover.kept import keep
from gridbench.datagrid.crossover.plan import wanted_of
from gridbench.datagrid.crossover.record import FORM, Sharing
from gridbench.datagrid.crossover.request import Request
from gridbench.datagrid.crossover.session import Session, header_of
from gridbench.machine.quiet import settle
from gridbench.machine.rule import disturbed
from gridbench.process.interrupt import Interrupt
from gridbench.record_file import failed_before, missing
from gridbench.results_folder import (
    default_folder,
    report_in,
    say_failed_before,
    say_stopped,
    say_what_is_there,
)
from gridbench.run.participants import find_participant
from gridbench.sole_use import sole_use


def run_crossover(request: Request) -> int:
    """Measure what is missing, and report; the exit status. InputError for bad input.

    0: all was measured or skipped. 1: something failed. 3: other programs disturbed all of it, and
    that was not accepted. 128 + n: ended by signal n; what was measured is kept.
    """
    for name in request.engines:
        find_participant(name)
    folder = request.folder or default_folder("crossover")
    console = request.printing.progress()
    with sole_use(folder, console):
        return _run(request, folder, console)


def _run(request: Request, folder: Path, console: Console) -> int:
    plans = plans_of(request, console)
    settle(request.policy, console)
    file = FORM.open(folder, header_of(request), fresh=request.fresh)
    with Interrupt() as interrupt:
        try:
            wanted = wanted_of(request)
            todo = missing(wanted, file.records)
            failed = [] if request.retry_failed else failed_before(todo, file.records)
            todo = [one for one in todo if one not in failed]
            say_what_is_there(console, len(wanted) - len(todo), len(wanted), "measurement")
            say_failed_before(console, [one.told() for one in failed], "measurement")
            Session(request, plans, interrupt, console).run(todo, file)
        finally:
            file.close()
        status = _tell(folder, request)
        if interrupt.came:
            say_stopped(console, folder)
            return interrupt.exit_status
    request.printing.say(f"results: {folder}")
    header, found = FORM.read(folder)
    keep(header, answer_of(found))
    asked = {one.identity for one in wanted}
    last = [one for one in found if one.identity in asked]
    if any(one.status == "failed" for one in last):
        return 1
    return status or request.policy.exit_status(claims=_claims(last))


def _claims(found: list[Sharing]) -> bool:
    """Whether any measurement was undisturbed."""
    return not found or not all(map(disturbed, found))


def _tell(folder: Path, request: Request) -> int:
    """Say what the results tell, and write their report; 1 if it cannot be written."""
    from gridbench.datagrid.crossover.present import print_table, to_record, write_report

    found = FORM.read(folder)[1]
    answer = answer_of(found)
    print_table(request.printing.tables(), answer, found)
    request.printing.document(
        lambda: {
            "results": folder,
            "measurements": [asdict(one) for one in found],
            **to_record(answer, found),
        }
    )
    return report_in(folder, write_report)

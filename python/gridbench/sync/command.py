"""The whole of `gridbench sync`: plan, run what is missing, tell."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from gridbench.errors import InputError
from gridbench.hosts.place import Place, open_place
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
from gridbench.sole_use import sole_use
from gridbench.sync.crew import Crew
from gridbench.sync.plan import wanted_of
from gridbench.sync.record import FORM, Round
from gridbench.sync.request import Request
from gridbench.sync.session import Session, header_of


def run_sync(request: Request) -> int:
    """Run what is missing, and report; the exit status. InputError for bad input.

    0: all tasks of all rounds went well. 1: one did not. 3: other programs disturbed all rounds,
    and that was not accepted. 128 + n: ended by signal n; what was measured is kept.
    """
    folder = request.folder or default_folder(f"sync-{Path(request.task).name}")
    with sole_use(folder, request.printing.progress()):
        return _run(request, folder)


def _run(request: Request, folder: Path) -> int:
    console = request.printing.progress()
    settle(request.policy, console)
    file = FORM.open(folder, header_of(request), fresh=request.fresh)
    most = max(request.workers, default=0)
    with Interrupt() as interrupt:
        try:
            with open_place(request.where, most, console, Crew, request.watched) as where:
                _check_program(request, where)
                counts = request.workers or (where.cores,)
                asked = wanted_of(request, counts)
                todo = missing(asked, file.records)
                failed = [] if request.retry_failed else failed_before(todo, file.records)
                todo = [one for one in todo if one not in failed]
                say_what_is_there(console, len(asked) - len(todo), len(asked), "round")
                say_failed_before(console, [one.told() for one in failed], "round")
                Session(request, where, folder, interrupt, console).run(todo, file)
        except InputError:
            if not file.records:  # what is mended may need other options, and can have the folder
                file.path.unlink(missing_ok=True)
            raise
        finally:
            file.close()
        status = _tell(folder, request)
        if interrupt.came:
            say_stopped(console, folder)
            return interrupt.exit_status
    request.printing.say(f"results: {folder}")
    rounds = FORM.read(folder)[1]
    wanted = {one.identity for one in asked}
    last = {one.identity: one for one in rounds if one.identity in wanted}
    if any(one.status == "failed" for one in last.values()):
        return 1
    return status or request.policy.exit_status(claims=_claims(list(last.values())))


def _check_program(request: Request, where: Place) -> None:
    """InputError if a host cannot run the program."""
    for member in where.members:
        why = member.remote.why_not(request.program, str(Path.cwd()))
        if why:
            on = "" if member.near else f" on {member.host.name}"
            raise InputError(
                f"the task `{request.task}` cannot be run{on}: {why}",
                remedy="give the path of a program that every host has, or the name of a task of"
                " gridbench: `gridbench sync --tasks` lists them",
            )


def _claims(rounds: list[Round]) -> bool:
    """Whether any round was undisturbed."""
    return not rounds or not all(map(disturbed, rounds))


def _tell(folder: Path, request: Request) -> int:
    """Say what the results tell, and write their report; 1 if it cannot be written."""
    from gridbench.sync.present import print_table, write_report

    rounds = FORM.read(folder)[1]
    print_table(request.printing.tables(), rounds)
    request.printing.document(
        lambda: {"results": folder, "rounds": [asdict(one) for one in rounds]}
    )
    return report_in(folder, write_report)

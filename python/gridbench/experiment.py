"""The seam of all benchmarks: parameters, cases, how one case is run, and what is made of results.

`run_experiment` does the rest: the folder with its lock, resuming, waiting for a quiet machine,
progress, Ctrl-C, records that are saved as they come, and the report at the end.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from gridbench.errors import InputError
from gridbench.jsonl_store import (
    Header,
    RecordFile,
    ResultsForm,
    failed_before,
    latest,
    missing,
)
from gridbench.machine.policy import Policy
from gridbench.machine.quiet import settle
from gridbench.machine.rule import disturbed
from gridbench.printing import Printing
from gridbench.process.interrupt import Interrupt, Stopped
from gridbench.progress import Steps
from gridbench.results_folder import (
    default_folder,
    report_in,
    say_failed_before,
    say_stopped,
    say_what_is_there,
)
from gridbench.results_lock import sole_use
from gridbench.run.machine import new_header
from gridbench.shared_options import ResultsOptions

if TYPE_CHECKING:
    from rich.console import Console

    from gridbench.jsonl_store import Attempt, Tried
    from gridbench.pages.document import Document

    class ExperimentRecord(Attempt, Tried, Protocol):
        """What is kept of a case."""


class ExperimentCase(Protocol):
    """One measurement, before it is made."""

    @property
    def identity(self) -> Hashable:
        """The resume key: the same as that of its record."""

    def told(self) -> str:
        """In words, on one line."""


C = TypeVar("C", bound="ExperimentCase")
R = TypeVar("R", bound="ExperimentRecord")


@dataclass(slots=True)
class Bench:
    """What an experiment uses while it runs."""

    folder: Path
    """Of the results."""
    interrupt: Interrupt
    console: Console
    stack: ExitStack
    """What is entered here ends with the measurements."""
    steps: Steps | None = None
    """The progress, once it is known what is to be done."""


class Experiment(ABC, Generic[C, R]):
    """A benchmark with its parameters."""

    form: ResultsForm[R]
    """How records are kept."""
    seed = 0
    """Of the order of the cases."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Of the folder of results, if the user names none."""

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """What all cases of a folder have in common, for the header."""

    @abstractmethod
    def cases(self, bench: Bench) -> Sequence[C]:
        """All cases, in the order in which they are run: repeats come last, so that what changes
        with time meets all alike."""

    @abstractmethod
    def run(self, case: C, bench: Bench) -> R:
        """Run one case; its record, also if it fails. Stopped if the user wants an end, InputError
        if this and all others of its `group` cannot be run."""

    @abstractmethod
    def outcome(self, record: R) -> str:
        """What came of a case, in a line."""

    def document(self, header: Header, records: list[R]) -> Document:
        """The results for people, in a terminal and on the page."""
        raise NotImplementedError

    def to_record(self, records: list[R]) -> dict[str, Any]:
        """The results for programs, which can be JSON."""
        raise NotImplementedError

    def show(self, records: list[R], printing: Printing, folder: Path) -> None:
        """Print the results, as tables or as JSON."""
        from gridbench.pages.terminal import print_document

        header, _ = self.form.read(folder)
        print_document(printing.tables(), self.document(header, records))
        printing.document(lambda: {"results": folder, **self.to_record(records)})

    def write_report(self, folder: Path, page: Path) -> None:
        """Write the page of the results."""
        from gridbench.pages.document import write_page

        write_page(self.document(*self.form.read(folder)), page)

    def prepare(self, console: Console) -> None:
        """Do what has to be done before the machine is watched, such as building."""

    def open(self, folder: Path, header: Header, *, fresh: bool) -> RecordFile[R]:
        """The file of records. InputError if what the folder holds cannot be added to."""
        return self.form.open(folder, header, fresh=fresh)

    def missing(self, cases: Sequence[C], records: list[R], policy: Policy) -> Sequence[C]:
        """The cases that have to be run."""
        del policy
        return missing(cases, records)

    def without(self, cases: Iterable[C], failed: Sequence[C]) -> list[C]:
        """The cases that are left without those that failed in an earlier call."""
        out = {one.identity for one in failed}
        return [one for one in cases if one.identity not in out]

    def ready(self, case: C, records: list[R]) -> C | str:
        """The case with what earlier ones decide of it; or why it is left out."""
        del records
        return case

    def group(self, case: C) -> Hashable:
        """Cases of the same group end together if one of them cannot be run."""
        del case
        return None

    def saved(self, record: R, file: RecordFile[R]) -> None:
        """A record was saved."""

    def failed(self, record: R) -> bool:
        """Whether a case failed, for the exit status."""
        return record.status == "failed"

    def finished(self, folder: Path) -> None:
        """All was measured."""


def run_experiment(
    experiment: Experiment[C, R], results: ResultsOptions, policy: Policy, printing: Printing
) -> int:
    """Run what is missing, and report; the exit status. InputError for bad input.

    0: all cases went well. 1: one failed. 3: other programs disturbed all, and that was not
    accepted. 128 + n: ended by signal n; what was measured is kept.
    """
    folder = results.out or default_folder(experiment.name)
    console = printing.progress()
    with sole_use(folder, console):
        experiment.prepare(console)
        settle(policy, console)
        header = new_header(experiment.record(), seed=experiment.seed)
        file = experiment.open(folder, header, fresh=results.fresh)
        failure: InputError | None = None
        asked: list[C] = []
        with Interrupt() as interrupt:
            try:
                with ExitStack() as stack:
                    bench = Bench(folder, interrupt, console, stack)
                    asked += experiment.cases(bench)
                    todo = _todo(
                        experiment, asked, file, results=results, policy=policy, console=console
                    )
                    _measure(experiment, todo, file, bench)
            except InputError as error:
                if not file.records:  # what is mended may need other options, in the same folder
                    file.path.unlink(missing_ok=True)
                    raise
                failure = error
            finally:
                file.close()
            records = experiment.form.read(folder)[1]
            experiment.show(records, printing, folder)
            status = report_in(folder, experiment.write_report)
            if interrupt.came:
                say_stopped(console, folder)
                return interrupt.exit_status
        printing.say(f"results: {folder}")
        if failure is not None:
            raise failure
        experiment.finished(folder)
    known = (experiment.ready(one, file.records) for one in asked)
    wanted = {one.identity for one in known if not isinstance(one, str)}
    last = [one for one in records if one.identity in wanted]
    if any(map(experiment.failed, last)):
        return 1
    return status or policy.exit_status(claims=not last or not all(map(disturbed, last)))


def _todo(
    experiment: Experiment[C, R],
    asked: Sequence[C],
    file: RecordFile[R],
    *,
    results: ResultsOptions,
    policy: Policy,
    console: Console,
) -> list[C]:
    """The cases that have to be run; says which are there, and which are not tried again."""
    lacking = experiment.missing(asked, file.records, policy)
    before = latest(file.records)
    failed = [] if results.retry_failed else failed_before(lacking, before)
    todo = experiment.without(lacking, failed)
    noun = experiment.form.noun
    say_what_is_there(console, len(asked) - len(todo), len(asked), noun)
    say_failed_before(console, [one.told() for one in failed], noun)
    done = {one.identity for one in before if one.status == "done"}
    if again := sum(one.identity in done for one in todo):
        are = "is" if again == 1 else "are"
        told = f"{again} {noun}{'' if again == 1 else 's'}"
        console.print(f"{told} that other programs disturbed {are} measured again")
    return todo


def _measure(
    experiment: Experiment[C, R], todo: Sequence[C], file: RecordFile[R], bench: Bench
) -> None:
    """Run the cases until all are done or the user wants an end. InputError if a group of them
    cannot be run, after those of the others."""
    failed: dict[Hashable, InputError] = {}
    steps = Steps(bench.console, experiment.form.noun, len(todo), transient=False)
    bench.steps = bench.stack.enter_context(steps)
    for one in todo:
        if bench.interrupt.came:
            return
        group = experiment.group(one)
        if group in failed:
            continue
        case = experiment.ready(one, file.records)
        if isinstance(case, str):
            steps.say(f"{one.told()}: left out, as {case}")
            steps.skip()
            continue
        steps.begin(case.told())
        began = time.monotonic()
        try:
            record = experiment.run(case, bench)
        except Stopped:
            return
        except InputError as error:
            failed[group] = error
            if group is not None:
                steps.say(str(error))
            continue
        file.add(record)
        experiment.saved(record, file)
        steps.end(time.monotonic() - began)
        steps.say(f"{case.told()}: {experiment.outcome(record)}")
    if failed:
        raise next(iter(failed.values()))

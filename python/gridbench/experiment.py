"""The seam of all benchmarks: parameters, cases, how one case is run, and the kind of results.

`run_experiment` does the rest: the folder with its lock, resuming, waiting for a quiet machine,
progress, Ctrl-C, saving each record, and the report at the end.
"""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from gridbench.errors import InputError, print_error
from gridbench.formats import about
from gridbench.jsonl_store import (
    Header,
    ResultsForm,
    failed_before,
    latest,
    missing,
)
from gridbench.machine.judgement import disturbed
from gridbench.machine.options import Policy
from gridbench.machine.quiet import settle
from gridbench.printing import Printing
from gridbench.process.interrupt import Interrupt, Stopped
from gridbench.progress import Steps
from gridbench.results_folder import (
    REPORT,
    default_folder,
    exclusive_lock,
    say_failed_before,
    say_stopped,
    say_what_is_there,
)
from gridbench.run.machine import new_header
from gridbench.shared_options import ResultsOptions
from gridbench.statistics.claims import answer_record
from gridbench.terminal import new_console, say

if TYPE_CHECKING:
    from rich.console import Console

    from gridbench.jsonl_store import Attempt, Tried
    from gridbench.result_kind import ResultKind

    class ExperimentRecord(Attempt, Tried, Protocol):
        """Record of a case."""


class ExperimentCase(Protocol):
    """One measurement, before it is made."""

    @property
    def identity(self) -> Hashable:
        """The resume key: the same as that of its record."""

    def describe(self) -> str:
        """In words, on one line."""


R = TypeVar("R", bound="ExperimentRecord")


class RecordStore(Protocol[R]):
    """Where the records of an experiment are saved, one by one."""

    records: list[R]

    def add(self, record: R) -> None:
        """Save a record. InputError if that fails."""

    def discard(self) -> None:
        """Remove what `open` made, as there are no records."""

    def close(self) -> None:
        """Close it."""


C = TypeVar("C", bound="ExperimentCase")


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

    kind: ResultKind
    """What shows its results."""
    form: ResultsForm[R]
    """How records are kept."""
    seed = 0
    """Of the order of the cases."""
    resumes = True
    """Whether the same call with the same folder continues an interrupted one."""
    needs_quiet = True
    """Whether other programs can disturb it: a simulation has times of its own."""
    shows_progress = False
    """Whether the experiment shows its progress itself."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Of the folder of results, if the user names none."""

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """Common facts of all cases of a folder, for the header."""

    @abstractmethod
    def batches(self, bench: Bench, records: Sequence[R]) -> Iterator[Sequence[C]]:
        """The cases in the order in which they are run, repeats last, so that what changes with
        time meets all alike. One batch, unless the `records` of a batch decide the next."""

    @abstractmethod
    def run(self, case: C, bench: Bench) -> R:
        """Run one case; its record, also if it fails. Stopped if the user wants an end, InputError
        if this and all others of its `group` cannot be run."""

    @abstractmethod
    def outcome(self, record: R) -> str:
        """Outcome of a case, in a line; empty: nothing to print."""

    @property
    def noun(self) -> str:
        """Name of a case."""
        return self.form.noun

    def prepare(self, bench: Bench) -> None:
        """Do what comes before the wait for a quiet machine, such as building."""

    def open(self, folder: Path, header: Header, *, fresh: bool) -> RecordStore[R]:
        """Where records are saved. InputError if the folder holds what cannot be added to."""
        return self.form.open(folder, header, fresh=fresh)

    def read(self, folder: Path) -> list[R]:
        """The latest records of all cases."""
        return self.form.read(folder)[1]

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

    def saved(self, record: R, number: int, bench: Bench) -> None:
        """A record was saved, as the one of this number in the folder, from 1."""

    def failed(self, record: R) -> bool:
        """Whether a case failed, for the exit status."""
        return record.status == "failed"

    def seconds(self, cases: Sequence[C]) -> float | None:
        """The expected time of these cases; None if unknown."""
        del cases
        return None

    def disturbed(self, record: R) -> bool:
        """Whether other programs disturbed a case, so that a failure may be theirs."""
        return disturbed(record)

    def complete(self, folder: Path, records: list[R]) -> None:
        """Write what the folder has beside its records, before the results are shown."""

    def parts(self, folder: Path) -> Sequence[Path]:
        """Folders of results below this one that have pages of their own."""
        del folder
        return ()

    def print_problems(self, records: list[R]) -> None:
        """Print what went wrong, below the results."""

    def finished(self, folder: Path) -> None:
        """All was measured."""

    def exit_status(self, cases: Sequence[C], records: list[R], policy: Policy, report: int) -> int:
        """The exit status; `report`: that of the report."""
        ready = (self.ready(one, records) for one in cases)
        identities = {one.identity for one in ready if not isinstance(one, str)}
        found = [one for one in records if one.identity in identities]
        if any(map(self.failed, found)):
            return 1
        tried = [one for one in found if one.status != "skipped"]
        return report or policy.exit_status(claims=not tried or not all(map(self.disturbed, tried)))


def run_experiment(
    experiment: Experiment[C, R], results: ResultsOptions, policy: Policy, printing: Printing
) -> int:
    """Run missing cases, and report; returns the exit status. InputError for bad input.

    0: all cases went well. 1: one failed. 3: other programs disturbed all, and that was not
    accepted. 128 + n: ended by signal n; what was measured is kept.
    """
    folder = results.out or default_folder(experiment.name)
    console = printing.progress()
    with exclusive_lock(folder, console), ExitStack() as stack:
        bench = Bench(folder, Interrupt(), console, stack)
        experiment.prepare(bench)
        if experiment.needs_quiet:
            settle(policy, console)
        header = new_header(experiment.record(), seed=experiment.seed)
        store = experiment.open(folder, header, fresh=results.fresh)
        failure: InputError | None = None
        cases: list[C] = []
        with bench.interrupt as interrupt:
            try:
                with stack:
                    for batch in experiment.batches(bench, store.records):
                        cases += batch
                        todo = _todo(
                            experiment,
                            batch,
                            store,
                            results=results,
                            policy=policy,
                            console=console,
                        )
                        _measure(experiment, todo, store, bench)
                        if interrupt.came:
                            break
            except InputError as error:
                if not store.records:  # the corrected call may need other options
                    store.discard()
                    raise
                failure = error
            finally:
                store.close()
            records = experiment.read(folder)
            report = _report(experiment, folder, records, printing)
            if interrupt.came:
                if experiment.resumes:
                    say_stopped(console, folder)
                else:
                    printing.say(f"results: {folder}")
                return interrupt.exit_status
        printing.say(f"results: {folder}")
        if failure is not None:
            raise failure
        experiment.finished(folder)
    return experiment.exit_status(cases, records, policy, report)


def _todo(
    experiment: Experiment[C, R],
    cases: Sequence[C],
    store: RecordStore[R],
    *,
    results: ResultsOptions,
    policy: Policy,
    console: Console,
) -> list[C]:
    """The cases that have to be run. Prints how many have results, and which are not retried."""
    lacking = experiment.missing(cases, store.records, policy)
    before = latest(store.records)
    undisturbed = [one for one in before if not experiment.disturbed(one)]
    failed = [] if results.retry_failed else failed_before(lacking, undisturbed)
    todo = experiment.without(lacking, failed)
    noun = experiment.noun
    say_what_is_there(console, len(cases) - len(todo), len(cases), noun)
    say_failed_before(console, [one.describe() for one in failed], noun)
    done = {one.identity for one in before if one.status == "done"}
    if again := sum(one.identity in done for one in todo):
        are = "is" if again == 1 else "are"
        text = f"{again} {noun}{'' if again == 1 else 's'}"
        console.print(f"{text} that other programs disturbed {are} measured again")
    return todo


def _measure(
    experiment: Experiment[C, R], todo: Sequence[C], store: RecordStore[R], bench: Bench
) -> None:
    """Run the cases until all are done or the user wants an end. InputError if a group of them
    cannot be run, after those of the others."""
    failed: dict[Hashable, InputError] = {}
    console = new_console(quiet=True) if experiment.shows_progress else bench.console
    if seconds := experiment.seconds(todo):
        say(
            console,
            f"this takes about {about(seconds)}; Ctrl-C stops it, and the same command resumes",
        )
    with Steps(console, experiment.noun, len(todo), transient=False) as steps:
        bench.steps = steps
        for number, one in enumerate(todo):
            if bench.interrupt.came:
                return
            group = experiment.group(one)
            if group in failed:
                continue
            case = experiment.ready(one, store.records)
            if isinstance(case, str):
                steps.say(f"{one.describe()}: left out, as {case}")
                steps.skip()
                continue
            steps.begin(
                case.describe(),
                expected=experiment.seconds([case]) or 0.0,
                seconds=experiment.seconds(todo[number:]),
            )
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
            store.add(record)
            experiment.saved(record, len(store.records), bench)
            steps.end(time.monotonic() - began)
            if text := experiment.outcome(record):
                steps.say(f"{case.describe()}: {text}")
    if failed:
        raise next(iter(failed.values()))


def _report(
    experiment: Experiment[C, R], folder: Path, records: list[R], printing: Printing
) -> int:
    """Print the results, and write their pages; 1 if that fails, else 0."""
    status = 0
    try:
        experiment.complete(folder, records)
        if experiment.kind.holds(folder):
            _show(experiment, folder, printing)
    except InputError as error:
        print_error(error)
        status = 1
    sys.stdout.flush()
    experiment.print_problems(records)
    return status


def _show(experiment: Experiment[C, R], folder: Path, printing: Printing) -> None:
    from gridbench.pages.document import write_page
    from gridbench.pages.terminal import print_document

    kind, page = experiment.kind, folder / REPORT
    document = kind.document([folder], page)
    print_document(printing.tables(), document)
    answer = answer_record(document.sentences[0])
    printing.document(lambda: {"results": folder, **answer, **kind.to_record(folder)})
    for part in experiment.parts(folder):
        write_page(kind.document([part], part / REPORT), part / REPORT)
    write_page(document, page)

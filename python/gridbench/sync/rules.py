"""The rules for synchronised rounds: see docs/rules.md.

They judge the rounds behind the figures: those that count, or all of a case without any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gridbench.formats import counted
from gridbench.jsonl_store import Header, folder_of
from gridbench.rules import Rules, Seen, broken_by, enough, recorded, undisturbed
from gridbench.sync.cases import SyncCase, cases_of, counts
from gridbench.sync.record import ERRORS, FORM, KEPT, Round, TaskRun
from gridbench.sync.reports import reported

_EXACT = 1e-6
"""Seconds by which times may differ, as clocks have a finite resolution."""
_ROUNDED = 1e-3
"""Seconds by which a phase may be longer than its task, as programs such as fio round."""


@dataclass(frozen=True, slots=True)
class SyncResults:
    """Synchronised rounds that are checked."""

    folder: Path
    header: Header
    cases: tuple[SyncCase, ...]

    @property
    def rounds(self) -> list[Round]:
        """The rounds behind the figures."""
        return [one for case in self.cases for one in case.counting]

    @property
    def left_out(self) -> int:
        """Number of the other rounds."""
        return sum(len(case.rounds) for case in self.cases) - len(self.rounds)

    @property
    def tasks(self) -> Iterator[tuple[str, TaskRun]]:
        """The tasks of these rounds with their names."""
        for one in self.rounds:
            for task in one.tasks:
                yield f"worker {task.worker} of {one.named()}", task


def read(source: Path) -> SyncResults:
    """The results in a folder. InputError if they cannot be read."""
    header, rounds = FORM.read(source)
    return SyncResults(folder_of(source), header, tuple(cases_of(rounds)))


def _complete(found: SyncResults) -> Seen:
    rounds = found.rounds
    if not rounds:
        return "broken", "no round was made"
    bad = [one.named() for one in rounds if not _whole(one)]
    text = f"all tasks of {counted(len(rounds), 'round')} ended well"
    return broken_by(bad, "a task is missing, or did not end well", text)


def _whole(one: Round) -> bool:
    """Whether each worker has a task that ended well, whatever the status of the round."""
    workers = {task.worker for task in one.tasks}
    return (
        one.status == "done"
        and len(workers) == len(one.tasks) == one.workers
        and all(
            task.status == "ok" and not task.exit and None not in (task.began, task.ended)
            for task in one.tasks
        )
    )


def _order(found: SyncResults) -> Seen:
    wrong = [name for name, task in found.tasks if not _in_order(task)]
    text = "tasks began at the instant or after it, and ended after that"
    return broken_by(wrong, "a task began before the instant, or ended before it began", text)


def _in_order(task: TaskRun) -> bool:
    if task.began is None or task.ended is None:  # another rule covers this
        return True
    early = -task.clock_error - _EXACT
    return task.began >= early and task.ended >= task.began - _EXACT


def _phases(found: SyncResults) -> Seen:
    wrong = [name for name, task in found.tasks if not _fits(task)]
    return broken_by(wrong, "a phase is longer than its task", "no phase is longer than its task")


def _fits(task: TaskRun) -> bool:
    if task.began is None or task.ended is None:
        return True
    longest = max((phase.seconds for phase in task.phases), default=0.0)
    return longest <= task.ended - task.began + _ROUNDED


def _printed(found: SyncResults) -> Seen:
    with_phases = [(name, task) for name, task in found.tasks if task.phases]
    outcomes = [(name, _as_printed(task, found.folder)) for name, task in with_phases]
    wrong = [name for name, same in outcomes if same is False]
    unknown = sum(same is None for _, same in outcomes)
    if unknown and not wrong:
        tasks = counted(len(with_phases), "task")
        return "not known", f"what {unknown:,} of {tasks} printed is not kept, or cut off"
    text = f"phases of {counted(len(with_phases), 'task')}, read again from what they printed"
    if not with_phases:
        text = "no task reports phases"
    return broken_by(wrong, "other phases are recorded than were printed", text)


def _as_printed(task: TaskRun, folder: Path) -> bool | None:
    """Whether the phases are those that the task printed; None: its output is not complete."""
    file = (folder / task.output).resolve()
    # The path comes from a record and must stay in the folder.
    if not task.output or folder.resolve() not in file.parents:
        return None
    try:
        whole = file.read_bytes()
    except OSError:
        return None
    before, mark, _ = whole.rpartition(ERRORS)
    printed = before if mark else whole
    if reported(printed).phases == task.phases:
        return True
    return None if len(printed) >= KEPT else False


def _quiet(found: SyncResults) -> Seen:
    looked = [(one.named(), one.load) for one in found.rounds]
    return undisturbed(looked, "round", found.left_out)


def _repeated(found: SyncResults) -> Seen:
    times = [(case.describe(), sum(map(counts, case.rounds))) for case in found.cases]
    return enough(times, "counting round")


def _recorded(found: SyncResults) -> Seen:
    lacks = [] if found.header.options.get("task") else ["the task"]
    return recorded(found.header.machine, found.header.versions, lacks)


_EACH: dict[str, Callable[[SyncResults], Seen]] = {
    "complete": _complete,
    "stamps are in order": _order,
    "phases fit into their tasks": _phases,
    "figures follow from what tasks printed": _printed,
    "nothing else was at work": _quiet,
    "repeated": _repeated,
    "who measured what, where": _recorded,
}

RULES = Rules(key="rounds", read=read, each=_EACH)

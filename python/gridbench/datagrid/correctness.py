"""Whether the data were right: every value read, all objects there, all updates added up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gridbench.datagrid.record import DataGridCase
from gridbench.formats import counted

Outcome = Literal["right", "wrong", "lost", "not checked"]
"""`lost`: something is missing, as is to be expected: more members were killed than there are
copies, or updates that are not atomic collided."""


@dataclass(frozen=True, slots=True)
class Correctness:
    """The outcome of the check, with sentences for what is not as it should be."""

    outcome: Outcome
    lost: int = 0
    """Objects that have to be there and are not."""
    wrong: int = 0
    """Values that were never written, in the run and after it."""
    updates: int = 0
    """By so many the counters in the values differ from what was done: below 0, updates are lost.
    What is in doubt is taken as it suits."""
    told: tuple[str, ...] = ()


def correctness(case: DataGridCase) -> Correctness:
    """What the check after the run found, and what the tasks saw in it."""
    told: list[str] = []
    found = case.checked
    wrong = case.wrong + (found.wrong if found else 0)
    if wrong:
        told.append(f"{counted(wrong, 'value')} read that nobody had written")
    if found is None:
        if case.missing:
            told.append(f"{counted(case.missing, 'object')} to be read were not there")
        outcome: Outcome = "wrong" if told else "not checked"
        return Correctness(outcome, lost=case.missing, wrong=wrong, told=tuple(told))
    expected = found.expected + found.doubtful
    lost = max(expected - found.found, found.missing, 0)
    spare = found.found - expected
    updates = _difference(found.updates, found.updates_expected, found.in_doubt)
    excused = killed(case) > case.backups
    bad = bool(wrong)
    if lost:
        told.append(f"{lost:,} of {counted(found.expected, 'object')} lost")
        bad |= not excused
    elif case.missing:
        told.append(f"{counted(case.missing, 'read')} in the run found no object where one was")
        bad |= not excused
    if spare > 0:
        told.append(f"{counted(spare, 'object')} more than were stored")
        bad = True
    if updates < 0:
        collided = found.may_collide and case.updates == "plain"
        why = ", as tasks updated the same objects at the same time" if collided else ""
        told.append(f"{counted(-updates, 'update')} of {found.updates_expected:,} lost{why}")
        bad |= not (excused or collided)
    elif updates > 0:
        told.append(f"{counted(updates, 'update')} more in the values than were made")
        bad = True
    outcome = "wrong" if bad else "lost" if told else "right"
    return Correctness(outcome, lost, wrong, updates, tuple(told))


def killed(case: DataGridCase) -> int:
    """How many members were killed; fewer than were to be, if the tasks had ended before."""
    return sum(one.killed_at is not None for one in case.members)


def _difference(found: int, expected: int, in_doubt: int) -> int:
    """How far `found` is from what it may be: up to so many in doubt may be there or not."""
    if found < expected:
        return found - expected
    return max(0, found - expected - in_doubt)

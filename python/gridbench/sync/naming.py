"""What cases, rounds and ways to start are called."""

from __future__ import annotations

from gridbench.formats import counted
from gridbench.sync.cases import Case
from gridbench.sync.record import Round, Start, Status

STARTS: dict[Start, str] = {"entry": "held at entry", "exec": "held before exec"}
"""Where tasks wait for the start."""
STATUSES: dict[Status, str] = {
    "ok": "ok",
    "failed": "failed",
    "timeout": "timed out",
    "lost": "lost",
}
"""How a task ended."""


def case_name(case: Case) -> str:
    """`56 workers, 4k`; with the way to start if that is the less usual one."""
    return _named(case.workers, case.parameter, case.start)


def round_name(one: Round) -> str:
    """`56 workers, 4k, round 2`: of people, the first is round 1."""
    return f"{_named(one.workers, one.parameter, one.start)}, round {one.repeat + 1}"


def _named(workers: int, parameter: str, start: Start) -> str:
    parts = [counted(workers, "worker"), parameter, STARTS[start] if start == "exec" else ""]
    return ", ".join(part for part in parts if part)

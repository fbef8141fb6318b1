"""Results of comparisons, as `gridbench.result_kind.ResultKind`, and their rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridbench.compare.record import FORM, Execution, commands_in
from gridbench.errors import InputError
from gridbench.jsonl_store import Header
from gridbench.machine.judgement import disturbed
from gridbench.result_kind import ResultRow, only
from gridbench.rules import Rules, Seen, broken_by, enough, recorded, undisturbed

if TYPE_CHECKING:
    from gridbench.pages.document import Document

title = "gridbench compare"
model: str | None = None
rules = "gridbench.compare.result_kind"
compares = True
holds = FORM.holds

_FIGURES: dict[str, tuple[str, Callable[[Execution], float]]] = {
    "wall time": ("s", lambda run: run.wall),
    "user time": ("s", lambda run: run.user),
    "system time": ("s", lambda run: run.system),
    "peak memory": ("bytes", lambda run: run.memory),
}


def rows(source: Path) -> Iterator[ResultRow]:
    """The figures of each run of a command. InputError if they cannot be read."""
    for run in _compared(FORM.read(source)[1]):
        for metric, (unit, of) in _FIGURES.items():
            yield ResultRow(
                engine=run.command,
                what=metric,
                metric=metric,
                value=of(run),
                unit=unit,
                repeat=run.round,
                valid=not disturbed(run),
                disturbed=disturbed(run),
                parameters={"command": run.command, "exit_status": run.exit_status},
            )


def nothing_valid(source: Path) -> InputError:
    """Why no round is valid."""
    return InputError(
        "has no round that counts: other programs disturbed all of them",
        file=source,
        remedy="run `gridbench compare` again with the same --out, on a quiet machine",
    )


def document(sources: Sequence[Path], page: Path | None = None) -> Document:
    """The answer, figures and runs of one."""
    del page
    from gridbench.compare.document import document_of

    return document_of(*FORM.read(only(sources, title)))


def to_record(source: Path) -> dict[str, Any]:
    """The figures of all commands, if there is a complete round, and all runs."""
    from gridbench.compare.document import figures_record
    from gridbench.compare.figures import compare_commands

    header, runs = FORM.read(source)
    answer = compare_commands(commands_in(header), runs)
    figures = {} if answer is None else figures_record(answer)
    return {**figures, "runs": [asdict(run) for run in runs]}


def _read(source: Path) -> tuple[Header, list[Execution]]:
    header, runs = FORM.read(source)
    return header, _compared(runs)


def _compared(runs: Sequence[Execution]) -> list[Execution]:
    return [run for run in runs if run.phase == "compare"]


def _complete(found: tuple[Header, list[Execution]]) -> Seen:
    runs = found[1]
    if not runs:
        return "broken", "nothing was measured"
    failed = [f"{run.command}, round {run.round + 1}" for run in runs if run.exit_status]
    return broken_by(failed, "failed, which was ignored", f"{len(runs):,} runs came to their end")


def _quiet(found: tuple[Header, list[Execution]]) -> Seen:
    sound = [run for run in found[1] if not disturbed(run)]
    looked = [(f"{run.command}, round {run.round + 1}", run.load) for run in sound or found[1]]
    return undisturbed(looked, "run", len(found[1]) - len(looked))


def _repeated(found: tuple[Header, list[Execution]]) -> Seen:
    names = dict.fromkeys(run.command for run in found[1])
    times = [
        (name, sum(run.command == name and not disturbed(run) for run in found[1]))
        for name in names
    ]
    return enough(times, "undisturbed run")


def _recorded(found: tuple[Header, list[Execution]]) -> Seen:
    return recorded(found[0].machine, found[0].versions)


_EACH: dict[str, Callable[[tuple[Header, list[Execution]]], Seen]] = {
    "complete": _complete,
    "nothing else was at work": _quiet,
    "repeated": _repeated,
    "who measured what, where": _recorded,
}

RULES = Rules(key="comparisons", read=_read, each=_EACH)

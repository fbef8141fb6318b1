"""Results of comparisons, as `gridbench.result_kind.ResultKind`, and their rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gridbench.compare.record import FORM, Execution, commands_in
from gridbench.jsonl_store import Header
from gridbench.machine.judgement import disturbed
from gridbench.result_kind import Figure, RecordsKind, ResultRow, rows_of_case
from gridbench.rules import Rules, Seen, broken_by, enough, recorded, undisturbed

_FIGURES: dict[str, tuple[str, Callable[[Execution], float]]] = {
    "wall time": ("s", lambda run: run.wall),
    "user time": ("s", lambda run: run.user),
    "system time": ("s", lambda run: run.system),
    "peak memory": ("bytes", lambda run: run.memory),
}


def _rows(runs: list[Execution]) -> Iterator[ResultRow]:
    """The figures of each run of a command."""
    for run in _compared(runs):
        yield from rows_of_case(
            [Figure(metric, of(run), unit) for metric, (unit, of) in _FIGURES.items()],
            engine=run.command,
            repeat=run.round,
            valid=not disturbed(run),
            disturbed=disturbed(run),
            parameters={"command": run.command, "exit_status": run.exit_status},
        )


def _answer(header: Header, runs: list[Execution]) -> Mapping[str, Any]:
    """The figures of all commands, if there is a complete round."""
    from gridbench.compare.document import figures_record
    from gridbench.compare.figures import compare_commands

    answer = compare_commands(commands_in(header), runs)
    return {} if answer is None else figures_record(answer)


COMPARE = RecordsKind(
    form=FORM,
    title="gridbench compare",
    rules="gridbench.compare.result_kind",
    rows_of=_rows,
    document_module="gridbench.compare.document",
    record_name="runs",
    answer_of=_answer,
    remedy="run `{command}` again with the same --out, on a quiet machine",
)


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

"""The comparison in the terminal, as JSON, as Markdown, and as a page."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from gridbench.atomic_write import write_file
from gridbench.compare.figures import Answer, CommandFigures, Relation, Slower, answer_of
from gridbench.compare.record import FORM, Command, Execution, Setting
from gridbench.errors import InputError
from gridbench.formats import counted, digits, fixed, scale, size
from gridbench.jsonl_store import Header
from gridbench.pages import render as pages
from gridbench.pages.colours import SERIES
from gridbench.pages.markdown import escaped, table_lines
from gridbench.pages.svg import Bar, bars
from gridbench.pages.table import Cell, Table, facts
from gridbench.pages.terminal import fitted
from gridbench.provisional import answer_record, busy_in, in_order, provisional
from gridbench.records import RecordError, from_record
from gridbench.statistics.claims import FEWEST
from gridbench.terminal import printable, say

_NAME = 48  # letters of a command in a sentence
_NAMED = 3  # commands in a sentence
_HEAD = ("command", "wall time", "interval", "user", "system", "peak memory", "ratio")
_OPEN = 0.5
"""Intervals that allow a larger difference than this say no bound: nothing is decided."""


def headline(answer: Answer) -> str:
    """The answer in one sentence."""
    if answer.provisional:
        busy = busy_in(answer.disturbed, answer.measured, "round")
        text = _indication(answer)
        return provisional(text, busy if answer.disturbed else f"a claim takes {FEWEST} rounds")
    text = _comparison(answer)
    return f"{text[0].upper()}{text[1:]}, {counted(answer.rounds, 'round')}, undisturbed."


def notices(answer: Answer) -> list[str]:
    """What limits the answer."""
    found = []
    if not answer.provisional and answer.disturbed:
        found.append(
            f"Other programs disturbed {counted(answer.disturbed, 'further round')}, which"
            f" {'does' if answer.disturbed == 1 else 'do'} not count."
        )
    if answer.noise is None:
        found.append("No A/A check was made: how noisy this machine is, is not known.")
    else:
        found.append(
            "A/A check: two series of the same command differ by a factor of"
            f" {digits(answer.noise)} on this machine."
        )
    for one in answer.all:
        if one.failures:
            found.append(
                f"{_quoted(one.command.name)} failed in {one.failures} of {len(one.runs)} runs."
                " These count because of --ignore-failure."
            )
    if min(one.wall for one in answer.all) < 0.005:
        found.append(
            "A command takes less than 5 ms. Most of that is starting a process; give it more work"
            " to compare the work."
        )
    return found


def figures_table(answer: Answer) -> Table:
    """A row for each command, the fastest first, all times in one unit."""
    shown = scale(answer.fastest.wall, "s")
    ratios = {one.figures.command.name: one for one in answer.others}

    def row(one: CommandFigures) -> list[str | Cell]:
        low, high = one.bounds
        other = ratios.get(one.command.name)
        return [
            one.command.name,
            shown.text(one.wall),
            f"{shown.bare(low)} to {shown.text(high)}",
            shown.text(one.median(lambda run: run.user)),
            shown.text(one.median(lambda run: run.system)),
            size(one.median(lambda run: run.memory)),
            "1" if other is None else f"{digits(other.ratio)} ({_interval(other)})",
        ]

    return Table(_HEAD, [row(one) for one in answer.all])


def print_answer(console: Console, answer: Answer) -> None:
    """The answer, then a table, then what limits it."""
    console.print(Text(printable(headline(answer)), style="bold"), soft_wrap=True)
    console.print(
        fitted(
            figures_table(answer),
            console.width,
            wide={"user": 110, "system": 110, "interval": 80},
            words={"command": 16},
            notes=False,
        )
    )
    for line in notices(answer):
        say(console, line)


def to_record(answer: Answer) -> dict[str, Any]:
    """For `--json`."""
    return {
        **answer_record(headline(answer)),
        "rounds": answer.rounds,
        "rounds_measured": answer.measured,
        "rounds_disturbed": answer.disturbed,
        "noise": answer.noise,
        "commands": [_command(one, answer) for one in answer.all],
    }


def _command(one: CommandFigures, answer: Answer) -> dict[str, Any]:
    other = next((o for o in answer.others if o.figures is one), None)
    low, high = one.bounds
    return {
        **asdict(one.command),
        "wall": {"median": one.wall, "low": low, "high": high},
        "user": one.median(lambda run: run.user),
        "system": one.median(lambda run: run.system),
        "memory": one.median(lambda run: run.memory),
        "failures": one.failures,
        "ratio": None
        if other is None
        else {"median": other.ratio, "low": other.low, "high": other.high},
        "relation": "fastest" if other is None else other.relation,
    }


def markdown(source: Path) -> str:
    """The answer, its table and what limits it."""
    return "\n".join(_markdown_lines(_read(source)[2])) + "\n"


def _markdown_lines(answer: Answer) -> Iterator[str]:
    yield from (escaped(headline(answer)), "")
    yield from table_lines(figures_table(answer))
    yield ""
    yield from (f"- {escaped(line)}" for line in notices(answer))


def picture(answer: Answer) -> str:
    """Wall times as bars, as SVG."""
    made = [
        Bar(
            one.command.name,
            one.wall,
            *one.bounds,
            colour=SERIES[0] if number == 0 else SERIES[8],
            hollow=answer.provisional,
        )
        for number, one in enumerate(answer.all)
    ]
    return bars(made, "s", f"Wall time of each command. {headline(answer)}")


def write_report(source: Path, out: Path) -> None:
    """Write the page about the results in a folder, completely or not at all.

    InputError if they cannot be read, or if `out` cannot be written.
    """
    header, runs, answer = _read(source)
    write_file(out, render(header, runs, answer))


def render(header: Header, runs: Sequence[Execution], answer: Answer) -> str:
    """The whole page as HTML."""
    host = header.machine.get("host", "")
    shown = {name: value for name, value in header.options.items() if name != "commands" and value}
    return pages.render(
        "compare/compare.html",
        headline(answer),
        {},
        scripts=[],
        styles=["compare/compare.css"],
        kind="gridbench compare",
        heading=headline(answer),
        subheading=f"{host} · {header.started[:16].replace('T', ' ')}",
        navigation=[],
        picture=picture(answer),
        figures=figures_table(answer),
        notices=notices(answer),
        runs=_runs_table(runs),
        machine=facts([(name, str(value)) for name, value in header.machine.items()]),
        options=facts(
            [
                (name, value if isinstance(value, str) else json.dumps(value))
                for name, value in shown.items()
            ]
        ),
        versions=facts(list(header.versions.items())),
    )


def commands_of_header(header: Header) -> tuple[Command, ...]:
    """Those that were compared. InputError if the header does not have them."""
    try:
        return from_record(Setting, header.options).commands
    except RecordError as error:
        raise InputError(f"is damaged: {error}") from None


def _read(source: Path) -> tuple[Header, list[Execution], Answer]:
    header, runs = FORM.read(source)
    answer = answer_of(commands_of_header(header), runs)
    if answer is None:
        raise InputError(
            "has no complete round",
            file=source,
            remedy="run `gridbench compare` again with the same --out",
        )
    return header, runs, answer


def _runs_table(runs: Sequence[Execution]) -> Table:
    head = ("command", "round", "place", "wall time", "user", "system", "peak memory", "machine")
    compared = [run for run in runs if run.phase == "compare"]
    if not compared:
        return Table(head, [])
    shown = scale(min(run.wall for run in compared), "s")
    return Table(
        head,
        [
            [
                run.command,
                str(run.round + 1),
                str(run.place + 1),
                *(shown.text(time) for time in (run.wall, run.user, run.system)),
                size(run.memory),
                str((run.load or {}).get("judgement", "")),
            ]
            for run in compared
        ],
    )


def _indication(answer: Answer) -> str:
    """The times, without any claim."""
    names = _names(answer)
    shown = answer.all[:_NAMED]
    more = len(answer.all) - len(shown)
    text = in_order({names[one.command.name]: one.wall for one in shown})
    return f"{text}, and {more} more are slower" if more else text


def _comparison(answer: Answer) -> str:
    """What the rounds prove, without its end."""
    names = _names(answer)
    best = names[answer.fastest.command.name]

    def those(relation: Relation) -> list[Slower]:
        return [one for one in answer.others if one.relation == relation]

    def name_of(one: Slower) -> str:
        return names[one.figures.command.name]

    def listed(several: Sequence[Slower]) -> str:
        more = [f"{len(several) - 2} more"] if several[2:] else []
        return " and ".join([*map(name_of, several[:2]), *more])

    slower, alike, still_open = those("slower"), those("no difference"), those("open")
    parts = []
    if slower:
        nearest = [f"{_times(one)} as {name_of(one)} ({_interval(one)})" for one in slower]
        parts.append(f"{best} is {'; '.join(nearest[:2])}")
        if nearest[2:]:
            parts.append(f"{len(nearest) - 2} more are slower")
    bounded = alike or [one for one in still_open if one.difference <= _OPEN]
    if bounded:
        largest = max(one.difference for one in bounded)
        parts.append(
            f"no difference larger than {_share(largest)} between {best} and {listed(bounded)}"
        )
    if unknown := [one for one in still_open if one not in bounded]:
        if len(answer.others) == 1:
            (one,) = unknown
            return f"not decided: {name_of(one)} takes {_interval(one)} times as long as {best}"
        parts.append(f"whether {best} is faster than {listed(unknown)} is open")
    return "; ".join(parts)


def _times(one: Slower) -> str:
    return f"{_ratio(one.ratio)} times as fast"


def _ratio(value: float) -> str:
    return fixed(value, 2) if value < 10 else digits(value)


def _interval(one: Slower) -> str:
    return f"{_ratio(one.low)} to {_ratio(one.high)}"


def _share(difference: float) -> str:
    """Rounded up, as it is a bound."""
    return f"{max(1, math.ceil(difference * 100 - 1e-9))} %"


def _names(answer: Answer) -> dict[str, str]:
    """What sentences call the commands: by their parameters if these tell them apart, with the
    program if that is needed."""
    commands = [one.command for one in answer.all]

    def by_parameters(one: Command, *, program: bool) -> str:
        if not one.parameters or one.name != one.line:
            return one.name
        told = ", ".join(f"{name}={value}" for name, value in one.parameters.items())
        return f"{one.line.split()[0].rpartition('/')[2]}, {told}" if program else told

    for program in (False, True):
        found = {one.name: by_parameters(one, program=program) for one in commands}
        if len(set(found.values())) == len(commands):
            break
    else:
        found = {one.name: one.name for one in commands}
    return {name: _quoted(text) for name, text in found.items()}


def _quoted(name: str) -> str:
    text = " ".join(name.split())
    return f"“{text if len(text) <= _NAME else text[: _NAME - 1] + '…'}”"

"""The document about a comparison of commands, and its JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from gridbench.compare.figures import (
    CommandComparison,
    CommandFigures,
    Relation,
    RelativeTime,
    compare_commands,
)
from gridbench.compare.record import Command, Execution, commands_in
from gridbench.formats import counted, digits, fixed, scale, shortened, size
from gridbench.jsonl_store import Header
from gridbench.pages.colours import SERIES
from gridbench.pages.document import (
    EVERYWHERE,
    PAGE,
    Block,
    Document,
    Paragraph,
    Section,
    StaticChart,
    TableBlock,
)
from gridbench.pages.svg import Bar, bars
from gridbench.pages.table import Column, Table, table_of
from gridbench.statistics.claims import FEWEST, busy_in, in_order, provisional

_NAME = 48  # letters of a command in a sentence
_NAMED = 3  # commands in a sentence
_NOTHING = "Nothing can be claimed: there is no complete round."
_OPEN = 0.5
"""Intervals that allow a larger difference than this say no bound: nothing is decided."""


def headline(answer: CommandComparison) -> str:
    """The answer in one sentence."""
    if answer.provisional:
        busy = busy_in(answer.disturbed, answer.measured, "round")
        text = _indication(answer)
        return provisional(text, busy if answer.disturbed else f"a claim takes {FEWEST} rounds")
    text = _comparison(answer)
    return f"{text[0].upper()}{text[1:]}, {counted(answer.rounds, 'round')}, undisturbed."


def notices(answer: CommandComparison) -> list[str]:
    """Limits of the answer."""
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


def figures_table(answer: CommandComparison) -> Table:
    """A row for each command, the fastest first, all times in one unit."""
    shown = scale(answer.fastest.wall, "s")
    ratios = {one.figures.command.name: one for one in answer.others}

    def interval(one: CommandFigures) -> str:
        low, high = one.bounds
        return f"{shown.bare(low)} to {shown.text(high)}"

    def ratio(one: CommandFigures) -> str:
        other = ratios.get(one.command.name)
        return "1" if other is None else f"{digits(other.ratio)} ({_interval(other)})"

    columns: list[Column[CommandFigures]] = [
        Column("command", lambda one: one.command.name, words=True),
        Column("wall time", lambda one: shown.text(one.wall)),
        Column("interval", interval, from_width=80),
        Column("user", lambda one: shown.text(one.median(lambda run: run.user)), from_width=110),
        Column("system", lambda one: shown.text(one.median(lambda r: r.system)), from_width=110),
        Column("peak memory", lambda one: size(one.median(lambda run: run.memory))),
        Column("ratio", ratio),
    ]
    return table_of(columns, answer.all, style="named")


def runs_table(runs: Sequence[Execution]) -> Table:
    """A row for each run of the comparison."""
    compared = [run for run in runs if run.phase == "compare"]
    shown = scale(min((run.wall for run in compared), default=1.0), "s")
    columns: list[Column[Execution]] = [
        Column("command", lambda run: run.command),
        Column("round", lambda run: run.round + 1),
        Column("place", lambda run: run.place + 1),
        Column("wall time", lambda run: shown.text(run.wall)),
        Column("user", lambda run: shown.text(run.user)),
        Column("system", lambda run: shown.text(run.system)),
        Column("peak memory", lambda run: size(run.memory)),
        Column("machine", lambda run: str((run.load or {}).get("judgement", ""))),
    ]
    return table_of(columns, compared)


def document_of(header: Header, runs: Sequence[Execution]) -> Document:
    """The answer, the figures of each command, and all runs."""
    answer = compare_commands(commands_in(header), runs)
    reported = _NOTHING if answer is None else headline(answer)
    return Document(
        kind="gridbench compare",
        title=reported,
        heading="Comparison of commands",
        subheading=f"{header.machine.get('host', '')} · {header.started[:16].replace('T', ' ')}",
        sentences=[reported],
        notices=[] if answer is None else notices(answer),
        summary=[] if answer is None else _summary(answer, reported),
        sections=[
            Section(
                "method",
                "How it was measured",
                [
                    Paragraph(
                        "The commands ran in turn after a warm-up, in a random order in each round."
                        " A ratio is the median over rounds of a command's time by that of the"
                        " fastest one, as a machine that is slow for a while slows both. Peak"
                        " memory is that of the largest process of a command. Rounds that other"
                        " programs disturbed do not count."
                    ),
                    TableBlock("All runs", runs_table(runs), folded=True, media=PAGE),
                ],
            )
        ],
        header=replace(header, options=_shown(header.options)),
    )


def _summary(answer: CommandComparison, reported: str) -> list[Block]:
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
    caption = "Median wall time of each command; the line is its 95 % interval."
    return [
        StaticChart(bars(made, "s", f"Wall time of each command. {reported}"), caption),
        TableBlock("", figures_table(answer), media=EVERYWHERE),
    ]


def _shown(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "commands" and value}


def figures_record(answer: CommandComparison) -> dict[str, Any]:
    """The figures of all commands as JSON."""
    return {
        "rounds": answer.rounds,
        "rounds_measured": answer.measured,
        "rounds_disturbed": answer.disturbed,
        "noise": answer.noise,
        "commands": [_command(one, answer) for one in answer.all],
    }


def _command(one: CommandFigures, answer: CommandComparison) -> dict[str, Any]:
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


def _indication(answer: CommandComparison) -> str:
    """The times, without any claim."""
    names = _names(answer)
    shown = answer.all[:_NAMED]
    more = len(answer.all) - len(shown)
    text = in_order({names[one.command.name]: one.wall for one in shown})
    return f"{text}, and {more} more are slower" if more else text


def _comparison(answer: CommandComparison) -> str:
    """What the rounds prove, without its end."""
    names = _names(answer)
    best = names[answer.fastest.command.name]

    def those(relation: Relation) -> list[RelativeTime]:
        return [one for one in answer.others if one.relation == relation]

    def name_of(one: RelativeTime) -> str:
        return names[one.figures.command.name]

    def listed(several: Sequence[RelativeTime]) -> str:
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


def _times(one: RelativeTime) -> str:
    return f"{_ratio(one.ratio)} times as fast"


def _ratio(value: float) -> str:
    return fixed(value, 2) if value < 10 else digits(value)


def _interval(one: RelativeTime) -> str:
    return f"{_ratio(one.low)} to {_ratio(one.high)}"


def _share(difference: float) -> str:
    """Rounded up, as it is a bound."""
    return f"{max(1, math.ceil(difference * 100 - 1e-9))} %"


def _names(answer: CommandComparison) -> dict[str, str]:
    """What sentences call the commands: by their parameters if these tell them apart, with the
    program if that is needed."""
    commands = [one.command for one in answer.all]

    def by_parameters(one: Command, *, program: bool) -> str:
        if not one.parameters or one.name != one.line:
            return one.name
        reported = ", ".join(f"{name}={value}" for name, value in one.parameters.items())
        return f"{one.line.split()[0].rpartition('/')[2]}, {reported}" if program else reported

    for program in (False, True):
        found = {one.name: by_parameters(one, program=program) for one in commands}
        if len(set(found.values())) == len(commands):
            break
    else:
        found = {one.name: one.name for one in commands}
    return {name: _quoted(text) for name, text in found.items()}


def _quoted(name: str) -> str:
    return f"“{shortened(name, _NAME)}”"

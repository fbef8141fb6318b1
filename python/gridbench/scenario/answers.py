"""Answers to the questions of scenarios: a few sentences for each engine.

Only cases that count are used or, if no case of an engine counts, those that other programs
disturbed; the answer is then provisional.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from gridbench.analysis.scaling import JUMP, fit_line, jump, largest_good, sweet_spot
from gridbench.analysis.transfer import MEGABYTE, transfer_load
from gridbench.errors import InputError
from gridbench.formats import as_given, bit_rate, compact_size, counted, duration, percent, whole
from gridbench.scenario.cases import (
    MEGABIT,
    ScenarioCell,
    engines_of,
    groups,
    shared_transfer,
    size_label,
    work_of,
)
from gridbench.statistics.claims import busy_in, marked
from gridbench.statistics.interval import Interval

QUESTIONS = {
    1: "How long does it take until all cores compute, and when is shared data worth its transfer?",
    2: "How long must a task be for the data that it takes and returns?",
    3: "What does it cost to start, whatever is computed?",
    4: "How much do tasks wait for their input data?",
    5: "How much does the output of tasks delay the end?",
    6: "Into how many tasks should a given work be split?",
}
TITLES = {
    1: "Cores against shared data",
    2: "Task time against data",
    3: "Start-up cost",
    4: "Delay by input data",
    5: "Delay by output data",
    6: "Work split into n tasks",
}
_GOOD = 0.9
"""Efficiency from which a task is long enough for its data."""


def answers(
    scenario: int, cells: Sequence[ScenarioCell], *, again: bool = True
) -> list[tuple[str, list[str]]]:
    """Engine and sentences, for each engine. `again`: the cases can be measured again, unlike those
    of logs."""
    found = []
    for engine in engines_of(cell.one for cell in cells):
        own = [cell for cell in cells if cell.one.engine == engine]
        sentences = _of(scenario, [cell for cell in own if cell.counts])
        if not any(cell.counts for cell in own):
            busy = [cell for cell in own if cell.disturbed]
            why = busy_in(len(busy), len(own), "case")
            sentences = marked(_of(scenario, busy), why)
        found.append((engine, sentences or [_nothing(own, again=again)]))
    return found


def _of(scenario: int, cells: Sequence[ScenarioCell]) -> list[str]:
    return [
        f"{name}: {sentence}" if name else sentence
        for name, group in (groups(scenario, cells) if cells else [])
        for sentence in _MAKERS[scenario](group)
    ]


def _nothing(own: Sequence[ScenarioCell], *, again: bool) -> str:
    """Why the cases of an engine give no answer."""
    count = sum(cell.counts for cell in own)
    if count:
        return f"Too few valid cases ({count:,}) to answer this scenario's question."
    reasons = {cell.one.reason_kind for cell in own}
    why = ", ".join(sorted(filter(None, reasons)))
    return f"No valid case{f' ({why})' if why else ''}." + (
        " Run the same command again to measure them." if again else ""
    )


def _first(cells: Sequence[ScenarioCell]) -> list[str]:
    empty = {cell.one.cores: cell for cell in cells if cell.one.bytes_shared == 0}
    starts = {n: cell.figure("last_start", clocks=1) for n, cell in empty.items()}
    known = {n: start for n, start in starts.items() if start is not None}
    if not known:
        return []
    most = max(known)
    at_most = {cell.one.bytes_shared: cell for cell in cells if cell.one.cores == most}
    found = [_start_up(known)]
    largest = at_most[max(at_most)]
    added = shared_transfer(largest, cells) if max(at_most) else None
    if added is not None:
        text = f"{compact_size(max(at_most))} of shared data on {most:,} cores"
        if added.low > 0:
            rate = bit_rate(most * max(at_most) * MEGABIT / added.value * 1e6)
            found.append(f"{text} added {duration(added.value)}: {rate} to all cores together.")
        else:
            found.append(f"{text} added nothing measurable.")
    return found + _jumps(at_most, f"shared data on {most:,} cores")


def _start_up(starts: Mapping[int, Interval]) -> str:
    fewest, most = min(starts), max(starts)
    text = (
        f"Without data, the last of {most:,} cores began to compute after"
        f" {duration(starts[most].value)}"
    )
    if fewest == most:
        return f"{text}."
    text += f"; with {counted(fewest, 'core')} it was {duration(starts[fewest].value)}"
    if len(starts) < 3:
        return f"{text}."
    cores = sorted(starts)
    return f"{text}. {_line(cores, [starts[n].value for n in cores], 'core')}"


def _line(numbers: Sequence[int], seconds: Sequence[float], noun: str) -> str:
    line = fit_line(np.array(numbers, dtype=np.float64), np.array(seconds))
    sign = "+" if line.slope >= 0 else "-"
    return (
        f"A line through all is {duration(line.intercept)} {sign} {duration(abs(line.slope))} for"
        f" each {noun}."
    )


def _second(cells: Sequence[ScenarioCell]) -> list[str]:
    found = []
    for sleep in sorted({cell.one.sleep_s for cell in cells}):
        own = {cell.one.bytes_in: cell for cell in cells if cell.one.sleep_s == sleep}
        if sleep == 0:
            fastest = min(own.values(), key=lambda cell: cell.total().value)
            rate = fastest.one.tasks / fastest.total().value
            found.append(f"Tasks that take no time ran at up to {whole(rate)} per second.")
            continue
        good = largest_good({size: c.efficiency().value for size, c in own.items()}, _GOOD)
        best = own[min(own)].efficiency()
        said = f"Tasks of {as_given(sleep)}"
        if good is None:
            found.append(
                f"{said} are too short for an efficiency of {percent(_GOOD, 0)} at any size: with"
                f" {_data(min(own))} it was {percent(best.value)}."
            )
        else:
            most = "the largest that was measured" if good == max(own) else "no more"
            found.append(
                f"{said} keep an efficiency of {percent(_GOOD, 0)} with up to {_data(good)} in and"
                f" out, {most} ({percent(own[good].efficiency().value)})."
            )
    found += _rule_of_thumb(cells)
    return found


def _rule_of_thumb(cells: Sequence[ScenarioCell]) -> list[str]:
    """How often the rule of thumb is right, with the rate of the tasks that take no time."""
    idle = [cell for cell in cells if cell.one.sleep_s == 0 and cell.one.bytes_in]
    if not idle:
        return []
    largest = max(idle, key=lambda cell: cell.one.bytes_in)
    one = largest.one
    rate = one.tasks * (one.bytes_in + one.bytes_out) * MEGABIT / largest.total().value
    working = [cell for cell in cells if cell.one.sleep_s > 0 and cell.one.bytes_in]
    agreed = sum(_load(cell, rate) < 1 and cell.efficiency().value >= 0.7 for cell in working)
    agreed += sum(_load(cell, rate) >= 1 and cell.efficiency().value < 0.7 for cell in working)
    if not working:
        return []
    return [
        f"Tasks without sleep moved {bit_rate(rate * 1e6)}, in and out together. By the rule of"
        " thumb, data do no harm while cores x data / rate is less than the time of a task. With"
        f" this rate, it is right about {agreed} of {len(working)} cases (efficiency of 70 % or"
        " more)."
    ]


def _load(cell: ScenarioCell, rate: float) -> float:
    one = cell.one
    return transfer_load(
        min(one.cores, one.tasks), (one.bytes_in + one.bytes_out) / MEGABYTE, rate, one.sleep_s
    )


def _third(cells: Sequence[ScenarioCell]) -> list[str]:
    found = []
    for cores in sorted({cell.one.cores for cell in cells}):
        own = sorted((c for c in cells if c.one.cores == cores), key=lambda c: c.one.tasks)
        costs = [
            f"{counted(cell.one.tasks, 'task')} cost {duration(cell.overhead().value)}"
            for cell in (own[:1] if len(own) == 1 else (own[0], own[-1]))
        ]
        found.append(
            f"On {counted(cores, 'core')}, {' and '.join(costs)} beside the time of the tasks"
            " themselves."
        )
        full = [cell for cell in own if cell.one.tasks >= cores]
        start = full[0].figure("last_start", clocks=1) if full else None
        if start is not None:
            found.append(f"All {cores:,} workers computed after {duration(start.value)}.")
        if len(own) > 2:
            found.append(
                _line(
                    [cell.one.tasks for cell in own],
                    [cell.overhead().value for cell in own],
                    "task",
                )
            )
    return found


def _fourth(cells: Sequence[ScenarioCell]) -> list[str]:
    return _delay(
        cells, lambda cell: cell.one.bytes_in, "input", "first_dispatch", "later_dispatch"
    )


def _fifth(cells: Sequence[ScenarioCell]) -> list[str]:
    return _delay(cells, lambda cell: cell.one.bytes_out, "output", "first_return", "later_return")


def _delay(
    cells: Sequence[ScenarioCell],
    size: Callable[[ScenarioCell], int],
    what: str,
    first: str,
    later: str,
) -> list[str]:
    found = []
    most = max(cell.one.cores for cell in cells)
    at_most = [cell for cell in cells if cell.one.cores == most]
    blocks = max(cell.one.tasks for cell in at_most)
    deepest = {size(cell): cell for cell in at_most if cell.one.tasks == blocks}
    largest = deepest[max(deepest)]
    if 0 in deepest and len(deepest) > 1:
        added = largest.overhead().minus(deepest[0].overhead())
        found.append(
            f"{counted(blocks, 'task')} on {counted(most, 'core')} cost"
            f" {duration(deepest[0].overhead().value)} beside their own time without data, and"
            f" {duration(added.value)} more with"
            f" {compact_size(max(deepest))} of {what} each."
        )
    one, other = largest.figure(first, clocks=1), largest.figure(later, clocks=1)
    if one is not None and other is not None and max(deepest) > 0:
        found.append(
            f"With {compact_size(max(deepest))}, tasks of the first block waited"
            f" {duration(one.value)} on average, those of later blocks {duration(other.value)}"
            + (
                ": as cores become free one by one, transfers spread out."
                if one.above(other)
                else "."
            )
        )
    return found + _jumps(deepest, f"{what} on {most:,} cores")


def _sixth(cells: Sequence[ScenarioCell]) -> list[str]:
    found = []
    for work in sorted({work_of(cell) for cell in cells}, reverse=True):
        by_size = sorted(cells, key=lambda cell: cell.one.bytes_in)
        for label in dict.fromkeys(map(size_label, by_size)):
            own = {
                cell.one.tasks: cell
                for cell in cells
                if work_of(cell) == work and size_label(cell) == label
            }
            try:
                best = sweet_spot({tasks: cell.total() for tasks, cell in own.items()})
            except InputError:  # a single number of tasks
                continue
            cores = own[best.tasks].one.cores
            others = [f"{n:,}" for n in best.as_good if n != best.tasks]
            also = f" ({', '.join(others)} may be as good)" if others else ""
            edge = "; it is at the edge of what was tried" if best.at_edge else ""
            compared = 1 in own and best.tasks > 1
            one = f"; one task took {duration(own[1].total().value)}" if compared else ""
            found.append(
                f"{as_given(work)} of work on {cores:,} cores with {label}:"
                f" {counted(best.tasks, 'task')} {'was' if best.tasks == 1 else 'were'} best{also},"
                f" {duration(best.total.value)}"
                f" (efficiency {percent(own[best.tasks].efficiency().value)}){one}{edge}."
            )
    return found


def _jumps(cells: Mapping[int, ScenarioCell], what: str) -> list[str]:
    if 0 not in cells or len(cells) < 2:
        return []
    size = jump({size: cell.overhead() for size, cell in cells.items()})
    factor = as_given(JUMP, "")
    if size is None:
        return [
            f"Up to {compact_size(max(cells))} of {what}, the cost beside the tasks stayed within"
            f" {factor} times that without data."
        ]
    return [
        f"From {compact_size(size)} of {what} on, the cost beside the tasks was more than"
        f" {factor} times that without data."
    ]


def _data(size: int) -> str:
    return compact_size(size) if size else "no data"


_MAKERS: dict[int, Callable[[Sequence[ScenarioCell]], list[str]]] = {
    1: _first,
    2: _second,
    3: _third,
    4: _fourth,
    5: _fifth,
    6: _sixth,
}

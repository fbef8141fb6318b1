"""Which engine won, by how much, and how sure that is: the first sentence about scenarios."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from gridbench.formats import amount, counted, duration, plain, times
from gridbench.provisional import busy_in, provisional
from gridbench.scenario.cases import MeasuredCase, engines_of
from gridbench.statistics.claims import ENOUGH

Overheads = dict[tuple[object, ...], MeasuredCase]
"""The cells of an engine that cost something, by what was run."""

_TILES = 5


def overheads(cells: Sequence[MeasuredCase], *, disturbed: bool = False) -> dict[str, Overheads]:
    """For each engine its cells that count, or are just `disturbed`, if those are wanted too."""
    found: dict[str, Overheads] = {name: {} for name in engines_of(cell.one for cell in cells)}
    for cell in cells:
        one = cell.one
        if (cell.counts or (disturbed and cell.disturbed)) and cell.overhead().value > 0:
            key = (one.scenario, one.case, one.transport, one.nodes, one.link_rate, one.start)
            found[one.engine][key] = cell
    return {name: own for name, own in found.items() if own}


def ratios_of(mine: Overheads, others: Overheads) -> list[float]:
    """Overhead of one engine by that of another, in each case that counts on both."""
    return [
        mine[key].overhead().value / others[key].overhead().value
        for key in mine.keys() & others.keys()
    ]


def tiles(cells: Sequence[MeasuredCase]) -> list[tuple[str, str]]:
    """What engines cost beside the tasks, in the median of the cases that count on all of them;
    of one engine alone, of all its cases. Of two engines also the ratio of the sentence: the median
    of ratios is not the ratio of medians."""
    found = overheads(cells) or overheads(cells, disturbed=True)
    shared = set.intersection(*(set(own) for own in found.values())) if found else set()
    if not shared:
        return []
    medians = {
        name: statistics.median(own[key].overhead().value for key in shared)
        for name, own in list(found.items())[:_TILES]
    }
    told = [(name, duration(median)) for name, median in medians.items()]
    if len(medians) == 2:
        less, more = sorted(medians, key=lambda name: medians[name])
        ratio = statistics.median(ratios_of(found[more], found[less]))
        told.append((f"{more} by {less}, case by case", times(ratio)))
    return told


def verdict(cells: Sequence[MeasuredCase]) -> str:
    """One sentence. An engine has won if it cost less than the next one in most cases, by more
    than their repeated runs differ; anything less is a provisional answer."""
    count = overheads(cells)
    if pair := _first_two(count):
        claim = _claimed(*pair, count)
        if claim:
            return claim
    alone = len({cell.one.engine for cell in cells}) == 1
    found = overheads(cells, disturbed=True)
    disturbed = sum(cell.disturbed for cell in cells)
    why = busy_in(disturbed, len(cells), "case") if disturbed else ""
    if pair := _first_two(found):
        return provisional(_added(*pair, found), why or _unsure(*pair, found))
    if alone and why and found and not count:
        ((name, own),) = found.items()
        median = statistics.median(cell.overhead().value for cell in own.values())
        return provisional(f"{name} added {amount(median, 's')} to the time of the tasks", why)
    if not count:
        return "Nothing can be claimed: no case counts."
    if len(count) == 1:
        (name,) = count
        return f"No engine won: cases of {name} alone count."
    return "Nothing can be claimed: no case counts on two engines."


def _first_two(found: dict[str, Overheads]) -> tuple[str, str] | None:
    """The engine that adds less than most others, and the one that comes closest to it; None if no
    two of them have a case in common."""
    medians = {
        (one, other): statistics.median(ratios)
        for one in found
        for other in found
        if one != other and (ratios := ratios_of(found[one], found[other]))
    }
    if not medians:
        return None
    first = max(
        (one for one, _ in medians),
        key=lambda one: sum(m < 1 for (name, _), m in medians.items() if name == one),
    )
    others = {other: median for (name, other), median in medians.items() if name == first}
    return first, max(others, key=lambda name: others[name])


def _added(first: str, second: str, found: dict[str, Overheads]) -> str:
    mine, others = found[first], found[second]
    shared = mine.keys() & others.keys()
    ratio = statistics.median(ratios_of(others, mine))
    less = sum(mine[key].overhead().value < others[key].overhead().value for key in shared)
    return (
        f"{first} added less to the time of the tasks in {less:,} of"
        f" {counted(len(shared), 'case')}, and {second} {plain(ratio)} times as much in the median"
    )


def _clear(first: str, second: str, found: dict[str, Overheads]) -> tuple[int, int]:
    """In how many cases the first added clearly less, and how many were repeated."""
    mine, others = found[first], found[second]
    repeated = [
        key
        for key in mine.keys() & others.keys()
        if min(len(mine[key].results), len(others[key].results)) >= ENOUGH
    ]
    sure = sum(mine[key].overhead().high < others[key].overhead().low for key in repeated)
    return sure, len(repeated)


def _claimed(first: str, second: str, found: dict[str, Overheads]) -> str:
    """The claim that can be made; empty if there is none."""
    sure, repeated = _clear(first, second, found)
    if not 2 * sure > repeated:
        return ""
    added = _added(first, second, found).removeprefix(f"{first} ")
    clear = f"clearly less in {sure:,} of {counted(repeated, 'repeated case')}"
    return f"{first} won: it {added}; {clear}."


def _unsure(first: str, second: str, found: dict[str, Overheads]) -> str:
    """Why undisturbed cases prove nothing."""
    sure, repeated = _clear(first, second, found)
    if not repeated:
        return f"each case ran once, and a claim takes {ENOUGH} runs"
    return f"clearly less in {sure:,} of {counted(repeated, 'repeated case')} only"

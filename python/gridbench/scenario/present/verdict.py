"""Which engine won, by how much, and how sure that is: the first sentence about scenarios."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from gridbench.formats import counted, duration, plain, times
from gridbench.scenario.cells import Cell, engines_of
from gridbench.statistics.claims import ENOUGH

Overheads = dict[tuple[object, ...], Cell]
"""The cells of an engine that count and cost something, by what was run."""

_TILES = 5


def overheads(cells: Sequence[Cell]) -> dict[str, Overheads]:
    """For each engine its cells that can be compared."""
    found: dict[str, Overheads] = {name: {} for name in engines_of(cell.one for cell in cells)}
    for cell in cells:
        one = cell.one
        if cell.counts and cell.overhead().value > 0:
            key = (one.scenario, one.case, one.transport, one.nodes, one.link_rate, one.start)
            found[one.engine][key] = cell
    return found


def ratios_of(mine: Overheads, others: Overheads) -> list[float]:
    """Overhead of one engine by that of another, in each case that counts on both."""
    return [
        mine[key].overhead().value / others[key].overhead().value
        for key in mine.keys() & others.keys()
    ]


def tiles(cells: Sequence[Cell]) -> list[tuple[str, str]]:
    """What engines cost beside the tasks, in the median of the cases that count on all of them;
    of one engine alone, of all its cases. Of two engines also the ratio of the sentence: the median
    of ratios is not the ratio of medians."""
    found = {name: own for name, own in overheads(cells).items() if own}
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


def verdict(cells: Sequence[Cell]) -> str:
    """One sentence. An engine has won if it cost less than the next one in most cases, by more
    than their repeated runs differ."""
    found = {name: own for name, own in overheads(cells).items() if own}
    if not found:
        return "Nothing can be claimed: no case counts."
    if len(found) == 1:
        (name,) = found
        return f"No engine won: cases of {name} alone count."
    medians = {
        (one, other): statistics.median(ratios)
        for one in found
        for other in found
        if one != other and (ratios := ratios_of(found[one], found[other]))
    }
    if not medians:
        return "Nothing can be claimed: no case counts on two engines."
    first = max(
        found, key=lambda one: sum(m < 1 for (name, _), m in medians.items() if name == one)
    )
    others = {other: median for (name, other), median in medians.items() if name == first}
    if not others:
        return "Nothing can be claimed: no engine has cases in common with all others."
    second = max(others, key=lambda name: others[name])
    return _compared(first, second, found)


def _compared(first: str, second: str, found: dict[str, Overheads]) -> str:
    mine, others = found[first], found[second]
    shared = mine.keys() & others.keys()
    repeated = [
        key for key in shared if min(len(mine[key].results), len(others[key].results)) >= ENOUGH
    ]
    sure = sum(mine[key].overhead().high < others[key].overhead().low for key in repeated)
    ratio = statistics.median(ratios_of(others, mine))
    less = sum(mine[key].overhead().value < others[key].overhead().value for key in shared)
    added = (
        f"added less to the time of the tasks in {less:,} of"
        f" {counted(len(shared), 'case')}, and {second} {plain(ratio)} times as much in the median"
    )
    if not repeated:
        return f"{first} {added}; each case ran once, so that nothing can be claimed."
    clear = f"clearly less in {sure:,} of {counted(len(repeated), 'repeated case')}"
    if 2 * sure > len(repeated):
        return f"{first} won: it {added}; {clear}."
    return f"Nothing can be claimed: {first} {added}, but {clear} only."

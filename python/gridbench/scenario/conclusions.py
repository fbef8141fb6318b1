"""Conclusions from a scenario's results: which engine won, how sure that is, and caveats."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from gridbench.formats import (
    amount,
    as_given,
    bit_rate,
    counted,
    duration,
    percent,
    plain,
    processors,
)
from gridbench.jsonl_store import Header
from gridbench.machine.judgement import DISTURBED, disturbed_count, sentence, tolerated
from gridbench.scenario.cases import ScenarioCell, engines_of
from gridbench.scenario.results import CaseResult
from gridbench.statistics.claims import ENOUGH, busy_in, provisional
from gridbench.workload.body import SLEEP
from gridbench.workload.workload import Kind, kind_of

_COUNTING = (
    "A cost has jumped where even the lower end of its interval is above twice the upper end of"
    " that without data, there and at all larger sizes.",
    "Sizes count 1 MB as 1,024 KB; rates count 1 MB as 8 Mbit, as the original report did.",
)
_BATCH = ("slurm", "gridengine", "htcondor", "jobqueue")
"""Parts of the names of engines that start a batch system."""
_FULL = 0.9
"""Share of all processors in use, from which they limit a run themselves."""

Overheads = dict[tuple[object, ...], ScenarioCell]
"""The cells of an engine with a cost beside the tasks, by case."""


def overheads(cells: Sequence[ScenarioCell], *, disturbed: bool = False) -> dict[str, Overheads]:
    """For each engine its cells that count; with `disturbed` also those disturbed by others."""
    found: dict[str, Overheads] = {name: {} for name in engines_of(cell.one for cell in cells)}
    for cell in cells:
        one = cell.one
        if (cell.counts or (disturbed and cell.disturbed)) and cell.overhead().value > 0:
            key = (one.scenario, one.case, one.transport, one.nodes, one.link_rate, one.start)
            found[one.engine][key] = cell
    return {name: own for name, own in found.items() if own}


def ratios_of(mine: Overheads, others: Overheads) -> list[float]:
    """Overhead of one engine divided by that of another, in each case that counts on both."""
    return [
        mine[key].overhead().value / others[key].overhead().value
        for key in mine.keys() & others.keys()
    ]


def verdict(cells: Sequence[ScenarioCell]) -> str:
    """One sentence. An engine has won if it cost less than the next one in most cases, by more
    than their repeated runs differ; anything less is a provisional answer."""
    count = overheads(cells)
    if pair := _first_two(count):
        claim = _claimed(*pair, count)
        if claim:
            return claim
    found = overheads(cells, disturbed=True)
    disturbed = sum(cell.disturbed for cell in cells)
    why = busy_in(disturbed, len(cells), "case") if disturbed else ""
    if pair := _first_two(found):
        return provisional(_added(*pair, found), why or _unsure(*pair, found))
    if why and len(found) == 1 and not count:
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


def notices(
    header: Header,
    results: Sequence[CaseResult],
    cells: Sequence[ScenarioCell],
    groups: Sequence[Sequence[CaseResult]] = (),
) -> list[str]:
    """What could mislead someone who looks at the plots only.

    `groups`: the results by folder, if they are from several; no engine is in two of them.
    """
    found = []
    scale = header.options.get("time_scale", 1.0)
    if scale != 1.0:
        found.append(
            f"Task times are multiplied by {as_given(scale, '')}; starting, data and calls are"
            " not. Overheads are real, and efficiencies lower than with the full times."
        )
    kind = tasks_of(header)
    if measured_here(header) and kind.body != SLEEP:
        found.append(
            f"Tasks {kind.told}. Where there are more workers than processors, they share them; the"
            " ideal time is that of the processors."
        )
    if measured_here(header):
        found.append(place(results))
    brought = sorted({r.engine for r in results if any(word in r.engine for word in _BATCH)})
    if brought:
        found.append(
            f"{', '.join(brought)}: gridbench started a batch system for it on this machine, and"
            " nobody else waited in its queue. Calls of gridrpc went over TLS on the loopback"
            " interface; data of jobs went through files."
        )
    invalid = [cell for cell in cells if not cell.counts]
    if invalid:
        found.append(
            f"Invalid, so that they do not count: {len(invalid)} of {len(cells)} measured cases."
            " Plots show them with hollow marks; the sentences leave them out."
        )
    skipped = [result for result in results if result.status == "skipped"]
    if skipped:
        found.append(f"Skipped: {counted(len(skipped), 'case')} ({reasons(skipped)}).")
    disturbed = sum(result.reason_kind == DISTURBED for result in results)
    if disturbed:
        count = disturbed_count(
            disturbed, len(results), "runs of cases", header.machine.get("cores")
        )
        found.append(sentence(count))
    busy = [result.load["busy"] for result in results if "busy" in result.load]
    full = sum(share >= _FULL for share in busy)
    if full:
        cores = header.machine.get("cores_usable", header.machine.get("cores", "its"))
        found.append(
            f"In {counted(full, 'case')} of {len(busy)} all {cores} processors of this machine were"
            " busy: workers competed for them as they would not on separate machines."
        )
    found += _own_part(groups or [results])
    found += _measured_once(groups or [results], cells)
    return found


def reasons(results: Iterable[CaseResult]) -> str:
    """Why cases have no result, as `10 for time, 2 for memory`."""
    kinds = Counter(one.reason_kind or "an unknown reason" for one in results)
    return ", ".join(f"{count:,} for {kind}" for kind, count in kinds.most_common())


def _own_part(groups: Sequence[Sequence[CaseResult]]) -> list[str]:
    """The benchmark's own time, with the engines where it differs between groups."""
    found: dict[str, list[str]] = {}
    for group in groups:
        own = [r.figures["harness"] for r in group if "harness" in r.figures]
        if own:
            found.setdefault(duration(median(own)), []).extend(engines_of(group))
    if not found:
        return []
    text = [f"{time} beside {', '.join(names)}" for time, names in found.items()]
    return [
        "The benchmark's own part of each task, with an engine that does nothing, was"
        f" {' and '.join(text if len(found) > 1 else found)} in the median."
    ]


def _measured_once(
    groups: Sequence[Sequence[CaseResult]], cells: Sequence[ScenarioCell]
) -> list[str]:
    """Whether repetitions are missing, with the engines if others have some."""
    times = [
        (names, [len(cell.results) for cell in cells if cell.one.engine in names])
        for names in map(engines_of, groups)
    ]
    single = [names for names, repeats in times if repeats and max(repeats) == 1]
    if not single:
        return []
    all_of = sum(bool(repeats) for _, repeats in times)
    of = "" if len(single) == all_of else f" of {', '.join(name for n in single for name in n)}"
    return [
        f"Each case{of} was measured once, so the bars of an interval show what is known of the"
        " clocks, not how repetitions would spread."
    ]


def measured_here(header: Header) -> bool:
    """Whether `gridbench scenario` made these results, and not logs and single runs."""
    return "from" not in header.options


def tasks_of(header: Header) -> Kind:
    """What the tasks did."""
    options = header.options
    return kind_of({**options, "machine": header.machine, "grid": options.get("servers")})


def place(results: Sequence[CaseResult]) -> str:
    """Where the workers were."""
    rates = {(result.nodes, result.link_rate) for result in results if result.link_rate}
    if not rates and any(result.transport == "links" for result in results):
        hosts = max(result.nodes for result in results)
        return (
            f"Servers: the workers were on up to {counted(hosts, 'host')} of a grid; the options of"
            " this page name them. Stamps of their clocks are converted to the client's."
        )
    if not rates:
        return (
            "One host: client and workers shared a machine, data moved in memory, and shared data"
            " was there once. These figures include no network."
        )
    nodes, rate = sorted((nodes, rate) for nodes, rate in rates if rate is not None)[0]
    return (
        f"Links: the workers were spread over {counted(nodes, 'place')}, each behind a link of"
        f" {bit_rate(rate)}, as was the client. All of it ran on one machine, whose processors they"
        " shared."
    )


def method(header: Header) -> list[str]:
    """How it was measured, in a few sentences."""
    options = header.options
    if "from" in options:
        return [
            "The cases are logs and single runs; their own reports say how they were made. A run"
            " without some of its tasks has no result. It does not count (invalid) if a task lacks"
            " stamps, or if the client's stamps are less exact than the cost of the run.",
            *_COUNTING,
        ]
    start = (
        "t = 0 is when the client asks for its workers (cold start), so that starting them counts."
        if options.get("start") == "cold"
        else "All workers had answered before t = 0 (warm start)."
    )
    found = [
        "Each case ran in a process of its own, in random order"
        f" (seed {header.seed}), engines mixed. {start}",
        "A run does not count (invalid) if other programs used more than"
        f" {processors(tolerated(header.machine.get('cores')))} processors meanwhile, if a task"
        " lacks stamps, or if the client's stamps are less exact than the cost of the run.",
        *_COUNTING,
    ]
    if options.get("stddev") or options.get("stddev_share"):
        found.append(
            "Task times are uneven: normally distributed, truncated at 0, with a standard deviation"
            f" of {_deviation(options)}; the ideal time is that of the times as drawn."
        )
    if options.get("split_data"):
        found.append("The input of the whole work is divided among its tasks.")
    return found


def _deviation(options: dict[str, Any]) -> str:
    if options.get("stddev"):
        return f"{as_given(options['stddev'])} (not scaled)"
    return f"{percent(options['stddev_share'], 0)} of the mean"

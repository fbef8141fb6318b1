"""What a reader of results must know besides: how they were made, and what is not in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Any

from gridbench.formats import as_given, bit_rate, counted, duration, percent, processors
from gridbench.jsonl_store import Header
from gridbench.machine.rule import tolerated
from gridbench.machine.words import DISTURBED, disturbed_count, sentence
from gridbench.scenario.cases import MeasuredCase, engines_of
from gridbench.scenario.results import CaseResult
from gridbench.workload.body import SLEEP
from gridbench.workload.workload import Kind, kind_of

_COUNTING = (
    "A cost has jumped where even the lower end of its interval is above twice the upper end of"
    " that without data, there and at all larger sizes.",
    "Sizes count 1 MB as 1,024 KB; rates count 1 MB as 8 Mbit, as the original report did.",
)
_BATCH = ("slurm", "gridengine", "htcondor", "jobqueue")
"""What the names of engines have in them that bring a batch system along."""
COUNTS_HEAD = ("engine", "done", "invalid", "skipped", "failed")
"""Of `counts`."""
_FULL = 0.9
"""Share of all processors in use, from which they limit a run themselves."""


def notices(
    header: Header,
    results: Sequence[CaseResult],
    cells: Sequence[MeasuredCase],
    groups: Sequence[Sequence[CaseResult]] = (),
) -> list[str]:
    """What could mislead someone who looks at the pictures only.

    `groups`: the results by folder, if they are of several; no engine is in two of them.
    """
    found = []
    scale = header.options.get("time_scale", 1.0)
    if scale != 1.0:
        found.append(
            f"Task times are multiplied by {as_given(scale, '')}; starting, data and calls are"
            " not. So overheads are real, and efficiencies lower than with the full times."
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
            f"{', '.join(brought)}: gridbench brought a batch system along, all nodes of which are"
            " this machine, and nobody else waited in its queue. Calls of gridrpc went over TLS on"
            " the loopback interface; data of jobs went through files."
        )
    invalid = [cell for cell in cells if not cell.counts]
    if invalid:
        found.append(
            f"Marked invalid, so that they do not count: {len(invalid)} of {len(cells)} measured"
            " cases. They are drawn with hollow marks, and the words leave them out."
        )
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


def _own_part(groups: Sequence[Sequence[CaseResult]]) -> list[str]:
    """What the benchmark itself takes, with the engines where that differs between groups."""
    found: dict[str, list[str]] = {}
    for group in groups:
        own = [r.figures["harness"] for r in group if "harness" in r.figures]
        if own:
            found.setdefault(duration(median(own)), []).extend(engines_of(group))
    if not found:
        return []
    told = [f"{time} beside {', '.join(names)}" for time, names in found.items()]
    return [
        "The benchmark's own part of each task, with an engine that does nothing, was"
        f" {' and '.join(told if len(found) > 1 else found)} in the median."
    ]


def _measured_once(
    groups: Sequence[Sequence[CaseResult]], cells: Sequence[MeasuredCase]
) -> list[str]:
    """That repetitions are missing, with the engines if others have some."""
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
            f"Servers: the workers were on up to {counted(hosts, 'host')} of a grid, which this"
            " page's end names. Stamps of their clocks were translated to the client's."
        )
    if not rates:
        return (
            "One host: client and workers shared a machine, data moved in memory, and shared data"
            " was there once. What a network adds is not in these figures."
        )
    nodes, rate = sorted((nodes, rate) for nodes, rate in rates if rate is not None)[0]
    return (
        f"Links: the workers were spread over {counted(nodes, 'place')}, each behind a link of"
        f" {bit_rate(rate)}, and the client's own link was of the same rate. All of it ran on one"
        " machine, whose processors they shared."
    )


def counts(results: Sequence[CaseResult]) -> list[list[str]]:
    """Per engine: how many cases were done, skipped, failed and invalid."""
    names = sorted({result.engine for result in results})
    rows = []
    for name in names:
        status = Counter[str](result.status for result in results if result.engine == name)
        rows.append([name, *(str(status[kind]) for kind in COUNTS_HEAD[1:])])
    return rows


def left_out(results: Sequence[CaseResult]) -> list[list[str]]:
    """The cases that are not done, with the reason: engine, case, status, reason."""
    return [
        [result.engine, result.case, result.status, result.reason]
        for result in results
        if result.status != "done"
    ]


def method(header: Header) -> list[str]:
    """How it was measured, in a few sentences."""
    options = header.options
    if "from" in options:
        return [
            "The cases are logs and single runs that were made elsewhere; how is for their own"
            " reports to say. A run has no result if tasks are missing in it, and does not count"
            " (invalid) if one lacks stamps, or if the client's stamps are less exact than what it"
            " cost.",
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
        " lacks stamps, or if the client's stamps are less exact than the time that it cost beside"
        " its tasks.",
        *_COUNTING,
    ]
    if options.get("stddev") or options.get("stddev_share"):
        found.append(
            "Task times are uneven: normally distributed, truncated at 0, with a standard deviation"
            f" of {_deviation(options)}; the ideal time is that of the times as drawn."
        )
    if options.get("split_data"):
        found.append("The input is of the whole work and divided among its tasks.")
    return found


def _deviation(options: dict[str, Any]) -> str:
    if options.get("stddev"):
        return f"{as_given(options['stddev'])} (not scaled)"
    return f"{percent(options['stddev_share'], 0)} of the mean"

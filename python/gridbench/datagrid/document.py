"""Cases on data grids as a document for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gridbench.datagrid import plots, tables
from gridbench.datagrid.cases import (
    Axis,
    DataGridSweep,
    RepeatedCase,
    compared_loops,
    repeats_of,
    scenarios_of,
    sweeps_of,
)
from gridbench.datagrid.conclusions import clients_part, headline, notices, races, subheading
from gridbench.datagrid.record import DataGridCase
from gridbench.jsonl_store import Header
from gridbench.pages.chart import Chart
from gridbench.pages.document import (
    EVERYWHERE,
    PAGE,
    WRITTEN,
    Block,
    ChartChoice,
    Document,
    Paragraph,
    Section,
    SideBySide,
    TableBlock,
    definitions,
)
from gridbench.pages.table import Table

_AXES: dict[Axis, tuple[str, str]] = {
    "ObjectSize": ("Object size", "Scenario 1: object size"),
    "NNodes": ("Clients", "Scenario 2: clients"),
    "MNodes": ("Members", "Scenario 3: members"),
}
_MOST_LOOPS = 6
"""Charts of closed and open loops."""
_RANGES = 186
"""Characters of a line from which on a terminal has room for the ranges."""
_TERMS = definitions(
    """
    case, run, repeat = A case is a data grid with its numbers of members and clients, its size of
        objects and its tasks. Each measurement of a case is a run; the runs of a case are its
        repeats (--rounds).
    * = No repeat of the case is valid. The table “Runs that do not count” says why.
    † = The case was too short to judge: all clients worked for less than ten windows of 0.1 s, so
        that nobody knows whether throughput was steady. Give tasks more to do.
    throughput = Successful operations of all clients, over the time from the instant at which all
        began to the last end.
    data rate = Bytes of objects that were read or written, without their keys; an update reads its
        object and writes it. Of rates, 1 MB is 1,000 KB; of sizes, 1 MB is 1,024 KB.
    task time = The median task of a run after the warm-up, without the first task of each client;
        if each client has a single one, with it.
    with start-up = All tasks, and the first, cold task of each client before the warm-up, with the
        time in which clients connected to the data grid, as the slides' preliminary run measured
        it.
    p50, p99 = Latencies of the operation that the case is about, from the merged histograms of all
        repeats that count; the range is that of the repeats. In an open loop they count from when
        operations should have begun.
    valid = A run is valid if the throughput was steady at the end of the warm-up and in the
        measured part, no operation failed, an offered rate was kept up with, and no other programs
        disturbed it. After a kill, only the warm-up and other programs matter. Invalid runs are
        shown, and nothing is claimed from them.
    failed = The run did not come to its end, or the data were not right.
    steady = The halves of the measured part differ by at most 10 %, or by no more than three
        standard errors of their windows. Only windows count in which all clients had something to
        do.
    in use of a member = Bytes that a member had in use when the objects were stored, after a
        garbage collection: of Java's heap, and of what has the data outside of it. It is of this
        case alone, except for Ignite, which still counts some pages that an earlier case on the
        cluster filled.
    resident of a member = Bytes of memory that its processes had then. A process may keep what it
        has taken once: of a cluster that has served other cases before, these may be in it.
    incomplete = Something is missing as expected: more members were killed than there are copies of
        an object, or tasks updated the same object at the same time without atomic updates.
    in doubt = Updates and insertions whose answer was an error: they may have happened, and count
        whichever way fits.
    fastest = An engine is called the fastest if the slowest of two or more valid repeats is faster
        than the fastest of the next engine's.
    """
)


def document_of(header: Header, cases: Sequence[DataGridCase]) -> Document:
    """The answer, tables of all cases, comparisons, and single cases task by task."""
    groups = repeats_of(cases)
    sections = [
        *_axes(groups),
        Section(
            "latency",
            "Latencies of operations",
            [TableBlock("Latencies of all cases", tables.latency_table(groups), folded=True,
                        media=PAGE)],
            short="Latencies",
        ),
        _loops(groups),
        _kills(groups),
        _memory(groups),
        _correctness(groups),
        _tasks(groups),
    ]  # fmt: skip
    return Document(
        kind="gridbench data",
        title="gridbench data: data grids",
        heading="Data grids",
        subheading=subheading(header, groups),
        sentences=headline(groups),
        notices=notices(groups),
        summary=_summary(groups),
        sections=[*(one for one in sections if _shows(one)), _method(groups, cases)],
        header=header,
    )


def _shows(section: Section) -> bool:
    """Whether it has more than explanations."""
    return any(
        (isinstance(one, TableBlock) and (one.table.rows or one.otherwise))
        or isinstance(one, Chart | ChartChoice)
        or (isinstance(one, SideBySide) and one.blocks)
        for one in section.blocks
    )


def _summary(groups: Sequence[RepeatedCase]) -> list[Block]:
    made = [(race, plots.race_tails(race, f"race-{n}")) for n, race in enumerate(races(groups))]
    charts = [(race[0].case.what, chart) for race, chart in made if chart is not None]
    marks, part = tables.marks_text(groups), clients_part(groups)
    return [
        *([ChartChoice("Latencies of", charts)] if charts else []),
        TableBlock(
            "All cases",
            tables.cases_table(groups),
            "The median of the repeats that are valid, with the smallest and the largest below it;"
            " for the time of a task, the shortest and the longest task.",
            folded=len(groups) > 40,
            notes_from=_RANGES,
            media=EVERYWHERE,
        ),
        *([Paragraph(marks, EVERYWHERE)] if marks else []),
        *([Paragraph(part, WRITTEN)] if part else []),
        _sized("Runs that do not count", tables.trouble_table(groups), 12),
    ]


def _sized(
    title: str,
    made: Table,
    most: int,
    about: str = "",
    otherwise: str = "",
    *,
    written: bool = False,
) -> TableBlock:
    """A table that is folded if it has more rows."""
    return TableBlock(
        title,
        made,
        about,
        folded=len(made.rows) > most,
        otherwise=otherwise,
        media=WRITTEN if written else PAGE,
    )


def _axes(groups: Sequence[RepeatedCase]) -> Iterable[Section]:
    """What changes with object size, clients and members."""
    for axis in _AXES:
        sweeps = sweeps_of(groups, axis)
        for scenario in scenarios_of(sweeps):
            own = [sweep for sweep in sweeps if sweep.first.case.scenario == scenario]
            yield _axis(axis, scenario, own)


def _axis(axis: Axis, scenario: int | None, sweeps: Sequence[DataGridSweep]) -> Section:
    name, heading = _AXES[axis]
    by_size = axis == "ObjectSize"
    place = f"over-{axis.lower()}{'' if scenario is None else f'-{scenario}'}"
    if scenario is None:
        heading = f"What changes with the {'' if by_size else 'number of '}{name.lower()}"
    blocks: list[Block] = [
        TableBlock(
            "Time over object size",
            tables.fits_table(sweeps) if by_size else Table((), ()),
            "Time = a × size + b: least squares of the relative errors over all repeats, with 95 %"
            " intervals. 1 MB is 1,024 KB. Of a task, its time without start-up; of an operation,"
            " its mean latency.",
        ),
        TableBlock(
            "Against the fewest",
            Table((), ()) if by_size else tables.relative_table(sweeps),
            "Time of a task as a multiple of the first one in the row, and below it throughput in"
            " the same way.",
            media=PAGE,
        ),
        TableBlock(
            "Times of tasks as a table, from the shortest to the longest, each of as many"
            " operations as the second column says",
            tables.times_table(sweeps),
            folded=True,
            media=PAGE,
        ),
        SideBySide([one.chart() for one in plots.over(sweeps, place)]),
    ]
    short = name if scenario is None else f"{scenario}: {name.lower()}"
    return Section(place, heading, blocks, short)


def _loops(groups: Sequence[RepeatedCase]) -> Section:
    compared = compared_loops(groups)
    charts = [plots.loop_tails(one, f"loop-{n}") for n, one in enumerate(compared[:_MOST_LOOPS])]
    return Section(
        "loops",
        "What the closed loop leaves out",
        [
            Paragraph(
                "In a closed loop a client waits for an answer before its next operation. While the"
                " data grid stalls, it sends nothing, and the stall counts once (coordinated"
                " omission). In an open loop operations arrive at a given rate, and their time"
                " counts from when they should have begun."
            ),
            TableBlock("Closed and open loop", tables.loops_table(compared)),
            *(one for one in charts if one is not None),
        ],
        short="Closed and open loop",
    )


def _kills(groups: Sequence[RepeatedCase]) -> Section:
    recovery = plots.recoveries(groups)
    return Section(
        "kills",
        "After members were killed",
        [
            Paragraph(
                "The level before is the median of the windows before the kill. It is there again"
                " when a window has 90 % of it, and 90 % holds on average for half a second."
            ),
            TableBlock("", tables.kills_table(groups)),
            *([recovery] if recovery else []),
        ],
        short="After a kill",
    )


def _memory(groups: Sequence[RepeatedCase]) -> Section:
    axes: tuple[Axis, ...] = ("ObjectSize", "MNodes")
    curves = plots.memory([sweep for axis in axes for sweep in sweeps_of(groups, axis)])
    balance = plots.balance(groups)
    return Section(
        "memory",
        "Memory and balance",
        [
            _sized(
                "",
                tables.memory_table(groups),
                16,
                "Of members, after the objects were stored, and garbage was collected for that. A"
                " backup alone makes what members have in use twice the data. The resident memory"
                " of a process may include earlier cases.",
                written=True,
            ),
            SideBySide([one.chart() for one in curves]),
            *([balance] if balance else []),
            _sized("Loading", tables.loading_table(groups), 16),
        ],
    )


def _correctness(groups: Sequence[RepeatedCase]) -> Section:
    wrong = [one for one in groups if one.measured and one.worst.outcome in ("wrong", "lost")]
    return Section(
        "correctness",
        "Are the data right?",
        [
            Paragraph(
                "Every value that a task reads is checked. After a run all objects are read back,"
                " the updates that each value counts are added up, and the cluster reports how many"
                " objects it has."
            ),
            _sized("Cases in which they are not", tables.correctness_table(wrong), 40),
            _sized(
                "All cases" if wrong else "",
                tables.correctness_table(groups),
                16,
                otherwise="No case came to its end yet.",
                written=True,
            ),
        ],
    )


def _tasks(groups: Sequence[RepeatedCase]) -> Section:
    """The run with the middle throughput of each case."""
    shown = plots.shown_cases(groups)
    names = [_shown_name(group) for group in shown]
    cases = [group.shown[0] for group in shown]
    made: list[list[Chart | None]] = [
        [plots.task_chart(case, f"tasks-{n}", len(shown)) for n, case in enumerate(cases)],
        [plots.throughput_chart(case, f"throughput-{n}") for n, case in enumerate(cases)],
        [plots.case_tails(group, f"latencies-{n}") for n, group in enumerate(shown)],
    ]
    choices = [
        ChartChoice("Case", [(name, one) for name, one in zip(names, charts, strict=True) if one])
        for charts in made
    ]
    many = len(shown) < sum(group.measured for group in groups)
    return Section(
        "case",
        "One case, task by task",
        [
            Paragraph(
                "Of each case the run with the middle throughput can be chosen"
                f"{f'; of many cases, {len(shown)} evenly picked ones' if many else ''}."
            ),
            *(one for one in choices if one.charts),
            TableBlock(
                "These runs",
                tables.runs_table([(_shown_name(one), one) for one in shown]),
                folded=True,
                otherwise="No case has tasks that could be shown.",
                media=PAGE,
            ),
        ],
        short="One case",
    )


def _shown_name(group: RepeatedCase) -> str:
    case, _ = group.shown
    run = f", run {case.repeat + 1}" if len(group.cases) > 1 else ""
    return f"{case.name}{run}"


def _method(groups: Sequence[RepeatedCase], cases: Sequence[DataGridCase]) -> Section:
    return Section(
        "method",
        "How to read this",
        [
            Paragraph(
                "Objects are spread over storage members beforehand. Clients are threads, in"
                " processes of their own, that store nothing; each processes its tasks one after"
                " another, and a task reads, updates and inserts objects."
            ),
            _TERMS,
            TableBlock(
                "How the products were set up",
                tables.products_table(groups),
                media=PAGE,
            ),
            _sized(
                "What was scaled",
                tables.scaled_table(cases),
                24,
                "Parameters that are not the scenario's own.",
            ),
        ],
    )

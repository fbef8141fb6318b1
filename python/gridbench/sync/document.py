"""The document about synchronised rounds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gridbench.jsonl_store import Header
from gridbench.pages.document import (
    EVERYWHERE,
    PAGE,
    WRITTEN,
    Block,
    Bullets,
    ChartChoice,
    Document,
    Paragraph,
    Section,
    TableBlock,
    definitions,
)
from gridbench.pages.table import Table
from gridbench.sync.cases import SyncCase, cases_of
from gridbench.sync.conclusions import (
    bottleneck_sentences,
    headline,
    notices,
    own_part,
    scaling_sentences,
    subheading,
)
from gridbench.sync.plots import over_parameters, over_time, over_workers
from gridbench.sync.record import Round
from gridbench.sync.round_plot import round_charts, shown_rounds
from gridbench.sync.tables import (
    NOT_COUNTED,
    cases_table,
    hosts_table,
    phases_table,
    rounds_table,
    task_tables,
)

_FEW_ROWS = 60
"""Rows of a table that a page shows unfolded."""
_TERMS = definitions(
    """
    start skew = From the first instruction of the first task to that of the last task. The error of
        the clocks of two hosts widens its range; tasks of one host share a clock.
    span = From the first instruction of the first task to the last exit. For a task that does
        nothing it is the cost of starting together.
    overlap = Share of the span in which all tasks that began and ended run together, from the last
        begin to the first end. A single task that is slow or late makes it small.
    task time = From first instruction to exit; the median of the tasks that ended well.
    rate = All bytes of a phase, or its operations if it moves none, over the time of its slowest
        task, as IOR and mdtest report it. The table of phases also has the sum of the tasks' own
        rates, which is the rate if all ended together; it is never smaller. Both assume that the
        tasks begin the phase together. In rates 1 GB is 1,000 MB, in sizes 1,024 MB.
    scalability law = The universal scalability law describes a rate over the number of workers by
        the rate of one worker, the share of the work that one worker does at a time, and the cost
        of each pair of workers. The page has it where it fits.
    p50, p99 = Latencies of single operations. p50 is the median of the workers' medians. p99 is the
        largest of the workers' 99th percentiles, an upper bound: percentiles of several workers
        cannot be combined.
    straggler = A task that ended well but took longer than three times the distance between the
        quartiles above the upper quartile (Tukey's outer fence), and 5 % longer than the median.
        Fewer than five tasks have no stragglers.
    limited by = Bottlenecks that the hosts' counters show in at least half of the rounds that
        count, by phase. The section on bottlenecks has the sentences.
    counts = A round counts if all of its tasks ended well and no other programs disturbed it. Where
        a case has such rounds, its figures are of these alone (“2 of 3” rounds); a hollow mark or a
        star says that it has none.
    start: entry = The task's program is loaded before the instant and waits at its first
        instruction.
    start: exec = The task's process waits just before it executes the program, so that loading the
        program is part of the round.
    pressure = Share of the time in which some process waited for processors, disks or memory, as
        measured by Linux (PSI).
    """
)


def document_of(header: Header, rounds: Sequence[Round], files: Path | None = None) -> Document:
    """How simultaneous the rounds were, how much their tasks did, and what limited them.

    `files`: the folder of results as seen from the page, for links to the output of tasks.
    """
    cases = cases_of(rounds)
    workers, parameters = over_workers(cases), over_parameters(cases)
    task = header.options.get("task")
    sections = [
        Section(
            "workers",
            "What changes with the number of workers",
            [
                Bullets(scaling_sentences(rounds)),
                *(one.chart() for one in workers[1:]),
                *(
                    []
                    if workers
                    else [Paragraph("Rounds of one number of workers show no change.")]
                ),
            ],
            "Over workers",
        ),
        Section(
            "parameters",
            "What changes with the parameter",
            [one.chart() for one in parameters],
            "Over parameters",
        ),
        Section(
            "together", "Do the tasks run at the same time?", over_time(cases), "At the same time?"
        ),
        Section("round", "One round, worker by worker", _round_blocks(cases), "One round"),
        Section(
            "limits",
            "Bottlenecks",
            [Bullets(lines, what) for what, lines in bottleneck_sentences(cases)]
            or [Paragraph("The counters of the hosts show no bottleneck, or there are none.")],
        ),
        Section("trouble", "Failures and stragglers", _task_blocks(cases, files)),
        Section("method", "How to read this", _method(cases)),
    ]
    return Document(
        kind="gridbench sync",
        title="gridbench sync: synchronised rounds",
        heading=f"Synchronised rounds{f' of {task}' if isinstance(task, str) and task else ''}",
        subheading=subheading(header, cases),
        sentences=headline(cases),
        notices=notices(cases),
        summary=[*(one.chart() for one in workers[:1]), *_case_blocks(cases)],
        sections=[one for one in sections if one.blocks],
        header=header,
    )


def _case_blocks(cases: Sequence[SyncCase]) -> list[Block]:
    star = f"{NOT_COUNTED} No round of this case counts: its figures are of all rounds."
    return [
        TableBlock(
            "All cases",
            cases_table(cases),
            "Medians of the repeats that count, with the smallest and the largest. Start skew: time"
            " between the starts of the first and the last task. Span: from the first start to the"
            " last end. Overlap: share of the span in which all tasks run.",
            folded=len(cases) > _FEW_ROWS,
            notes_from=160,
            media=EVERYWHERE,
        ),
        *([] if all(case.counts for case in cases) else [Paragraph(star, EVERYWHERE)]),
        TableBlock(
            "The phases in detail: both ways to add up rates, and latencies",
            phases_table(cases),
            folded=True,
            media=PAGE,
        ),
    ]


def _round_blocks(cases: Sequence[SyncCase]) -> list[Block]:
    shown = shown_rounds(cases)
    if not shown:
        return [Paragraph("No round was made yet.")]
    of = f"{len(shown)} of {len(cases)} cases" if len(shown) < len(cases) else "each case"
    return [
        Paragraph(
            f"The median round of {of}, by its span. Bars are tasks in the colour of their host;"
            " below them are the counters of the hosts, unless the round was too short for them."
        ),
        ChartChoice("Round", round_charts(shown)),
        TableBlock("These rounds", rounds_table(shown), folded=True, media=PAGE),
        TableBlock(
            "Counters of the hosts in these rounds",
            hosts_table(shown),
            folded=True,
            otherwise="No counters of the hosts of these rounds are known.",
            media=PAGE,
        ),
    ]


def _task_blocks(cases: Sequence[SyncCase], files: Path | None) -> list[Block]:
    found = task_tables(cases, files)
    return [
        _tasks(
            "Tasks that did not end well", found.failures, found.failed, "All tasks ended well."
        ),
        _tasks(
            "Stragglers",
            found.stragglers,
            found.late,
            "No task was far slower than the others of its round.",
        ),
        TableBlock(
            "Stragglers in most of their rounds",
            found.frequent,
            otherwise="No worker and no host is a straggler in more than half of three or more"
            " rounds.",
            media=PAGE,
        ),
    ]


def _tasks(title: str, table: Table, of: int, otherwise: str) -> TableBlock:
    shown = len(table.rows)
    return TableBlock(
        f"{title}: the first {shown} of {of:,}" if shown < of else title,
        table,
        folded=shown > _FEW_ROWS,
        otherwise=otherwise,
        media=PAGE,
    )


def _method(cases: Sequence[SyncCase]) -> list[Block]:
    own = own_part(cases)
    return [
        Paragraph(
            "In a round, all workers start their task and hold it. At an agreed instant, on clocks"
            " that are corrected against the client's, all tasks are released. Each task is a"
            " process of its own."
        ),
        *([Paragraph(own, WRITTEN)] if own else []),
        _TERMS,
    ]

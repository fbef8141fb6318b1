"""The results as one HTML page; its pictures are drawn by sync.js."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gridbench.atomic_write import write_file
from gridbench.jsonl_store import Header, folder_of
from gridbench.pages import render as pages
from gridbench.pages.chart import Chart
from gridbench.pages.table import Table, facts
from gridbench.sync.bottlenecks import bottlenecks as limits_of
from gridbench.sync.cases import SyncCase, cases_of
from gridbench.sync.present import details, pictures
from gridbench.sync.present.limiting import Limits, remembered
from gridbench.sync.present.notes import (
    headline,
    knee_sentences,
    limit_sentences,
    notices,
    own_part,
    subheading,
)
from gridbench.sync.present.rows import cases_table, phases_table
from gridbench.sync.present.trouble import trouble_of
from gridbench.sync.record import FORM, Round


def write_report(source: Path, out: Path, *, limits: Limits = limits_of) -> None:
    """Write the page about the results in a folder, completely or not at all.

    InputError if they cannot be read, or if `out` cannot be written.
    """
    header, rounds = FORM.read(source)
    files = Path(os.path.relpath(folder_of(source).resolve(), out.resolve().parent))
    write_file(out, render(header, rounds, limits=limits, files=files))


def render(
    header: Header,
    rounds: Sequence[Round],
    *,
    limits: Limits = limits_of,
    files: Path | None = None,
) -> str:
    """The whole page as HTML. `files` is the folder of results as seen from the page, for links to
    what tasks printed."""
    cases = cases_of(rounds)
    limits = remembered(limits)
    told = headline(cases, limits)
    shown = details.shown_rounds(cases)
    workers, parameters = pictures.over_workers(cases), pictures.over_parameters(cases)
    panels = details.panels(shown)
    trouble = trouble_of(cases, files)
    return pages.render(
        "sync/present/sync.html",
        "gridbench sync: synchronised rounds",
        {
            "curve": {one.id: one.data() for one in (*workers, *parameters)},
            "running": pictures.running(cases),
            "share": pictures.share_running(cases),
            "delays": pictures.delays(cases),
            "rounds": details.details(shown),
            "hosts_head": details.HOSTS_HEAD,
        },
        styles=["sync/present/sync.css"],
        scripts=["pages/curves.js", "sync/present/sync.js"],
        kind="gridbench sync",
        heading=_heading(header),
        subheading=subheading(header, cases),
        navigation=[
            ("summary", "Summary"),
            ("workers", "Over workers"),
            *([("parameters", "Over parameters")] if parameters else []),
            ("together", "At the same time?"),
            ("round", "One round"),
            ("limits", "Bottlenecks"),
            ("trouble", "Failures and stragglers"),
            ("method", "How to read this"),
        ],
        verdict=told[0],
        sentences=told[1:],
        notices=notices(cases),
        own_part=own_part(cases),
        cases=cases_table(cases, limits),
        uncounted=not all(case.counts for case in cases),
        phases=phases_table(cases),
        knees=knee_sentences(rounds),
        workers=[one.chart() for one in workers],
        parameters=[one.chart() for one in parameters],
        together=_together(cases),
        shown=[one.named() for one in shown],
        gantt=Chart("gantt", "When each task of the round began and ended"),
        panels=[
            Chart("counters", panel.title, name=panel.name, title=panel.title) for panel in panels
        ],
        limits=limit_sentences(cases, limits),
        trouble=trouble,
        machine=_facts(header.machine),
        options=_facts(header.options | {"seed of the order": header.seed}),
        versions=_facts(header.versions),
    )


def _together(cases: Sequence[SyncCase]) -> list[Chart]:
    if not cases:
        return []
    return [
        Chart(
            "running",
            "Tasks running over time",
            title="Tasks running over time",
            about="One round of each number of workers, that with the middle span of its case. A"
            " steep rise is a small start skew; a flat top is the time in which all run; a long"
            " slope at the end is some tasks taking longer than others.",
        ),
        Chart(
            "share",
            "Share of the tasks running, over the share of the round",
            title="The same rounds as shares",
            about="Rounds of any length and size, from the first start at 0 % to the last end at"
            " 100 %: where all workers ran all the time, the line is at the top throughout.",
        ),
        Chart(
            "delays",
            "When tasks began after the agreed instant",
            title="When tasks began after the agreed instant",
            about="Which share of the tasks had reached their first instruction so long after the"
            " instant that all workers had agreed on; the tasks of all rounds that count.",
        ),
    ]


def _heading(header: Header) -> str:
    task = header.options.get("task")
    return (
        f"Synchronised rounds of {task}"
        if isinstance(task, str) and task
        else "Synchronised rounds"
    )


def _facts(known: dict[str, Any]) -> Table:
    return facts(
        [
            (name, value if isinstance(value, str) else json.dumps(value, default=os.fspath))
            for name, value in known.items()
        ]
    )

"""Results of scenarios as documents: of one scenario, or of several together."""

from __future__ import annotations

import os
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gridbench.errors import InputError
from gridbench.formats import NOTHING, counted, duration, percent, plain, times
from gridbench.jsonl_store import Header
from gridbench.pages.document import (
    EVERYWHERE,
    PAGE,
    Block,
    Bullets,
    Document,
    Paragraph,
    Section,
    TableBlock,
    definitions,
    subheading,
)
from gridbench.pages.table import Cell, Column, Table, table_of
from gridbench.report.charts import cost_chart, most_tasks
from gridbench.report.document import run_section
from gridbench.report.run_analysis import Study, study
from gridbench.report.source import load_runs
from gridbench.results_folder import REPORT
from gridbench.scenario.answers import QUESTIONS, TITLES, answers
from gridbench.scenario.cases import ScenarioCell, cells_of, engines_of
from gridbench.scenario.conclusions import (
    measured_here,
    method,
    notices,
    overheads,
    ratios_of,
    tasks_of,
    verdict,
)
from gridbench.scenario.plots import plots_of
from gridbench.scenario.published import published_blocks
from gridbench.scenario.results import CaseResult, read_results

_MOST_TASKS = 5_000
"""Tasks of a run that is shown task by task."""
_FOLDED = 12
"""Rows from which a table is folded."""
_BESIDE = "Total less ideal time, in the median of the cases that count on all engines"
_TERMS = definitions(
    """
    ideal = The same tasks in order of submission on as many cores, each going to the first that is
        free, with no overhead at all.
    total less ideal = The cost of going remote: starting, handing over, moving data, giving back,
        and waiting for each other.
    efficiency = Ideal over measured time.
    block = As many tasks as there are cores. The first contends for the network, as all its
        transfers begin together.
    interval = From the smallest to the largest of repeated runs, widened by the uncertainty of the
        clocks.
    submit, calc-in, calc-out, retrieve = The stamps of a task: the client hands it over; it starts
        and ends computing; its result is in the client's hand.
    """
)


# ---- One scenario


def document_of(header: Header, results: Sequence[CaseResult], *, runs: bool = False) -> Document:
    """The answer to a scenario's question, its plots and all its cases. `runs`: read single runs,
    which the page shows task by task. The folders of the results are full paths."""
    scenario = int(header.options.get("scenario", 1))
    cells = cells_of(results)
    charts = [plot.chart() for plot in plots_of(scenario, cells)]
    studies = _single_runs(cells) if runs else []
    return Document(
        kind=f"gridbench scenario {scenario}",
        title=f"gridbench scenario {scenario}: {TITLES[scenario]}",
        heading=TITLES[scenario],
        subheading=_subheading(header, results),
        sentences=[verdict(cells)],
        notices=notices(header, results, cells),
        summary=[
            *charts[:1],
            Paragraph(f"Scenario {scenario}. {QUESTIONS[scenario]}", EVERYWHERE),
            *_answers(header, cells),
            medians_block(cells),
            counts_block(results),
        ],
        sections=[
            *([Section("pictures", "More plots", charts[1:])] if len(charts) > 1 else []),
            Section("published", "Published systems", published_blocks(scenario, cells)),
            Section("runs", "Single runs", _run_blocks(studies)),
            *(run_section(one, at, most_tasks(studies)) for at, one in enumerate(studies, 1)),
            Section("cases", "All cases", _case_blocks(results)),
            Section("method", "Method", [*map(Paragraph, method(header)), _TERMS]),
        ],
        header=header,
    )


def _answers(header: Header, cells: Sequence[ScenarioCell]) -> list[Block]:
    scenario = int(header.options.get("scenario", 1))
    return [
        Bullets(sentences, engine, EVERYWHERE)
        for engine, sentences in answers(scenario, cells, again=measured_here(header))
    ]


def medians_block(cells: Sequence[ScenarioCell]) -> TableBlock:
    """The cost of each engine beside the tasks. Of two engines also the median of the ratios of
    cases, which is not the ratio of the medians."""
    found = overheads(cells) or overheads(cells, disturbed=True)
    shared = set.intersection(*(set(own) for own in found.values())) if found else set()
    medians = {
        name: statistics.median(own[key].overhead().value for key in shared)
        for name, own in found.items()
        if shared
    }
    rows = [[name, duration(value)] for name, value in medians.items()]
    if len(medians) == 2:
        less, more = sorted(medians, key=lambda name: medians[name])
        ratio = statistics.median(ratios_of(found[more], found[less]))
        rows.append([f"{more} by {less}, case by case", times(ratio)])
    return TableBlock(_BESIDE, Table(["engine", "median"], rows), "Less is better.")


def counts_block(results: Sequence[CaseResult]) -> TableBlock:
    """Per engine: how many cases are done, invalid, skipped and failed."""
    found = Counter[tuple[str, str]]((one.engine, one.status) for one in results)
    columns = [
        Column[str]("engine", lambda engine: engine),
        *(
            Column[str](status, lambda engine, status=status: found[engine, status])  # type: ignore[misc]
            for status in ("done", "invalid", "skipped", "failed")
        ),
    ]
    engines = sorted({one.engine for one in results})
    return TableBlock("Cases", table_of(columns, engines), media=EVERYWHERE)


def _run_blocks(studies: Sequence[Study]) -> list[Block]:
    if not studies:
        return [Paragraph("No run is there to be shown task by task.")]
    return [
        Paragraph(
            "For each engine the case with the least and the one with the most data, on the most"
            " cores: the cost of their workers besides the tasks themselves, and below each run by"
            " itself. `gridbench report` with the folder of any other run shows that one."
        ),
        cost_chart(studies),
    ]


def _single_runs(cells: Sequence[ScenarioCell]) -> list[Study]:
    """For each engine the case with the least and with the most data, of the most cores."""
    chosen: list[CaseResult] = []
    for engine in engines_of(cell.one for cell in cells):
        own = [
            cell.one
            for cell in cells
            if cell.one.engine == engine and cell.one.tasks <= _MOST_TASKS and cell.one.folder
        ]
        # Plots of cores without work show little.
        own = [one for one in own if one.tasks >= one.cores] or own
        own.sort(key=lambda one: (one.cores, _data_of(one), one.tasks))
        most = [one for one in own if one.cores == own[-1].cores]
        chosen += {one.identity: one for one in (*most[:1], *most[-1:])}.values()
    studies = []
    for one in chosen:
        assert one.folder is not None
        try:
            (run,) = load_runs([one.folder])
        except InputError:  # the run's folder was removed; the results have its figures
            continue
        studies.append(study(replace(run, name=f"{one.case}, {one.engine}")))
    return studies


def _data_of(one: CaseResult) -> int:
    return one.bytes_in + one.bytes_out + one.bytes_shared


def _case_blocks(results: Sequence[CaseResult]) -> list[Block]:
    ordered = sorted(
        results, key=lambda r: (r.cores, r.tasks, r.sleep_s, _data_of(r), r.engine, r.round)
    )
    columns = [
        Column[CaseResult]("case", lambda one: one.case),
        Column("engine", lambda one: one.engine, words=True),
        Column("", _status, words=True),
        Column("total", lambda one: _duration(one.total_s)),
        Column("ideal", lambda one: _duration(one.ideal_s)),
        Column("total less ideal", lambda one: _duration(one.overhead_s)),
        Column("efficiency", _efficiency),
        *(_part(head, name) for head, name in _PARTS),
    ]
    left_out = [one for one in results if one.status != "done"]
    reasons = [
        Column[CaseResult]("engine", lambda one: one.engine),
        Column("case", lambda one: one.case, words=True),
        Column("status", _status, words=True),
        Column("why", lambda one: one.reason, words=True),
    ]
    return [
        Paragraph(
            "The four last columns are parts of the cost, per worker; see Single runs for their"
            " meaning."
        ),
        TableBlock(
            f"{counted(len(results), 'result')} as a table",
            table_of(columns, ordered, row_style=_row_style),
            folded=True,
            media=PAGE,
        ),
        TableBlock(
            "Not measured, or not counted",
            table_of(reasons, left_out, style="left"),
            folded=len(left_out) > _FOLDED,
            otherwise="Every case was measured, and counts.",
            media=PAGE,
        ),
    ]


_PARTS = (
    ("start-up", "start_up"),
    ("dispatch", "dispatch"),
    ("input", "input"),
    ("return", "output"),
)


def _part(head: str, name: str) -> Column[CaseResult]:
    return Column(head, lambda one: _duration(one.figures.get(f"part_{name}")))


def _duration(seconds: float | None) -> str | None:
    return None if seconds is None else duration(seconds)


def _status(one: CaseResult) -> Cell:
    return Cell(one.status, style="bad" if one.status == "failed" else "")


def _row_style(one: CaseResult) -> str:
    return "" if one.status == "done" else "uncounted"


def _efficiency(one: CaseResult) -> str:
    return NOTHING if not one.total_s or one.ideal_s is None else percent(one.ideal_s / one.total_s)


def _subheading(header: Header, results: Sequence[CaseResult]) -> str:
    host = header.machine.get("host")
    return subheading(
        header,
        ", ".join(engines_of(results)),
        f"tasks {tasks_of(header).told}" if measured_here(header) else "",
        counted(len(results), "result"),
        f"on {host}" if host else "",
    )


# ---- Several scenarios


@dataclass(frozen=True, slots=True)
class ScenarioPart:
    """Folders of one scenario whose engines were measured in the same way on the same machine: they
    stand side by side as if they were from one folder."""

    scenario: int
    header: Header
    folders: dict[Path, list[CaseResult]]
    name: str
    """The scenario's number, with the folders if other parts have the same number."""

    @property
    def results(self) -> list[CaseResult]:
        """Of all folders."""
        return [result for results in self.folders.values() for result in results]

    @property
    def cells(self) -> list[ScenarioCell]:
        """The measured cases."""
        return cells_of(self.results)

    @property
    def title(self) -> str:
        """`4. Delay by input data`."""
        where = self.name.removeprefix(str(self.scenario))
        return f"{self.scenario}. {TITLES[self.scenario]}{where}"

    def takes(self, header: Header, results: Sequence[CaseResult]) -> bool:
        """Whether a folder belongs to it. Results of an engine in two folders are no repetitions:
        something may have changed between them."""
        return (
            header.options == self.header.options
            and header.machine == self.header.machine
            and not set(engines_of(results)) & set(engines_of(self.results))
        )


def parts_of(paths: Sequence[Path]) -> list[ScenarioPart]:
    """All folders, in the order given. InputError if one cannot be read."""
    parts: list[ScenarioPart] = []
    for path in paths:
        header, results = read_results(path)
        part = next((one for one in parts if one.takes(header, results)), None)
        if part is None:
            scenario = int(header.options.get("scenario", 1))
            part = ScenarioPart(scenario, header, {}, f"{scenario}")
            parts.append(part)
        part.folders[path] = results
    count = Counter(part.scenario for part in parts)
    return [
        replace(part, name=f"{part.scenario} ({', '.join(map(str, part.folders))})")
        if count[part.scenario] > 1
        else part
        for part in parts
    ]


def overall_document(folders: Sequence[Path], base: Path) -> Document:
    """Several folders: each question with its answer, and the engines compared. `base`: where the
    page is, for its links. InputError if a folder cannot be read."""
    parts = sorted(parts_of(folders), key=lambda part: part.scenario)
    results = [result for part in parts for result in part.results]
    cells = [cell for part in parts for cell in part.cells]
    return Document(
        kind="gridbench scenarios",
        title="gridbench scenarios",
        heading="Scenarios",
        subheading=", ".join(engines_of(results)),
        sentences=[verdict(cells)],
        notices=_grouped(
            (part.name, line)
            for part in parts
            for line in notices(part.header, part.results, part.cells, [*part.folders.values()])
        ),
        summary=[medians_block(cells), counts_block(results)],
        sections=[
            *(
                Section(f"part-{number}", part.title, _part_blocks(part, number, base))
                for number, part in enumerate(parts)
            ),
            Section("engines", "Engines side by side", [_compared(cells)]),
        ],
    )


def _part_blocks(part: ScenarioPart, number: int, base: Path) -> list[Block]:
    cells = part.cells
    charts = [plot.chart() for plot in plots_of(part.scenario, cells)[:1]]
    pages = [
        Column[Path]("engines", lambda folder: ", ".join(engines_of(part.folders[folder]))),
        Column(
            "page",
            lambda folder: Cell(
                f"All of scenario {part.scenario}",
                link=os.path.relpath(folder / REPORT, base),
            ),
        ),
    ]
    return [
        Paragraph(f"Scenario {part.name}. {QUESTIONS[part.scenario]}", EVERYWHERE),
        *([Paragraph(verdict(cells), EVERYWHERE)] if len(engines_of(part.results)) > 1 else []),
        *_answers(part.header, cells),
        # Two parts can be from the same scenario.
        *(replace(chart, name=f"{chart.name}-{number}") for chart in charts),
        *(
            replace(block, folded=True) if isinstance(block, TableBlock) else block
            for block in published_blocks(part.scenario, cells)
        ),
        TableBlock("", table_of(pages, part.folders, style="left"), media=PAGE),
    ]


def _grouped(lines: Iterable[tuple[str, str]]) -> list[str]:
    """Each line once, with the names of the parts it is from."""
    said: dict[str, list[str]] = {}
    for name, line in lines:
        said.setdefault(line, []).append(name)
    return [
        f"{'Scenario' if len(names) == 1 else 'Scenarios'} {', '.join(names)}: {line}"
        for line, names in said.items()
    ]


def _compared(cells: Sequence[ScenarioCell]) -> TableBlock:
    found = overheads(cells) or overheads(cells, disturbed=True)
    engines = engines_of(cell.one for cell in cells)

    def ratio(engine: str, other: str) -> str:
        ratios = ratios_of(found.get(engine, {}), found.get(other, {}))
        if engine == other or not ratios:
            return NOTHING
        return f"{plain(statistics.median(ratios))} ({counted(len(ratios), 'case')})"

    columns = [
        Column[str]("", lambda engine: engine),
        *(
            Column[str](f"against {other}", lambda engine, other=other: ratio(engine, other))  # type: ignore[misc]
            for other in engines
        ),
    ]
    return TableBlock(
        "",
        table_of(columns, engines if len(engines) > 1 else []),
        "Over the cases that count on both engines: the median of the ratio of total less ideal"
        " time. Below 1 is less overhead.",
        otherwise="Only one engine was measured.",
    )

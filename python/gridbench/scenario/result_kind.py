"""Results of scenarios, as `gridbench.result_kind.ResultKind`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridbench.errors import InputError
from gridbench.result_kind import ResultRow, nothing_counts
from gridbench.scenario.results import CaseResult, folders_of_results, read_results

if TYPE_CHECKING:
    from gridbench.pages.document import Document

title = "gridbench scenario"
model: str | None = "gridbench.model.model_kind"
rules = "gridbench.report.rules"
compares = False


def holds(source: Path) -> bool:
    """Whether there are results of one scenario, or of several."""
    return bool(folders_of_results(source))


def rows(source: Path) -> Iterator[ResultRow]:
    """Total times of the cases. InputError if they cannot be read."""
    from gridbench.machine.judgement import DISTURBED

    for one in _results(source):
        if one.total_s is not None:
            yield ResultRow(
                engine=one.engine,
                what=f"scenario {one.scenario}, {one.case}, {one.start}",
                metric="total time",
                value=one.total_s,
                repeat=one.round,
                valid=one.status == "done",
                disturbed=one.status == "invalid" and one.reason_kind == DISTURBED,
                parameters={
                    "scenario": one.scenario,
                    "case": one.case,
                    "cores": one.cores,
                    "tasks": one.tasks,
                    "sleep_s": one.sleep_s,
                    "stddev_s": one.stddev_s,
                    "time_scale": one.time_scale,
                    "bytes_in": one.bytes_in,
                    "bytes_shared": one.bytes_shared,
                    "bytes_out": one.bytes_out,
                    "transport": one.transport,
                    "nodes": one.nodes,
                    "link_rate": one.link_rate,
                    "start": one.start,
                },
            )


def nothing_valid(source: Path) -> InputError:
    """How many cases there are, and why they do not count."""
    from gridbench.machine.judgement import DISTURBED

    reasons = (
        f"{DISTURBED} by other programs"
        if one.reason_kind == DISTURBED
        else " as ".join(filter(None, [one.status, one.reason_kind]))
        for one in _results(source)
    )
    return nothing_counts(
        source,
        "case",
        reasons,
        "run `gridbench scenario` again with the same --out, on a quiet machine: it measures again"
        " what does not count",
    )


def _results(source: Path) -> list[CaseResult]:
    return [one for folder in folders_of_results(source) for one in read_results(folder)[1]]


def document(sources: Sequence[Path], page: Path | None = None) -> Document:
    """Of one scenario, or of several together. `page`: where it is written; a page shows single
    runs task by task."""
    from gridbench.scenario.document import document_of, overall_document

    folders = _folders(sources)
    if len(folders) == 1 and folders == list(sources):
        return document_of(*read_results(folders[0]), runs=page is not None)
    return overall_document(folders, page.parent if page else Path())


def to_record(source: Path) -> dict[str, Any]:
    """The answer of each scenario, and all cases."""
    from gridbench.scenario.cases import cells_of
    from gridbench.scenario.conclusions import verdict
    from gridbench.statistics.claims import answer_record

    found = {folder: read_results(folder)[1] for folder in folders_of_results(source)}
    answers = {folder: verdict(cells_of(results)) for folder, results in found.items()}
    return {
        "answers": [
            {"folder": own, **answer_record(reported)} for own, reported in answers.items()
        ],
        "cases": [asdict(one) for results in found.values() for one in results],
    }


def _folders(sources: Sequence[Path]) -> list[Path]:
    """Those of single scenarios. InputError if a source holds none."""
    folders = []
    for source in sources:
        found = folders_of_results(source)
        if not found:
            raise InputError(
                "holds no results of a scenario, and cannot be in one report with others",
                file=source,
                remedy="make a report of scenarios alone",
            )
        folders += found
    return folders

"""Evidence from folders of results: figures with machine, date, and whether they claim."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gridbench.errors import InputError
from gridbench.jsonl_store import load_records
from gridbench.machine.judgement import DISTURBED
from gridbench.micro.record import load_results
from gridbench.model.model import PipelineModel
from gridbench.model.saved import load_models
from gridbench.report.run_analysis import counts, disturbed_only, study
from gridbench.report.source import load_runs, section
from gridbench.result_kind import (
    RUNS,
    SCENARIO,
    FigureName,
    Measure,
    ResultKind,
    kind_of,
    module_of,
)
from gridbench.run.recorder import runs_below
from gridbench.scenario.results import folders_of_results, read_results

ADVISE = "gridbench advise"
_MODEL = "model.json"
_PARAGRAPH = re.compile(r"^(?![#|<!-]).+")
_ESCAPED = re.compile(r"\\([\\`*_\[\]<>|&#~])")


@dataclass(frozen=True, slots=True)
class Evidence:
    """Figures of one machine in one folder."""

    source: Path
    command: str
    """The command that measured it, such as `gridbench run`."""
    host: str
    cores: int
    """Processors of the machine; 0: unknown."""
    date: str
    """ISO 8601, in minutes; empty: unknown."""
    figures: Mapping[FigureName, Measure]
    """Figures of undisturbed measurements."""
    provisional: Mapping[FigureName, Measure]
    """Figures with disturbed measurements only."""
    models: tuple[PipelineModel, ...] = ()
    told: str = ""
    """The first sentence of the report; empty: none."""

    @property
    def has_tasks(self) -> bool:
        """Whether it has runs of tasks on engines, to which a model can be fitted."""
        return self.command in ("gridbench run", "gridbench scenario")


def read_evidence(sources: Sequence[Path]) -> list[Evidence]:
    """The evidence in all folders, the oldest first. InputError for a folder without results."""
    found = [one for source in sources for one in _read(source)]
    return sorted(found, key=lambda one: one.date)


def _read(source: Path) -> Iterator[Evidence]:
    if not source.exists():
        raise InputError("does not exist", file=source, remedy="give folders of results")
    kind = kind_of([source])
    if not kind.holds(source):
        if (source / _MODEL).is_file():
            yield _of_advice(source)
            return
        raise InputError(
            "holds no results",
            file=source,
            remedy="give folders that gridbench run, micro, scenario, advise, sync, data or compare"
            " has written",
        )
    if kind is module_of(RUNS):
        yield from _of_runs(source)
    elif kind is module_of(SCENARIO):
        for folder in folders_of_results(source):
            yield _of_scenario(folder)
    else:
        yield _of_kind(source, kind)


def _of_runs(source: Path) -> Iterator[Evidence]:
    """Of each machine that runs in a folder are of."""
    by_host: dict[tuple[str, int], list[Path]] = {}
    places = runs_below(source) or [source]
    studies = {one.path: study(one) for one in load_runs(places)}
    for path, one in studies.items():
        machine = section(one.run.record, "machine")
        by_host.setdefault((_host(machine), _cores(machine)), []).append(path)
    for (host, cores), paths in by_host.items():
        sure: dict[FigureName, list[float]] = {}
        busy: dict[FigureName, list[float]] = {}
        for path in paths:
            one = studies[path]
            target = sure if counts(one) else busy if disturbed_only(one) else None
            if target is not None and one.end > 0:
                run = one.run
                start = "cold" if run.cold else "warm"
                kind = f" {run.kind.told}" if run.kind.told else ""
                what = f"{run.ntasks:,} tasks{kind}, {run.nnodes:,} workers, {start} start"
                target.setdefault((run.engine, what), []).append(one.end)
        dates = sorted(str(studies[path].run.record.get("started") or "") for path in paths)
        machine = {"host": host, "cores": cores}
        yield _of_totals(source, machine, dates[0], sure, busy, command="gridbench run")


def _of_scenario(folder: Path) -> Evidence:
    header, results = read_results(folder)
    sure: dict[FigureName, list[float]] = {}
    busy: dict[FigureName, list[float]] = {}
    for one in results:
        busy_only = one.status == "invalid" and one.reason_kind == DISTURBED
        target = sure if one.status == "done" else busy if busy_only else None
        if target is not None and one.total_s is not None:
            what = f"scenario {one.scenario}, {one.case}, {one.start}"
            target.setdefault((one.engine, what), []).append(one.total_s)
    return _of_totals(
        folder,
        header.machine,
        header.started,
        sure,
        busy,
        command="gridbench scenario",
        told=_first_sentence(module_of(SCENARIO), folder),
    )


def _of_kind(source: Path, kind: ResultKind) -> Evidence:
    machine, date = _header_of(source, kind)
    sure: dict[FigureName, Measure] = {}
    busy: dict[FigureName, Measure] = {}
    for row in kind.rows(source):
        target = sure if row.valid else busy
        before = target.get((row.engine, row.what), Measure((), row.unit, row.better))
        target[row.engine, row.what] = replace(before, values=(*before.values, row.value))
    return Evidence(
        source=source,
        command=kind.title,
        host=_host(machine),
        cores=_cores(machine),
        date=date[:16],
        figures=sure,
        provisional={key: measure for key, measure in busy.items() if key not in sure},
        told=_first_sentence(kind, source),
    )


def _of_advice(source: Path) -> Evidence:
    models = tuple(load_models(source / _MODEL))
    place = models[0].fit.place
    return Evidence(
        source=source,
        command=ADVISE,
        host=place.host,
        cores=place.processors,
        date="",
        figures={},
        provisional={},
        models=models,
    )


def _header_of(source: Path, kind: ResultKind) -> tuple[Mapping[str, Any], str]:
    """Machine and date of results."""
    form = getattr(kind, "FORM", None)
    if form is not None:
        folder = source.parent if source.is_file() else source
        header, _ = load_records(folder / form.file, form)
        return header.machine, header.started
    results = load_results(source)
    return results.machine, results.started


def _of_totals(
    source: Path,
    machine: Mapping[str, Any],
    date: str,
    sure: Mapping[FigureName, Sequence[float]],
    busy: Mapping[FigureName, Sequence[float]],
    *,
    command: str,
    told: str = "",
) -> Evidence:
    return Evidence(
        source=source,
        command=command,
        host=_host(machine),
        cores=_cores(machine),
        date=date[:16],
        figures={key: Measure(tuple(values)) for key, values in sure.items()},
        provisional={
            key: Measure(tuple(values)) for key, values in busy.items() if key not in sure
        },
        told=told,
    )


def _first_sentence(kind: ResultKind, source: Path) -> str:
    """The answer of a report; empty: there is none."""
    with contextlib.suppress(InputError):
        return kind.document([source]).sentences[0]
    return ""


def _host(machine: Mapping[str, Any]) -> str:
    return str(machine.get("host") or "unknown")


def _cores(machine: Mapping[str, Any]) -> int:
    return int(machine.get("cores_usable") or machine.get("cores") or 0)

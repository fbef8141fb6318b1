"""Evidence from folders of results: figures with machine, date, and whether they claim."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gridbench.errors import InputError
from gridbench.model.model import PipelineModel
from gridbench.model.rules import MODEL, advice_folders
from gridbench.model.saved import load_models
from gridbench.report.source import Run, load_runs, section
from gridbench.result_kind import (
    RUNS,
    SCENARIO,
    FigureName,
    Measure,
    ResultKind,
    ResultRow,
    kind_of,
    module_of,
)
from gridbench.results.table import measures
from gridbench.run.recorder import runs_below
from gridbench.scenario.results import folders_of_results

ADVISE = "gridbench advise"
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
    machine: Mapping[str, Any] = field(default_factory=dict)
    """What the record says of it, see `gridbench.run.machine`."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Of programs and engines, by name."""
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
    below = advice_folders(source)
    # A damaged model in a folder that was named is an error.
    models = [source, *below] if (source / MODEL).is_file() and source not in below else below
    yield from map(_of_advice, models)
    if not kind.holds(source):
        if models:
            return
        raise InputError(
            "holds no results",
            file=source,
            remedy="give folders that gridbench run, micro, scenario, advise, sync, data or compare"
            " has written",
        )
    if kind is module_of(RUNS):
        yield from _of_runs(source, kind)
        return
    for folder in folders_of_results(source) if kind is module_of(SCENARIO) else [source]:
        document = kind.document([folder])
        header, answer = document.header, document.sentences[0]
        assert header is not None
        found = _of_rows(
            folder,
            kind,
            kind.rows(folder),
            machine=header.machine,
            date=header.started,
            versions=_programs(header.versions),
        )
        yield replace(found, told=answer)


def _of_runs(source: Path, kind: ResultKind) -> Iterator[Evidence]:
    """Of each machine that runs in a folder are of."""
    by_host: dict[tuple[str, int], list[Run]] = {}
    for run in load_runs(runs_below(source) or [source]):
        machine = section(run.record, "machine")
        by_host.setdefault((_host(machine), _cores(machine)), []).append(run)
    for runs in by_host.values():
        # Logs are of different systems, which they do not name.
        rows = (replace(row, engine=run.engine) for run in runs for row in kind.rows(run.path))
        date = min(str(run.record.get("started") or "") for run in runs)
        record = runs[0].record
        versions = _programs(section(record, "versions")) | {
            run.engine: str(version)
            for run in runs
            if (version := section(run.record, "engine").get("version"))
        }
        machine = section(record, "machine")
        yield _of_rows(source, kind, rows, machine=machine, date=date, versions=versions)


def _of_rows(
    source: Path,
    kind: ResultKind,
    rows: Iterable[ResultRow],
    *,
    machine: Mapping[str, Any],
    date: str,
    versions: Mapping[str, str],
) -> Evidence:
    found = list(rows)
    figures = measures(row for row in found if row.valid)
    disturbed = measures(row for row in found if row.disturbed)
    return Evidence(
        source=source,
        command=kind.title,
        host=_host(machine),
        cores=_cores(machine),
        date=date[:16],
        figures=figures,
        provisional={key: one for key, one in disturbed.items() if key not in figures},
        machine=machine,
        versions=versions,
    )


def _of_advice(source: Path) -> Evidence:
    models = tuple(load_models(source / MODEL))
    place = models[0].fit.place
    return Evidence(
        source=source,
        command=ADVISE,
        host=place.host,
        # Those of workers on servers are not known.
        cores=place.processors if place.transport == "one host" else 0,
        date=max(model.made for model in models),
        figures={},
        provisional={},
        models=models,
        versions={model.name: model.fit.place.version for model in models},
    )


def _programs(versions: Mapping[str, Any]) -> dict[str, str]:
    """Those on which figures depend."""
    names = {"gridrpc": "gridrpc", "python": "Python"}
    return {name: str(versions[key]) for key, name in names.items() if versions.get(key)}


def _host(machine: Mapping[str, Any]) -> str:
    return str(machine.get("host") or "unknown")


def _cores(machine: Mapping[str, Any]) -> int:
    return int(machine.get("cores_usable") or machine.get("cores") or 0)

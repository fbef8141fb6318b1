"""Sources of a report: run folders and task logs, behind one interface."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from gridbench.analysis.clocks import errors
from gridbench.analysis.columns import numbered, seconds
from gridbench.engines.names import current_name
from gridbench.errors import InputError
from gridbench.tasklog import read_task_log
from gridbench.workload.workload import Kind, kind_of

MANY = 3
"""From so many hosts on, only the first and the last are named."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run, ready for analysis."""

    name: str
    """Short name, different from those of the other runs in the report; rounds of an engine share
    it."""
    path: Path
    table: pa.Table
    """`timeline.SCHEMA`."""
    ntasks: int
    nnodes: int
    cold: bool
    """Whether starting the workers counts. Logs do not say; cold, as those runs were made."""
    record: dict[str, Any]
    """What is known of how it was run: run.json, or the log's header."""
    remarks: tuple[str, ...]
    """What reading it brought to light, for the reader's attention."""

    @property
    def repeated(self) -> tuple[Path, str] | None:
        """What it has in common with the other rounds of its engine in the same results; None if it
        is no round of several."""
        if not isinstance(self.record.get("round"), int):
            return None
        return self.path.resolve().parent, self.engine

    @property
    def engine(self) -> str:
        """What ran it; of a log, which does not say, the name of the run."""
        return current_name(str(section(self.record, "engine").get("name") or self.name))

    @property
    def kind(self) -> Kind:
        """What its tasks did."""
        return kind_of(self.record)


def load_runs(sources: Iterable[Path]) -> list[Run]:
    """Read all sources; a folder that holds several run folders stands for all of them.

    Raises InputError for a source that is neither a run folder nor a task log.
    """
    runs = [_load(path) for source in sources for path in _expanded(source)]
    if not runs:
        raise InputError("nothing to report on", remedy="give run folders or task logs")
    return _told_apart(_placed(runs))


def _expanded(source: Path) -> list[Path]:
    if source.is_dir() and not (source / "run.json").exists():
        inner = sorted(path.parent for path in source.glob("*/run.json"))
        if inner:
            return inner
    return [source]


def _load(path: Path) -> Run:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        run = _load_folder(path) if path.is_dir() else _load_log(path)
    remarks = tuple(str(entry.message) for entry in caught if entry.category is UserWarning)
    return replace(run, remarks=remarks)


def _load_log(path: Path) -> Run:
    header, table = read_task_log(path)
    record = {"source": "task log", "start": "not recorded, taken as cold"} | asdict(header)
    return Run(path.stem, path, table, header.ntasks, header.nnodes, True, record, ())


def _load_folder(path: Path) -> Run:
    # Imported late: a report from a log alone needs nothing of the machinery that runs tasks.
    from gridbench.run.load import load_run

    record, table = load_run(path)
    setup = section(record, "setup")
    return Run(
        name=current_name(str(section(record, "engine").get("name") or path.resolve().name)),
        path=path,
        table=table,
        ntasks=_count(setup.get("NTasks"), table.num_rows),
        nnodes=_count(setup.get("NNodes"), 1),
        cold=record.get("start") != "warm",
        record=record,
        remarks=(),
    )


def section(record: dict[str, Any], name: str) -> dict[str, Any]:
    """A part of run.json, which may come from another version or have been edited."""
    section = record.get(name)
    return section if isinstance(section, dict) else {}


def _count(value: Any, otherwise: int) -> int:
    return value if isinstance(value, int) and value > 0 else otherwise


def _placed(runs: list[Run]) -> list[Run]:
    """With where their workers were in the names, if that was not one machine for all."""
    if not any(grid_hosts(run.record) for run in runs):
        return runs
    return [replace(run, name=f"{run.name} {place(run.record)}".strip()) for run in runs]


def _told_apart(runs: list[Run]) -> list[Run]:
    """Runs of the same name get the name of their folder or file added, and if need be a number;
    rounds of an engine count as one."""
    keys = [run.repeated or number for number, run in enumerate(runs)]
    firsts: dict[object, Run] = {}
    for key, run in zip(keys, runs, strict=True):
        firsts.setdefault(key, run)
    counts = Counter(run.name for run in firsts.values())
    names = {
        key: run.name if counts[run.name] == 1 else f"{run.name} ({_place(run)})"
        for key, run in firsts.items()
    }
    if len(set(names.values())) < len(names):
        names = {key: f"{number}: {name}" for number, (key, name) in enumerate(names.items(), 1)}
    return [replace(run, name=names[key]) for key, run in zip(keys, runs, strict=True)]


def _place(run: Run) -> str:
    """The name of the folder or file that a run is known by; of rounds, that of their results."""
    return (run.repeated[0] if run.repeated else run.path.resolve()).name


@dataclass(frozen=True, slots=True)
class HostRow:
    """A host of a run."""

    name: str
    server: str
    workers: int | None
    """Those that it was to have; None: not recorded."""
    used: int
    """Workers that ran a task."""
    tasks: int
    transport: str
    clock_error: float
    """Its stamps are at most so far off the client's clock, seconds; NaN: not known."""


def grid_hosts(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The hosts of the servers that a run was on; none if it was on the client's machine."""
    grid = record.get("grid")
    hosts = grid.get("hosts") if isinstance(grid, dict) else None
    found = hosts if isinstance(hosts, list) else []
    return [one for one in found if isinstance(one, dict) and isinstance(one.get("name"), str)]


def place(record: dict[str, Any]) -> str:
    """Where a run's workers were, for its name; empty if the record does not say."""
    names = [str(one["name"]).rpartition("@")[2] for one in grid_hosts(record)]
    if not names:
        machine = record.get("machine")
        own = machine.get("host") if isinstance(machine, dict) else None
        return f"on {own}" if own else ""
    if len(names) < MANY:
        return f"on {' and '.join(names)}"
    return f"on {len(names)} hosts ({names[0]} … {names[-1]})"


def host_rows(record: dict[str, Any], table: pa.Table) -> list[HostRow]:
    """The hosts of a run in the order of its record, and then others that its tasks tell of."""
    known = {str(one["name"]): one for one in grid_hosts(record)}
    found, host = numbered(table, "host")
    _, worker = numbered(table, "worker")
    error, ran = errors(table), np.isfinite(seconds(table, "calc_in"))
    number = {name: at for at, name in enumerate(dict.fromkeys([*found, *known]))}
    tasks = np.bincount(host[ran], minlength=len(number))
    pairs = np.unique(np.stack([host[ran], worker[ran]]), axis=1)
    used = np.bincount(pairs[0], minlength=len(number))
    largest = np.full(len(number), -np.inf)
    np.maximum.at(largest, host[ran], np.nan_to_num(error[ran], nan=-np.inf))
    seen = sorted(name for name in number if name and name not in known and tasks[number[name]])
    rows = []
    for name in [*known, *seen]:
        at, reported = number[name], known.get(name, {})
        workers = reported.get("workers")
        rows.append(
            HostRow(
                name=name,
                server=str(reported.get("server") or ""),
                workers=workers if isinstance(workers, int) else None,
                used=int(used[at]),
                tasks=int(tasks[at]),
                transport=str(reported.get("transport") or ""),
                clock_error=float(largest[at]) if np.isfinite(largest[at]) else float("nan"),
            )
        )
    return rows

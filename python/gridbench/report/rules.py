"""The rules for runs of tasks, those of scenarios among them: see docs/rules.md.

Nothing is taken from the summary that the record holds: all is worked out again from the stamps.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from gridbench.analysis.clocks import errors
from gridbench.analysis.columns import Floats, seconds, succeeded, text
from gridbench.analysis.summary import Summary, summarise
from gridbench.errors import InputError
from gridbench.formats import as_given, counted, duration, named, percent, plain
from gridbench.rules import Rules, Seen
from gridbench.run.load import load_run
from gridbench.run.recorder import LOG, runs_below
from gridbench.statistics.claims import ENOUGH
from gridbench.workload.body import keeps_time
from gridbench.workload.workload import is_trace, kind_of

MOST_HARNESS = 0.1
"""The benchmark's own part of what a run cost beside its tasks, at most."""
_EXACT = 1e-6
"""Seconds and shares by which what is worked out again may differ."""
_NEEDED = ("engine", "machine", "versions", "setup", "started", "ended", "command")


@dataclass(frozen=True, slots=True)
class ReportCase:
    """A run, as the rules look at it."""

    folder: Path
    record: dict[str, Any]
    table: pa.Table
    summary: Summary

    @property
    def tasks(self) -> int:
        """That were requested."""
        return int(self.record["setup"]["NTasks"])

    @property
    def workload(self) -> tuple[str, str]:
        """The engine, and in words what it was to do: runs that have the same repeat each other."""
        setup = self.record["setup"]
        sizes = (("TaskDataSize", "in"), ("SharedDataSize", "shared"), ("WriteDataSize", "out"))
        data = [f"{as_given(setup[name], 'KB')} {way}" for name, way in sizes if setup.get(name)]
        kind = kind_of(self.record)
        # The time of a user's function is what it took.
        timed = not kind.body or keeps_time(kind.body)
        parts = [
            " ".join(filter(None, [counted(self.tasks, "task"), kind.told])),
            counted(int(setup["NNodes"]), "worker"),
            f"ideal time {duration(self.summary.ideal)}" if timed else "",
            f"{self.record.get('start', 'cold')} start",
            *data,
        ]
        return str(self.record["engine"]["name"]), ", ".join(filter(None, parts))


def read_case(folder: Path) -> ReportCase:
    """The run in a folder. InputError if there is none that can be read."""
    record, table = load_run(folder)
    if is_trace(record):
        raise InputError(
            "is the trace of a program, and the rules are those of benchmarks",
            file=folder,
            remedy="look at it by `gridbench report`",
        )
    setup = record["setup"]
    kind = kind_of(record)
    summary = summarise(table, int(setup["NTasks"]), int(setup["NNodes"]), kind.processors)
    return ReportCase(folder, record, table, summary)


def _repeated(cases: Sequence[ReportCase]) -> Seen:
    """Each engine ran each workload often enough for a claim."""
    counts = Counter(case.workload for case in cases)
    few = [
        f"{engine} {counted(n, 'time')} ({what})"
        for (engine, what), n in counts.items()
        if n < ENOUGH
    ]
    if few:
        return "broken", f"run less than {ENOUGH} times: {named(few)}"
    return "kept", f"{min(counts.values())} runs of each engine and workload at least"


def _complete(case: ReportCase) -> Seen:
    done, status = case.summary.ok, case.record.get("status")
    summary_text = f"{done:,} of {case.tasks:,} tasks came back well, status {status}"
    return ("kept" if done == case.tasks and status == "complete" else "broken"), summary_text


def _data(case: ReportCase) -> Seen:
    check = case.record.get("check") or {}
    if not check.get("wanted"):
        return "broken", "no checksum pass: it was left out by --no-check"
    tasks, wrong = check.get("tasks", 0), check.get("wrong", 0)
    summary_text = f"{tasks:,} tasks were checked, {wrong:,} were wrong"
    return ("kept" if tasks == case.tasks and wrong == 0 else "broken"), summary_text


def _same_again(case: ReportCase) -> Seen:
    recorded = case.record.get("summary") or {}
    for name in ("total", "ideal", "efficiency", "ok"):
        then, now = recorded.get(name), float(getattr(case.summary, name))
        if then is None or not math.isclose(then, now, rel_tol=_EXACT, abs_tol=_EXACT):
            return "broken", f"{name} is recorded as {then}, and the stamps say {plain(now, 6)}"
    return "kept", f"total {duration(case.summary.total)}, worked out again from the stamps"


def _log(case: ReportCase) -> Seen:
    try:
        lines = (case.folder / LOG).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        return "broken", f"{LOG} cannot be read: {error}"
    rows = sum(bool(line.strip()) and not line.startswith("#") for line in lines)
    summary_text = f"{LOG} has {rows:,} tasks, and the timeline {case.summary.ok:,}"
    return ("kept" if rows == case.summary.ok else "broken"), summary_text


def _order(case: ReportCase) -> Seen:
    done = case.table.filter(pa.array(succeeded(case.table)))
    margin = np.nan_to_num(errors(done)) + _EXACT
    steps = ("submit", "calc_in", "calc_out", "retrieve")
    wrong = np.zeros(done.num_rows, dtype=bool)
    for first, second in pairwise(steps):
        wrong |= seconds(done, second) - seconds(done, first) < -margin
    return _count(wrong, "have stamps in another order than submit, calc-in, calc-out, retrieve")


def _times(case: ReportCase) -> Seen:
    done = case.table.filter(pa.array(succeeded(case.table)))
    requested, took = seconds(done, "sleep"), seconds(done, "slept")
    if not np.isfinite(requested).any():
        return "kept", "tasks take the time that a user's function takes"
    return _count(took < requested - _EXACT, "took less than their time")


def _one_at_a_time(case: ReportCase) -> Seen:
    done = case.table.filter(pa.array(succeeded(case.table)))
    names = zip(text(done, "host").to_pylist(), text(done, "worker").to_pylist(), strict=True)
    known: dict[tuple[str, str], int] = {}
    worker = np.array([known.setdefault(name, len(known)) for name in names], dtype=np.int64)
    nodes = int(case.record["setup"]["NNodes"])
    if len(known) > nodes:
        return "broken", f"{len(known):,} workers ran tasks, and {nodes:,} were requested"
    begin, end = seconds(done, "calc_in"), seconds(done, "calc_out")
    order = np.lexsort((begin, worker))
    same = worker[order][1:] == worker[order][:-1]
    early = begin[order][1:] < end[order][:-1] - _EXACT
    return _count(same & early, "began before the one before them on their worker had ended")


def _quiet(case: ReportCase) -> Seen:
    load = case.record.get("load")
    if not isinstance(load, dict):
        return "not known", "the record does not say what other programs did"
    judgement, summary_text = (
        load.get("judgement"),
        str(load.get("told") or "nothing else was at work"),
    )
    if judgement == "undisturbed":
        return "kept", summary_text
    return ("broken" if judgement == "disturbed" else "not known"), summary_text


def _harness(case: ReportCase) -> Seen:
    each = case.record.get("harness_seconds")
    cost = case.summary.total - case.summary.ideal
    if not isinstance(each, float) or not math.isfinite(cost):
        return "not known", "the record does not say what the benchmark itself costs"
    if cost <= 0:
        return "kept", "the run cost nothing beside its tasks"
    share = each * case.tasks / cost
    summary_text = (
        f"{percent(share)} of what the run cost beside its tasks, {duration(each)} for each"
    )
    return ("kept" if share <= MOST_HARNESS else "broken"), summary_text


def _recorded(case: ReportCase) -> Seen:
    missing = [name for name in _NEEDED if not case.record.get(name)]
    engine = case.record.get("engine")
    if isinstance(engine, dict) and not engine.get("version"):
        missing.append("the engine's version")
    if missing:
        return "broken", f"the record lacks {', '.join(missing)}"
    hosts = len(set(text(case.table, "host").to_pylist()))
    return "kept", f"engine, machine, versions and set-up; tasks on {counted(hosts, 'host')}"


def _count(wrong: Floats | Any, what: str) -> Seen:
    count = int(np.sum(wrong))
    return ("broken" if count else "kept"), f"{counted(count, 'task')} {what}"


RULES = Rules(
    key="runs",
    places=runs_below,
    read=read_case,
    each={
        "complete": _complete,
        "data arrived as sent": _data,
        "figures follow from the stamps": _same_again,
        "both records agree": _log,
        "stamps are in order": _order,
        "tasks took their time": _times,
        "one task at a time on a worker": _one_at_a_time,
        "nothing else was at work": _quiet,
        "the benchmark is not what is measured": _harness,
        "who measured what, where": _recorded,
    },
    across={"repeated": _repeated},
)

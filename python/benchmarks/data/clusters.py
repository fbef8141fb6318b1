"""Clusters of data grids for a case of this area, and cases on them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import psutil
from rich.console import Console

from benchmarks.figures import AreaCase, Values
from gridbench.bench.points import Points
from gridbench.datagrid.cluster import DataGridCluster
from gridbench.datagrid.engine import find_engine
from gridbench.datagrid.figures import unsteady, verdict
from gridbench.datagrid.options import DataGridParameters
from gridbench.datagrid.plan import DataGridOrder, DataGridWork, WarmUpLimits
from gridbench.datagrid.record import DataGridCase
from gridbench.datagrid.session import DataGridSession, open_session
from gridbench.datagrid.windows import steadiness
from gridbench.datagrid.workload import DataGridWorkload
from gridbench.errors import InputError

REAL = ("hazelcast", "redis", "ignite", "geode", "coherence")
"""The data grids with members."""
MEMBERS = 3
_TOO_SHORT = " too short"


def why_not(engines: Sequence[str]) -> str:
    """Why one of them cannot be run here; empty if all can."""
    for name in engines:
        try:
            find_engine(name).require()
        except InputError as error:
            return str(error)
    return ""


@contextlib.contextmanager
def session_for(engine: str, warm: float = 20.0, **chosen: Any) -> Iterator[DataGridSession]:
    """A session for an engine; `warm`: seconds of warm-up at most."""
    work = DataGridWork(
        engines=(find_engine(engine),),
        workloads=(),
        parameters=DataGridParameters(**chosen),
        warm_up=WarmUpLimits.of(warm),
        available=psutil.virtual_memory().available,
    )
    with open_session(work, _no_check, Console(quiet=True)) as session:
        yield session


def wanted(engine: str, workload: DataGridWorkload, processes: int = 1) -> DataGridOrder:
    """A case of it."""
    has_members = find_engine(engine).manifest.members
    return DataGridOrder.of(
        workload,
        engine=engine,
        repeat=0,
        members=workload.parameters.mnodes if has_members else 0,
        processes=processes,
    )


def measured(
    session: DataGridSession, one: DataGridOrder, cluster: DataGridCluster
) -> DataGridCase:
    """What came of it. RuntimeError if it failed, or if the data are not right."""
    case = session.measure(one, cluster)
    kind, reasons = verdict(case)
    if kind == "failed":
        raise RuntimeError("; ".join(reasons))
    return case


def steady(case: DataGridCase) -> DataGridCase:
    """The case. RuntimeError if its throughput was not steady: nothing is claimed from it then."""
    if reasons := unsteady(case):
        raise RuntimeError("; ".join(reasons))
    return case


def judged(case: DataGridCase, what: str = "") -> Values:
    """What says of the figures of a case that it was too short to judge whether it was steady; of
    several cases of one function, each has a `what` of its own."""
    return {f"{what}{_TOO_SHORT}": 1.0} if steadiness(case).steady is None else {}


def named(row: str, points: Points, case: AreaCase, what: str = "") -> str:
    """The name of a row, marked where the values of the case are too short to judge."""
    short = case[f"{what}{_TOO_SHORT}"].of(points).values
    return f"{row} (too short to judge whether it was steady)" if short else row


def _no_check() -> None:
    """Who wants an end of the case ends its process, which unwinds."""

"""A task log as a run that a model can be fitted to: of systems that are not there any more.

A log names neither the system nor its machines, and its host names are not its workers. What it
tells is the work, and five stamps of each task, those of the hosts on clocks of their own.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from gridbench.analysis.clocks import clock_margin, corrected, offsets, resolution
from gridbench.analysis.columns import Floats, seconds
from gridbench.analysis.lanes import lanes
from gridbench.formats import counted, rounded
from gridbench.model.observation import Measured, Observation, Place, Situation, measure
from gridbench.tasklog import read_task_log

ENGINE = "log"
"""What stands for the engine of a log, which does not name it."""
PLACE = Place(engine=ENGINE, version="", host="", processors=1, transport="network")
"""All logs that are given are taken for those of one system, on machines of their own."""
_EVEN = 0.01
"""Tasks whose times differ by no more than this part were to take equally long."""
_DIGITS = 3
"""Of such a time, at least: what was really slept differs in the last ones, and from run to run."""
_ALL_DIGITS = 17
_OVERSLEPT = 0.005
"""Seconds that a task may sleep longer than it was to."""
_FEW = 2
"""Workers of which none can be said to be alone."""
_SURE = 0.2
"""A stamp of a host says when workers had started if its clock is known to this part of it."""


def observe_log(path: Path) -> Observation | str:
    """The run of a task log, as a cold one; or why it cannot serve, as tasks are missing.

    Where hosts have not stamped their tasks, or their clocks are too unsure, the total is known of
    it and the rest NaN. InputError for what is no task log, or has no header: without it neither
    cores nor sizes of data are known.
    """
    with warnings.catch_warnings():
        # What is not as it should be is refused below, or of no weight here.
        warnings.simplefilter("ignore", UserWarning)
        header, table = read_task_log(path, with_header=True)
    if (lost := header.ntasks - table.num_rows) > 0:
        return f"{lost:,} of its {counted(header.ntasks, 'task')} are missing"
    if lost < 0:
        return "it has more tasks than its header says"
    bytes_in, bytes_shared, bytes_out = (
        float(seconds(table, name).max()) for name in ("bytes_in", "bytes_shared", "bytes_out")
    )
    order = np.argsort(seconds(table, "submit"), kind="stable")
    situation = Situation(
        cores=header.nnodes,
        sleep=_asked(seconds(table, "sleep")[order]),
        bytes_in=bytes_in,
        bytes_shared=bytes_shared,
        bytes_out=bytes_out,
    )
    measured = _measured(table, situation)
    overhead = measured.total - situation.ideal
    if not overhead > 0:
        return "its total is shorter than its tasks take on so many cores"
    # Of a total that is rounded to whole steps, the standard deviation.
    unsure = resolution(table) / math.sqrt(12) / overhead
    return Observation(str(path), PLACE, situation, measured, uncertainty=unsure)


def _asked(slept: Floats) -> Floats:
    """What tasks were to take: a log has what they really slept."""
    middle = float(np.median(slept))
    if np.ptp(slept) > _EVEN * middle:
        return slept
    # As few digits as do not move it by more than a task may have overslept.
    for digits in range(_DIGITS, _ALL_DIGITS):
        if abs(rounded(middle, digits) - middle) <= max(_OVERSLEPT, float(np.ptp(slept))):
            return np.full(len(slept), rounded(middle, digits))
    return np.full(len(slept), middle)


def _measured(table: pa.Table, situation: Situation) -> Measured:
    if not _stamped(table):
        total = float(seconds(table, "retrieve").max())
        return Measured(total, math.nan, math.nan, math.nan)
    margin = clock_margin(table, same=False)
    table = corrected(table, offsets(table))
    found = measure(table, situation)
    first, last = found.first_calc_in, found.last_worker_calc_in
    early = margin < _SURE * first and not _forerunner(table)
    return replace(
        found,
        first_calc_in=first if early else math.nan,
        last_worker_calc_in=last if margin < _SURE * last else math.nan,
    )


def _forerunner(table: pa.Table) -> bool:
    """Whether one worker came up long before all others, as where a scheduler starts one at once
    and the others when it looks again. The model has no such start, and is that of the others."""
    lane, calc_in = lanes(table), seconds(table, "calc_in")
    begins = np.full(lane.max() + 1, np.inf)
    np.minimum.at(begins, lane, calc_in)
    begins.sort()
    return len(begins) > _FEW and bool(begins[1] - begins[0] > begins[-1] - begins[1])


def _stamped(table: pa.Table) -> bool:
    """Whether the hosts have told when tasks began and ended: between these they have slept."""
    computed = seconds(table, "calc_out") - seconds(table, "calc_in")
    slept = seconds(table, "slept")
    return bool(np.all(computed >= slept - np.maximum(resolution(table), 0.01 * slept)))

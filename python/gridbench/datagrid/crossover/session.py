"""Making the measurements that are missing, and keeping what comes of each."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from gridbench.datagrid.crossover.compute import ComputeSide
from gridbench.datagrid.crossover.grid import GridSide, Planned
from gridbench.datagrid.crossover.plan import Wanted
from gridbench.datagrid.crossover.record import Sharing
from gridbench.datagrid.crossover.request import Request
from gridbench.formats import duration
from gridbench.process.interrupt import Interrupt, Stopped
from gridbench.process.leftovers import Leftovers
from gridbench.progress import Steps
from gridbench.record_file import Header, RecordFile
from gridbench.run.machine import new_header


def header_of(request: Request) -> Header:
    """What all measurements of a folder have in common."""
    return new_header(
        {
            "object_size": request.object_size,
            "members": request.members,
            "warm_up": request.warm_up,
        },
        seed=request.seed,
    )


class Session:
    """One call of the program."""

    def __init__(
        self,
        request: Request,
        plans: Mapping[str, Planned],
        interrupt: Interrupt,
        console: Console,
    ) -> None:
        """`plans`: of all data grids."""
        self._request = request
        self._plans = plans
        self._interrupt = interrupt
        self._console = console

    def run(self, wanted: Sequence[Wanted], file: RecordFile[Sharing]) -> None:
        """Make these, until all are done or the user wants an end. InputError for a data grid that
        cannot be used."""
        steps = Steps(self._console, "measurement", len(wanted), transient=False)
        with ExitStack() as stack:
            leftovers = stack.enter_context(Leftovers())
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="gridbench-crossover-"))
            stack.enter_context(steps)
            compute = ComputeSide(
                Path(folder),
                leftovers=leftovers,
                limit=self._request.limit,
                stopped=lambda: self._interrupt.came,
                glance=steps.glance,
            )
            grid = stack.enter_context(
                GridSide(self._request, self._plans, self._interrupt.check, self._console)
            )
            for one in wanted:
                if self._interrupt.came:
                    return
                if one.side == "compute grid":
                    grid.close()
                steps.begin(one.told())
                began = time.monotonic()
                try:
                    record = (compute if one.side == "compute grid" else grid).measure(one)
                except Stopped:
                    return
                file.add(record)
                steps.end(time.monotonic() - began)
                if record.status != "done" or not self._console.is_terminal:
                    steps.say(f"{one.told()}: {told(record)}")


def told(record: Sharing) -> str:
    """What came of a measurement, in a line."""
    if record.status != "done":
        return f"{record.status}: {record.why}"
    if record.side == "compute grid":
        return duration(record.seconds)
    return f"{duration(record.seconds)}, of which reading {duration(record.reading)}"

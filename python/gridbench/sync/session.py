"""Running the rounds that are missing, and keeping what comes of each."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from gridbench.errors import InputError
from gridbench.formats import duration
from gridbench.hosts.place import Place
from gridbench.machine.watch import Watch
from gridbench.process.interrupt import Interrupt, Stopped
from gridbench.progress import Steps
from gridbench.record_file import Header, RecordFile
from gridbench.run.machine import new_header
from gridbench.sync.figures import figures_of
from gridbench.sync.plan import Wanted, planned_of
from gridbench.sync.record import ERRORS, OUTPUT, Round, Task
from gridbench.sync.request import Request
from gridbench.sync.round import Ran, Rounds
from gridbench.sync.tasks import PROGRAM, USAGE

_LEAST_FAILED = 3
"""Rounds in which no task began, after which there is no sense in going on."""


def header_of(request: Request) -> Header:
    """What all rounds of a folder have in common."""
    return new_header(
        {
            "task": request.task,
            "arguments": list(request.arguments),
            "directory": request.directory,
            "placement": request.placement,
            "timeout": request.timeout,
            "watched": list(request.watched),
            **request.where.record(),
        }
    )


class Session:
    """One call of the program."""

    def __init__(
        self, request: Request, where: Place, folder: Path, interrupt: Interrupt, console: Console
    ) -> None:
        self._request = request
        self._where = where
        self._folder = folder
        self._interrupt = interrupt
        self._console = console
        self._rounds = Rounds(interrupt.check)

    def run(self, wanted: Sequence[Wanted], file: RecordFile[Round]) -> None:
        """Run these rounds, until all are done or the user wants an end."""
        useless = 0
        with Steps(self._console, "round", len(wanted), transient=False) as steps:
            for one in wanted:
                if self._interrupt.came:
                    return
                steps.begin(one.told())
                began = time.monotonic()
                try:
                    record = self._one(one)
                except Stopped:
                    return
                file.add(record)
                steps.end(time.monotonic() - began)
                steps.say(f"{one.told()}: {told(record)}")
                useless = useless + 1 if not any(t.began for t in record.tasks) else 0
                if useless >= _LEAST_FAILED:
                    raise InputError(
                        f"no task has begun in {useless} rounds: {record.tasks[0].why}",
                        remedy="mend that, and run the same again with --retry-failed",
                    )

    def _one(self, wanted: Wanted) -> Round:
        self._where.replace_lost()
        planned = planned_of(self._request, self._where.members, wanted)
        watch = Watch(os.getpid())
        watch.begin()
        ran = self._rounds.run(planned, wanted.start, self._request.timeout)
        watch.end()
        watch.look_after()
        if said := _refused(self._request, ran.tasks):
            raise InputError(f"with {wanted.told()} no task did any work: {said}")
        paths = self._keep(wanted, ran)
        return Round(
            workers=wanted.workers,
            parameter=wanted.parameter,
            repeat=wanted.repeat,
            start=wanted.start,
            at=time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(ran.at)),
            status="done" if all(task.status == "ok" for task in ran.tasks) else "failed",
            prepared_in=ran.prepared_in,
            tasks=tuple(replace(task, output=paths.get(task.worker, "")) for task in ran.tasks),
            hosts=ran.hosts,
            load=watch.record(),
        )

    def _keep(self, wanted: Wanted, ran: Ran) -> dict[int, str]:
        """Write what tasks printed into files; their names below the folder of results."""
        paths: dict[int, str] = {}
        if not ran.printed:
            return paths
        name = re.sub(r"[^\w.-]+", "_", wanted.parameter)[:60]
        parts = [f"{wanted.workers}-workers", name, wanted.start, str(wanted.repeat)]
        folder = Path(OUTPUT, "-".join(part for part in parts if part))
        try:
            (self._folder / folder).mkdir(parents=True, exist_ok=True)
            for worker, (output, errors) in ran.printed.items():
                both = output + (ERRORS + errors if errors else b"")
                path = folder / f"worker-{worker}.txt"
                (self._folder / path).write_bytes(both)
                paths[worker] = str(path)
        except OSError as error:
            raise InputError(
                f"cannot keep the output of tasks: {error.strerror}",
                file=self._folder / folder,
                remedy="make room, and run the same again: it goes on with what is missing",
            ) from None
        return paths


def _refused(request: Request, tasks: Sequence[Task]) -> str:
    """What the program of gridbench's own tasks says of its options, if that is the same for all
    tasks and ended each of them before any work; else empty."""
    reasons = {task.why for task in tasks}
    if request.program != PROGRAM or len(reasons) > 1:
        return ""
    if any(task.exit != USAGE for task in tasks):
        return ""
    return reasons.pop().removeprefix(f"exit status {USAGE}: ")


def told(record: Round) -> str:
    """What came of a round, in a line."""
    bad = [task for task in record.tasks if task.status != "ok"]
    parts = []
    if bad:
        parts.append(f"{len(bad)} of {len(record.tasks)} tasks failed; {bad[0].why}")
    if any(task.began is not None for task in record.tasks):
        figures = figures_of(record)
        skew, span = duration(figures.skew), duration(figures.span)
        parts.append(f"started within {skew}, ended after {span}")
    return ", ".join(parts)

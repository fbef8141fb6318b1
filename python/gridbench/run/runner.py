"""One run: a workload on one engine, measured, checked and recorded."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from gridbench.engines.null_engine import NullEngine
from gridbench.errors import InputError
from gridbench.formats import as_given
from gridbench.jsonl_store import PlannedCase
from gridbench.machine.judgement import Watch
from gridbench.machine.load import ClockReading
from gridbench.process.children import Leftovers, describe
from gridbench.process.interrupt import Interrupt
from gridbench.progress import Tasks
from gridbench.run.client import DATA_SEED, GLANCE, Client, EngineFacts, LocalClient, Plan
from gridbench.run.exchange import EngineFailure
from gridbench.run.feasibility import most_outstanding
from gridbench.run.journal import OK, TimelineRow
from gridbench.run.machine import machine_facts, versions
from gridbench.run.participants import Participant
from gridbench.run.recorder import Recorder
from gridbench.workload.workload import Workload

_PASSES = 3
_TASKS = 500
_CLOSING = 1.0  # seconds, which nothing that does nothing needs
RECORD_FORMAT = 1
_PATIENCE = 30.0  # seconds for an engine to close
_LITTLE_PATIENCE = 3.0  # the same for one that did not start in time


def harness_seconds(plan: Plan) -> float | None:
    """Seconds for each task of a pass without workers, data or sleep, from the first submit to
    the last result; every engine's run has them in it. The shortest of some passes, as one takes a
    millisecond or two and any pause of the machine would be most of it. None: nothing came back in
    time."""
    passes = (_pass(plan) for _ in range(_PASSES))
    return min((one for one in passes if one is not None), default=None)


def _pass(plan: Plan) -> float | None:
    tasks = min(_TASKS, len(plan.sleeps))
    client = LocalClient(NullEngine())
    nothing = replace(
        plan, warm=True, sleeps=np.zeros(tasks), task_bytes=0, shared_bytes=0, output_bytes=0
    )
    try:
        client.begin(nothing, check=False)
        rows = []
        deadline = time.monotonic() + plan.start_timeout
        while not client.finished and time.monotonic() < deadline:
            rows += client.take(GLANCE)
    finally:
        client.close(_CLOSING)
    if not rows:
        return None
    return (max(row.retrieve for row in rows) - min(row.submit for row in rows)) / len(rows)


@dataclass(slots=True, kw_only=True)
class PlannedRun(PlannedCase):
    """An engine that is to run a workload."""

    engine: str
    round: int | None = None
    """Which of several runs of the same it is, from 1 on; None: there are no others."""

    def describe(self) -> str:
        """The engine."""
        return self.engine


@dataclass(slots=True, kw_only=True)
class EngineRun(PlannedRun):
    """A run of an engine, and how it ended."""

    folder: Path
    record: dict[str, Any]
    """What run.json says."""
    exit_status: int = 0
    messages: list[str] = field(default_factory=list)
    """What the user has to know, one message each."""
    disturbed: bool = False
    """Other programs used the machine meanwhile."""
    total: float = 0.0
    """Seconds from t = 0 until the last result was there."""

    @property
    def status(self) -> str:
        """Whether all went well."""
        return "failed" if self.exit_status else "done"

    @property
    def load(self) -> dict[str, Any] | None:
        """What other programs did meanwhile."""
        load: dict[str, Any] | None = self.record["load"]
        return load

    @property
    def only_disturbed(self) -> bool:
        """Whether the run has ended well, and counts for nothing but that it was disturbed."""
        return (
            self.disturbed
            and self.total > 0
            and not self.exit_status
            and len(self.record["invalid_because"]) == 1
        )

    def worsen(self, exit_status: int, message: str) -> None:
        """Note that something went wrong; the run is then not valid."""
        self.exit_status = max(self.exit_status, exit_status)
        self._invalidate(message)

    def see(self, watch: Watch) -> None:
        """Note what others did meanwhile: a run that they disturbed is not valid."""
        self.record["load"] = watch.record()
        self.disturbed = watch.judgement == "disturbed"
        if self.disturbed:
            self._invalidate(watch.told)
        elif watch.told:
            self.messages.append(watch.told)

    def _invalidate(self, message: str) -> None:
        self.messages.append(message)
        self.record["valid"] = False
        self.record["invalid_because"].append(message)


def run_engine(
    participant: Participant,
    facts: EngineFacts,
    workload: Workload,
    *,
    warm: bool,
    check: bool,
    start_timeout: float,
    folder: Path,
    interrupt: Interrupt,
    console: Console,
    round: int | None = None,
    family: int | None = None,
    began: ClockReading | None = None,
) -> EngineRun:
    """Run `workload` on an engine and record it in `folder`, an empty folder that exists.

    `warm`: t = 0 is when all workers have answered; else starting them counts. `check`: add the
    untimed checksum pass. `start_timeout`: seconds that the engine may take to start, beside the
    time of the first task itself. `family`: the process whose descendants are ours, instead of this
    one, and `began` a reading of it from before the run.

    Errors after the record was begun are in the result; no exception is raised.
    """
    setup = workload.setup
    plan = Plan(
        workers=setup.nnodes,
        warm=warm,
        sleeps=workload.sleeps,
        body=workload.body,
        task_bytes=setup.task_bytes,
        shared_bytes=setup.shared_bytes,
        output_bytes=setup.write_bytes,
        most_outstanding=most_outstanding(setup),
        start_timeout=start_timeout,
    )
    record = _new_record(participant, facts, workload, plan, check=check, round=round)
    ran = EngineRun(engine=participant.name, round=round, folder=folder, record=record)
    recorder = Recorder(folder, setup, record)
    status = "failed"
    record["harness_seconds"] = harness_seconds(plan)
    family = family or os.getpid()
    watch = Watch(family, began)
    with Leftovers() as leftovers:
        try:
            client, process = participant.open(plan.workers, warm=plan.warm)
        except InputError as error:  # its environment has changed since it was looked at
            ran.worsen(2, str(error))
        else:
            passes = _Passes(
                participant.name,
                client,
                plan,
                check=check,
                recorder=recorder,
                interrupt=interrupt,
                console=console,
                watch=watch,
            )
            status = passes.run(ran)
            ran.total = recorder.last_retrieve
            record["left_behind"] = leftovers.end(process)
    if family == os.getpid() and not interrupt.came:
        watch.look_after()
    ran.see(watch)
    if record["left_behind"]:
        ran.messages.append(describe(record["left_behind"]))
    if interrupt.came:
        status = "interrupted"
        ran.worsen(interrupt.exit_status, "the run was interrupted")
    record["ended"] = _now()
    try:
        recorder.finish(status)
    except InputError as error:
        if str(error) not in ran.messages:
            ran.worsen(2, str(error))
    return ran


class _Passes:
    """The passes of one run: timed tasks, then checked ones."""

    def __init__(
        self,
        name: str,
        client: Client,
        plan: Plan,
        *,
        check: bool,
        recorder: Recorder,
        interrupt: Interrupt,
        console: Console,
        watch: Watch,
    ) -> None:
        self._name = name
        self._client = client
        self._plan = plan
        self._check_too = check
        self._recorder = recorder
        self._interrupt = interrupt
        self._console = console
        self._watch = watch
        self._started = False  # a task has come back
        self._hangs = False  # it has not started in time
        self._failed = 0  # tasks of this pass
        self._first = ""  # the first of them, and why

    def run(self, ran: EngineRun) -> str:
        """All of it; the status at the end."""
        try:
            status = self._measure(ran)
            if status == "complete" and self._check_too:
                status = self._check(ran)
            return status
        except EngineFailure as error:
            if isinstance(error.__cause__, InputError):
                ran.worsen(2, str(error.__cause__))
            else:
                ran.worsen(1, f"the engine failed: {error}")
        except InputError as error:  # the results cannot be written
            ran.worsen(2, str(error))
        finally:
            problem = self._client.close(_LITTLE_PATIENCE if self._hangs else _PATIENCE)
            if problem:
                ran.worsen(1, problem)
        return "failed"

    def _measure(self, ran: EngineRun) -> str:
        """The timed pass; the status after it."""
        record = self._recorder.record
        self._watch.begin()
        try:
            with closing(self._passing(self._name, check=False)) as passing:
                for rows in passing:
                    self._recorder.add(rows)
        finally:
            self._watch.end()
            record["ready_seconds"] = self._client.status.ready_seconds
            record["share_seconds"] = self._client.status.share_seconds
        # Again, as some of its configuration may be settled only by running.
        record["engine"] = self._client.describe()
        if self._failed:
            ran.worsen(
                1,
                f"{self._failed:,} of {len(self._plan.sleeps):,} tasks failed;"
                f" the first of them, {self._first}",
            )
        return self._status()

    def _check(self, ran: EngineRun) -> str:
        """The checksum pass, on the same workers; the status after it."""
        try:
            with closing(self._passing(f"{self._name}, checking data", check=True)) as passing:
                for _ in passing:
                    pass
        finally:
            done = self._client.collected
            self._recorder.record["check"] = {"wanted": True, "tasks": done, "wrong": self._failed}
        if self._failed:
            ran.worsen(
                1,
                f"the checksum pass found {self._failed:,} of {done:,} tasks wrong;"
                f" the first, {self._first}",
            )
        return self._status()

    def _status(self) -> str:
        return "complete" if self._client.finished else "interrupted"

    def _passing(self, title: str, *, check: bool) -> Generator[list[TimelineRow], None, None]:
        """Run a pass, yielding what comes back, until it is finished or interrupted."""
        client, plan = self._client, self._plan
        self._failed, self._first = 0, ""
        begun = time.monotonic()
        client.begin(plan, check=check)
        with Tasks(self._console) as progress:
            progress.begin(title, len(plan.sleeps))
            while not client.finished and not self._interrupt.came:
                if rows := client.take(GLANCE):
                    self._started = True
                    self._note_failures(rows)
                    yield rows
                elif not self._started:
                    self._refuse_to_wait(time.monotonic() - begun)
                self._show(progress)
            self._show(progress, last=True)

    def _show(self, progress: Tasks, *, last: bool = False) -> None:
        status, done = self._client.status, self._client.collected
        # What is out and beyond the number of workers waits in the engine.
        note = f"{min(max(0, status.submitted - done), self._plan.workers)} running"
        if self._failed:
            note += f", {self._failed} failed"
        progress.update(done, doing=status.doing, note=note, last=last)

    def _note_failures(self, rows: list[TimelineRow]) -> None:
        bad = [row for row in rows if row.status != OK]
        self._failed += len(bad)
        if bad and not self._first:
            self._first = f"task {bad[0].tid}: {bad[0].status}"

    def _refuse_to_wait(self, waited: float) -> None:
        """Raise EngineFailure if an engine that has shown no life has had its time."""
        limit, doing = self._plan.start_timeout, self._client.status.doing
        if not doing:
            # Tasks come back in any order.
            limit += float(self._plan.sleeps.max())
            doing = "no task has come back, though all were given time to"
        else:
            doing = f"it is still {doing}"
        if waited > limit:
            self._hangs = True
            raise EngineFailure(f"it has not started in {as_given(limit)}: {doing}")


def _new_record(
    participant: Participant,
    facts: EngineFacts,
    workload: Workload,
    plan: Plan,
    *,
    check: bool,
    round: int | None,
) -> dict[str, Any]:
    setup = workload.setup
    return {
        "format": RECORD_FORMAT,
        "status": "running",
        "valid": True,
        "invalid_because": [],
        "started": _now(),
        "ended": None,
        "command": sys.argv,
        "engine": facts.description,
        "environment": participant.environment(),
        "grid": None if participant.servers is None else participant.servers.record(),
        "start": "warm" if plan.warm else "cold",
        "round": round,
        "task": workload.body,
        "time_scale": workload.time_scale,
        "setup": setup.to_dict(),
        "setup_file": setup.path and str(setup.path.resolve()),
        "times_file": setup.times_path and str(setup.times_path.resolve()),
        "data": {
            "kind": "random bytes, one buffer passed with every task",
            "seed": DATA_SEED,
            "most_outstanding_tasks": plan.most_outstanding,
        },
        "check": {"wanted": check, "tasks": 0, "wrong": 0},
        "harness_seconds": None,
        "ready_seconds": None,
        "share_seconds": None,
        "left_behind": [],
        "machine": machine_facts(),
        "versions": versions(),
        "load": None,
        "summary": None,
    }


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="milliseconds")

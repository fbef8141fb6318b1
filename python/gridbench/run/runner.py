"""One run: a workload on one engine, measured, checked and recorded."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Generator
from contextlib import closing
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from gridbench.engines.base import Engine
from gridbench.engines.python_tasks import one_line
from gridbench.errors import InputError
from gridbench.run.checksums import digest_inspector, inspect_length
from gridbench.run.exchange import EngineFailure, Exchange, Returned
from gridbench.run.feasibility import most_outstanding
from gridbench.run.interrupt import Interrupt
from gridbench.run.machine import machine_facts, versions
from gridbench.run.progress import Progress
from gridbench.run.recorder import Recorder
from gridbench.run.rows import Row
from gridbench.workload.workload import DATA_SEED, Workload

RECORD_FORMAT = 1
_GLANCE = 0.1  # seconds between looks at signals and the display
_PATIENCE = 30.0  # seconds for an engine to close


@dataclass(frozen=True, slots=True)
class Options:
    """How to run a workload, besides the workload itself."""

    warm: bool = False
    """All workers have answered before t = 0; else starting them counts."""
    check: bool = True
    """Add the untimed checksum pass."""


@dataclass(slots=True)
class Verdict:
    """How a run ended."""

    engine: str
    folder: Path
    record: dict[str, Any]
    """What run.json says."""
    exit_status: int = 0
    messages: list[str] = field(default_factory=list)
    """What the user has to know, one message each."""

    def worsen(self, exit_status: int, message: str) -> None:
        """Note that something went wrong; the run is then not valid."""
        self.exit_status = max(self.exit_status, exit_status)
        self.messages.append(message)
        self.record["valid"] = False
        self.record["invalid_because"].append(message)


def run_engine(
    engine: Engine,
    workload: Workload,
    *,
    options: Options,
    folder: Path,
    interrupt: Interrupt,
    console: Console,
) -> Verdict:
    """Run `workload` on `engine` and record it in `folder`, an empty folder that exists.

    What goes wrong after the record was begun is told by the verdict, not by an exception.
    """
    record = _new_record(engine, workload, options)
    verdict = Verdict(engine.name, folder, record)
    recorder = Recorder(folder, workload.setup, record)
    run = _Run(
        engine,
        workload,
        options=options,
        recorder=recorder,
        interrupt=interrupt,
        console=console,
    )
    status = "failed"
    try:
        status = run.measure(verdict)
        if status == "complete" and options.check:
            status = run.check(verdict)
    except EngineFailure as error:
        cause = error.__cause__
        what = cause if isinstance(cause, InputError) else f"the engine failed: {error}"
        verdict.worsen(2 if isinstance(cause, InputError) else 1, str(what))
    except InputError as error:  # the results cannot be written
        verdict.worsen(2, str(error))
    finally:
        run.close(verdict)
    if interrupt.came:
        status = "interrupted"
        verdict.worsen(interrupt.exit_status, "the run was interrupted")
    record["ended"] = _now()
    try:
        recorder.finish(status)
    except InputError as error:
        if str(error) not in verdict.messages:
            verdict.worsen(2, str(error))
    return verdict


class _Run:
    """The steps of one run, which share most of what they need."""

    def __init__(
        self,
        engine: Engine,
        workload: Workload,
        *,
        options: Options,
        recorder: Recorder,
        interrupt: Interrupt,
        console: Console,
    ) -> None:
        self._engine = engine
        self._workload = workload
        self._options = options
        self._recorder = recorder
        self._interrupt = interrupt
        self._console = console
        self._start = float("nan")  # t = 0 on CLOCK_MONOTONIC
        self._shared: Any = None  # what the engine gave for the shared data
        self._most_outstanding: int = recorder.record["data"]["most_outstanding_tasks"]
        self._failed = 0
        self._exchanges: list[Exchange] = []

    def measure(self, verdict: Verdict) -> str:
        """The timed pass; the status after it."""
        exchange = Exchange(
            self._engine,
            begin=self._begin,
            tasks=self._workload.tasks(),
            count=self._workload.setup.ntasks,
            most_outstanding=self._most_outstanding,
            inspect=inspect_length,
        )
        first = ""
        with closing(self._passing(exchange, self._engine.name)) as passing:
            for returned in passing:
                self._recorder.add([self._row(item) for item in returned])
                bad = [item for item in returned if item.outcome.error]
                self._failed += len(bad)
                if bad and not first:
                    first = f"task {bad[0].outcome.tid}: {bad[0].outcome.error}"
        # Again, as some of its configuration may be settled only by running.
        self._recorder.record["engine"] = asdict(self._engine.describe())
        if self._failed:
            verdict.worsen(
                1,
                f"{self._failed:,} of {self._workload.setup.ntasks:,} tasks failed;"
                f" the first of them, {first}",
            )
        return "complete" if exchange.finished else "interrupted"

    def check(self, verdict: Verdict) -> str:
        """The checksum pass, on the same workers; the status after it."""
        ntasks = self._workload.setup.ntasks
        exchange = Exchange(
            self._engine,
            begin=lambda: self._shared,
            tasks=self._workload.tasks(check=True),
            count=ntasks,
            most_outstanding=self._most_outstanding,
            inspect=digest_inspector(self._workload),
        )
        wrong, first = 0, ""
        self._failed = 0
        try:
            title = f"{self._engine.name}, checking data"
            with closing(self._passing(exchange, title)) as passing:
                for returned in passing:
                    bad = [item for item in returned if item.outcome.error]
                    wrong = self._failed = wrong + len(bad)
                    if bad and not first:
                        first = f"task {bad[0].outcome.tid}: {bad[0].outcome.error}"
        finally:
            done = exchange.collected
            self._recorder.record["check"] = {"wanted": True, "tasks": done, "wrong": wrong}
        if wrong:
            verdict.worsen(
                1, f"the checksum pass found {wrong:,} of {done:,} tasks wrong; the first, {first}"
            )
        return "complete" if exchange.finished else "interrupted"

    def close(self, verdict: Verdict) -> None:
        """End the engine, in a thread of its own so that a second Ctrl-C still gets through."""
        for exchange in self._exchanges:
            exchange.stop()
        failures: list[Exception] = []

        def end() -> None:
            try:
                self._engine.close()
            except Exception as error:  # an engine is foreign code: it can fail in any way
                failures.append(error)

        closer = threading.Thread(target=end, name="close", daemon=True)
        closer.start()
        deadline = time.monotonic() + _PATIENCE
        while closer.is_alive() and time.monotonic() < deadline:
            closer.join(_GLANCE)
        if closer.is_alive():
            verdict.worsen(
                1,
                f"the engine did not end its workers within {_PATIENCE:.0f} s; look for leftovers",
            )
        elif failures:
            verdict.worsen(1, f"the engine failed to close: {one_line(failures[0])}")
        for exchange in self._exchanges:
            exchange.join(_GLANCE)

    def _begin(self) -> Any:
        """Start the workers and give the shared data; t = 0 lies before or after the start."""
        asked = time.monotonic()
        self._engine.start(self._workload.setup.nnodes)
        if self._options.warm:
            self._engine.wait_ready()
            self._recorder.record["ready_seconds"] = time.monotonic() - asked
        self._start = time.monotonic() if self._options.warm else asked
        before = time.monotonic()
        self._shared = self._engine.share(self._workload.shared)
        self._recorder.record["share_seconds"] = time.monotonic() - before
        return self._shared

    def _passing(self, exchange: Exchange, title: str) -> Generator[list[Returned], None, None]:
        """Run an exchange, yielding what comes back, until it is finished or interrupted."""
        self._exchanges.append(exchange)
        setup = self._workload.setup
        exchange.start()
        with Progress(self._console, title, setup.ntasks, setup.nnodes) as progress:
            while not exchange.finished and not self._interrupt.came:
                if returned := exchange.take(_GLANCE):
                    yield returned
                progress.update(exchange.collected, exchange.submitted, self._failed)
            progress.update(exchange.collected, exchange.submitted, self._failed, last=True)

    def _row(self, item: Returned) -> Row:
        outcome, start = item.outcome, self._start
        return Row(
            tid=item.task.tid,
            sleep=item.task.sleep,
            slept=float(outcome.slept),
            submit=item.submit - start,
            queued=float(outcome.queued) - start,
            calc_in=float(outcome.calc_in) - start,
            calc_out=float(outcome.calc_out) - start,
            retrieve=item.retrieve - start,
            worker=str(outcome.worker),
            host=str(outcome.host),
            bytes_in=item.task.data.nbytes,
            bytes_shared=self._workload.shared.nbytes,
            bytes_out=item.output_bytes,
            status=" ".join(outcome.error.split()) or "ok",
        )


def _new_record(engine: Engine, workload: Workload, options: Options) -> dict[str, Any]:
    setup = workload.setup
    return {
        "format": RECORD_FORMAT,
        "status": "running",
        "valid": True,
        "invalid_because": [],
        "started": _now(),
        "ended": None,
        "command": sys.argv,
        "engine": asdict(engine.describe()),
        "start": "warm" if options.warm else "cold",
        "time_scale": workload.time_scale,
        "setup": setup.to_dict(),
        "setup_file": str(setup.path.resolve()),
        "times_file": str(setup.times_path.resolve()),
        "data": {
            "kind": "random bytes, one buffer passed with every task",
            "seed": DATA_SEED,
            "most_outstanding_tasks": most_outstanding(setup),
        },
        "check": {"wanted": options.check, "tasks": 0, "wrong": 0},
        "ready_seconds": None,
        "share_seconds": None,
        "machine": machine_facts(),
        "versions": versions(),
        "summary": None,
    }


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="milliseconds")

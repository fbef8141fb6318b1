"""Short runs of an engine, on this machine or on servers, in folders that are deleted."""

from __future__ import annotations

import platform
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console

from gridbench.analysis.columns import Floats
from gridbench.engines.servers import Servers, ask, spread
from gridbench.errors import InputError
from gridbench.formats import counted
from gridbench.machine.judgement import judged
from gridbench.machine.load import ClockReading
from gridbench.model.observation import Observation
from gridbench.process.child import ProcessTemplate
from gridbench.process.children import Leftovers
from gridbench.process.interrupt import Interrupt
from gridbench.progress import Steps
from gridbench.report.source import place
from gridbench.run.client import EngineFacts
from gridbench.run.load import read_record
from gridbench.scenario.figures import analysed
from gridbench.scenario.grids import TIMES, ScenarioCase, TaskTimes, setup_of, write_workload
from gridbench.scenario.run_case import CaseAnswer, CaseOrder, CaseOutcome, run_case
from gridbench.terminal import say
from gridbench.workload.body import SLEEP

_PATIENCE = 180.0
"""Seconds that servers may take to bring their workers."""


_LEAST = 2
"""Workers that tell what more of them cost."""


def servers_for(file: Path | None, names: Sequence[str], cores: int, console: Console) -> Servers:
    """The servers that options name, when their workers have come once. InputError if they cannot
    be used, have fewer workers than the requested cores, or cannot be limited to fewer."""
    say(console, "asking the servers for their workers")
    given = ask(file, tuple(names), patience=_PATIENCE)
    for host in given.hosts:
        say(console, host.describe())
    if cores > given.workers:
        raise InputError(
            f"--cores asks for {cores:,}, and the servers have {counted(given.workers, 'worker')}",
            remedy="lower --cores, or raise `workers` of the servers",
        )
    if given.workers < _LEAST:
        raise InputError(
            "the servers have one worker, and advice compares runs on one with runs on several",
            remedy="raise `workers` of the servers",
        )
    try:
        spread(given, 1)  # runs on fewer cores tell what more of them cost
    except InputError as error:
        raise InputError(
            error.what,
            remedy="name the servers in a file, for --grid FILE",
        ) from None
    return given


def host_of(servers: Servers | None) -> str:
    """The host of a model's place: the client's, and where the workers are if that is elsewhere."""
    own = platform.node()
    return own if servers is None else f"{own}, workers {place({'grid': servers.record()})}"


def among(one: Observation, servers: Servers) -> Observation:
    """A run on as many of the servers' hosts as it had workers for, as one of all runs on these
    servers, which have one model. It deals workers to hosts in turn, as such runs do."""
    found = replace(one.place, host=host_of(servers), nodes=len(servers.hosts))
    return replace(one, place=found)


SCENARIO = 0
"""Of the cases: they are of none of the six."""
_RECENT = 1.0
"""Seconds since when what others did, while there were runs, also counts for the next."""


@dataclass(frozen=True, slots=True)
class CaseRun:
    """A case that was run."""

    outcome: CaseOutcome
    folder: Path
    """Of the run, as `gridbench run` leaves it."""

    @property
    def disturbed(self) -> bool:
        """Other programs used the machine meanwhile, and that is all that is wrong with it."""
        load = self.outcome.answer.load
        ended = self.outcome.ended_for or self.outcome.answer.status == "failed"
        return not ended and load is not None and judged(load) == "disturbed"

    @property
    def problem(self) -> str:
        """Why it does not count; empty if it does, or is disturbed."""
        answer = self.outcome.answer
        if self.outcome.ended_for:
            return self.outcome.ended_for
        sound = answer.status == "done" or self.disturbed
        return "" if sound else answer.reason or answer.status


class CaseRunner:
    """While active, it runs what it is asked to, and shows how far that is. The first signal ends
    the run, its processes, and with them the program."""

    def __init__(
        self,
        engine: str,
        template: ProcessTemplate,
        *,
        warm: bool,
        progress: Steps,
        body: str = SLEEP,
        servers: Servers | None = None,
        seen: ClockReading | None = None,
    ) -> None:
        """`template`: of the processes that run cases. `body`: what tasks do, see
        `gridbench.workload.body`. `servers`: those that have the workers; None: this machine.
        `seen`: when a look at what others do began that counts for the first run."""
        self._engine = engine
        self._template = template
        self._servers = servers
        self._warm = warm
        self._body = body
        self._progress = progress
        self._interrupt = Interrupt()
        self._leftovers = Leftovers()
        self._number = 0
        self._looks = [] if seen is None else [seen]
        """When looks at what others do began that count for the next run; without any, its own
        comes before it."""
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            folder = tempfile.TemporaryDirectory(prefix="gridbench-advise-")
            self._folder = Path(stack.enter_context(folder))
            stack.enter_context(self._interrupt)
            stack.enter_context(self._leftovers)
            stack.enter_context(self._progress)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)
        if self._interrupt.came:
            print("gridbench: interrupted", file=sys.stderr)

    def run(
        self, case: ScenarioCase, *, facts: EngineFacts, limit: float, times: Floats | None = None
    ) -> CaseRun:
        """Run the case, for at most `limit` seconds; `facts`: what the engine says of itself;
        `times`: of its tasks, in seconds, if they differ."""
        self._number += 1
        self._progress.begin(case.describe())
        place = self._folder / f"{self._number}"
        setup = write_workload(case, TaskTimes(), place)
        if times is not None:
            (place / TIMES).write_text("".join(f"{one:.6f}\n" for one in times), encoding="ascii")
        (place / "run").mkdir()
        order = CaseOrder(
            engine=self._engine,
            setup=setup,
            folder=place / "run",
            time_scale=1.0,
            body=self._body,
            warm=self._warm,
            check=False,
            start_timeout=limit,
            facts=facts,
            began=self._looks[0] if self._looks else None,
            # This process has what that needs at hand, and a new one would have to import it.
            analysed=False,
            servers=self._servers,
        )
        outcome = run_case(
            order,
            leftovers=self._leftovers,
            limit=limit,
            stopped=lambda: self._interrupt.came,
            glance=self._progress.glance,
            start=self._template.child,
        )
        self._progress.end(outcome.took)
        if self._interrupt.came:
            sys.exit(self._interrupt.exit_status)
        ran = _analysed(CaseRun(outcome, order.folder), case)
        self._looks = _looks(self._looks, ran)
        return ran


def _analysed(ran: CaseRun, case: ScenarioCase) -> CaseRun:
    answer = ran.outcome.answer
    if answer.status not in ("done", "invalid"):
        return ran
    try:
        found = analysed(answer, ran.folder, read_record(ran.folder), setup_of(case))
    except InputError as error:
        found = CaseAnswer(status="failed", reason=" ".join(str(error).split()))
    return replace(ran, outcome=replace(ran.outcome, answer=found))


def _looks(before: Sequence[ClockReading], ran: CaseRun) -> list[ClockReading]:
    """When looks at what others do began that count for the next run too: that of this run, and
    those `before` it that are recent. Short runs tell too little of others by themselves, and so
    need not wait for more. Nothing where the processes of this one, which are gone, may be taken
    for others', or others were at work."""
    outcome = ran.outcome
    load = outcome.answer.load
    if load is None or load.apart or ran.disturbed:
        return []
    if outcome.answer.status in ("failed", "interrupted"):
        return []
    ended = outcome.began.at + outcome.took
    return [one for one in (*before, outcome.began) if ended - one.at <= _RECENT]

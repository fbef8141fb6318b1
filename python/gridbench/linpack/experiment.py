"""Remote Linpack with one client as an `Experiment`, and how a client is run."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gridbench.experiment import Bench, Experiment
from gridbench.formats import amount, as_given, counted, size
from gridbench.linpack.options import LinpackParameters
from gridbench.linpack.record import (
    BIG_ENDIAN,
    FORM,
    LOCAL,
    Limit,
    LinpackCase,
    PlannedLinpackCase,
    Solve,
    operations,
    wrong_solution,
)
from gridbench.linpack.result_kind import SINGLE
from gridbench.linpack.servers import (
    LinpackPrograms,
    LinpackServers,
    build_programs,
    memory_needed,
)
from gridbench.machine.judgement import Watch
from gridbench.process.child import Child, Ended
from gridbench.records import from_record
from gridbench.run.machine import available_memory, usable_processors
from gridbench.schema import record_of

_LEAST = 0.2
"""Seconds that a client solves at least."""
_LEAST_SLOWED = 0.5
"""The same of a slowed client, which stands still for some time now and then."""
_EXIT = 5.0
"""Seconds that a client may take to end."""


class LinpackExperiment(Experiment[PlannedLinpackCase, LinpackCase]):
    """All sizes, clients, speeds and paths."""

    kind = SINGLE
    form = FORM
    name = "linpack"

    def __init__(self, parameters: LinpackParameters) -> None:
        """InputError for what cannot be measured here."""
        parameters.check()
        self._links = parameters.links()
        self.parameters = parameters
        self.seed = parameters.seed
        self._programs: LinpackPrograms | None = None
        self._servers: LinpackServers | None = None

    def record(self) -> dict[str, Any]:
        """The options that all cases share, and the solver."""
        return {**record_of(self.parameters), "solver": self._built.library}

    @property
    def _built(self) -> LinpackPrograms:
        if self._programs is None:
            self._programs = build_programs()
        return self._programs

    def prepare(self, bench: Bench) -> None:
        """Compile the programs."""
        del bench
        _ = self._built

    def batches(
        self, bench: Bench, records: Sequence[LinpackCase]
    ) -> Iterator[Sequence[PlannedLinpackCase]]:
        """All cases in one batch: each round in an order of its own, drawn from the seed."""
        del bench, records
        own, found = self.parameters, list[PlannedLinpackCase]()
        for repeat in range(own.rounds):
            cases = [
                PlannedLinpackCase(client=client, path=path, n=n, speed=speed, repeat=repeat)
                for client in own.languages
                for path in (LOCAL, *own.paths)
                if client == "Python" or not path.endswith(BIG_ENDIAN)
                for n in own.sizes
                for speed in (1.0, *own.speeds)
            ]
            random.Random(f"{self.seed} {repeat}").shuffle(cases)
            found += cases
        yield found

    def group(self, case: PlannedLinpackCase) -> str:
        """The path: without a server behind it, none of its cases can be run."""
        return case.path

    def run(self, case: PlannedLinpackCase, bench: Bench) -> LinpackCase:
        """Have the client solve its systems. A server that is gone is started again."""
        needed, available = memory_needed(case.n), available_memory()
        if needed > available:
            return case.recorded_as(
                LinpackCase,
                status="skipped",
                why=f"client and server need {size(needed)} of memory together, and"
                f" {size(available)} are available",
            )
        servers = self._open(bench)
        slowed = case.speed < 1
        wanted = SolveOrder(
            calls=1 if slowed else self.parameters.calls,
            seconds=_LEAST_SLOWED if slowed else _LEAST,
            limit=self.parameters.limit,
        )

        def glance() -> None:
            bench.interrupt.check()
            if bench.steps is not None:
                bench.steps.glance()

        variables = servers.variables(case.path)
        watch = Watch(os.getpid())
        watch.begin()
        try:
            solves, limit = run_client(case, servers, variables, wanted, glance)
        except ClientFailed as error:
            watch.end()
            return case.recorded_as(
                LinpackCase, status="failed", why=str(error), load=watch.record()
            )
        watch.end()
        why = wrong_solution(solves)
        return case.recorded_as(
            LinpackCase,
            status="failed" if why else "done",
            why=why,
            solves=tuple(solves),
            limit=limit,
            load=watch.record(),
        )

    def outcome(self, record: LinpackCase) -> str:
        """The performance, or why there is none."""
        if record.status != "done":
            return f"{record.status}: {record.why}"
        return f"{amount(operations(record.n) / record.seconds, 'flop/s')}"

    def _open(self, bench: Bench) -> LinpackServers:
        if self._servers is None:
            workers, threads = usable_processors(), self.parameters.threads
            self._servers = LinpackServers(self._built, self._links, workers, threads)
            bench.stack.callback(self._servers.close)
        return self._servers


# ---- The client


class SpeedLimit:
    """Limit of a process and its threads to a share of some processors while active.

    A quota of a control group enforces it. Where none can be created, the process is stopped
    whenever it has used its share of a period.
    """

    _PERIOD = 0.02
    """Seconds."""
    _LOOK = 0.001

    def __init__(self, pid: int, processors: float) -> None:
        self._pid = pid
        self._share = processors
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._group = _cpu_group(pid, processors, self._PERIOD)

    @property
    def kind(self) -> Limit:
        """How it is done."""
        return "control group" if self._group else "stopping"

    def __enter__(self) -> SpeedLimit:
        if self._group is None:
            self._thread = threading.Thread(target=self._stop_and_continue, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        if self._group is not None:
            # The group can be removed when its process has ended.
            _end_group(self._group, self._pid)

    def _stop_and_continue(self) -> None:
        clock = (~self._pid << 3) | 2  # its processor time, see clock_getcpuclockid(3)
        try:
            began, used = time.monotonic(), time.clock_gettime(clock)
            while not self._over.wait(self._LOOK):
                spent = time.clock_gettime(clock) - used
                # It may run again when its share of the time has caught up with what it used.
                behind = began + spent / self._share - time.monotonic()
                if behind > self._PERIOD * (1 - self._share):
                    os.kill(self._pid, signal.SIGSTOP)
                    self._over.wait(behind)
                    os.kill(self._pid, signal.SIGCONT)
                elif behind < 0:
                    # Time in which it waited is not saved up.
                    began, used = time.monotonic(), used + spent
        except OSError:  # it has ended
            return


_CONTROL_GROUPS = Path("/sys/fs/cgroup")


def _cpu_group(pid: int, processors: float, period: float) -> Path | None:
    """A new control group (version 2) with this process and a quota; None if none can be made."""
    group = _CONTROL_GROUPS / f"gridbench-linpack-{pid}"
    try:
        if "cpu" not in (_CONTROL_GROUPS / "cgroup.controllers").read_text().split():
            return None
        group.mkdir()
        microseconds = round(period * 1e6)
        (group / "cpu.max").write_text(f"{round(processors * microseconds)} {microseconds}")
        (group / "cgroup.procs").write_text(str(pid))
    except OSError:
        with suppress(OSError):
            group.rmdir()
        return None
    return group


def _end_group(group: Path, pid: int) -> None:
    with suppress(OSError):
        (_CONTROL_GROUPS / "cgroup.procs").write_text(str(pid))
        group.rmdir()


class ClientFailed(Exception):
    """A client could not solve its systems."""


@dataclass(frozen=True, slots=True)
class SolveOrder:
    """What a client is to do."""

    calls: int
    """At least so many,"""
    seconds: float
    """and at least for so long."""
    limit: float
    """Seconds for all of it."""
    matrix: Literal["random", "singular"] = "random"


def run_client(
    case: PlannedLinpackCase,
    servers: LinpackServers,
    variables: Mapping[str, str],
    wanted: SolveOrder,
    glance: Callable[[], object] = lambda: None,
) -> tuple[list[Solve], Limit]:
    """Have a client solve the systems of a case; `variables`: those of the path. ClientFailed if it
    cannot. What `glance` raises ends it."""
    where = "local" if case.path == LOCAL else "remote"
    if case.path.endswith(BIG_ENDIAN):
        where += BIG_ENDIAN
    words = [where, str(case.n), str(wanted.calls), str(wanted.seconds), wanted.matrix]
    command = [*servers.programs.client(case.client), *words]
    child = Child.of_program(command, variables, folder=servers.programs.folder)
    until = time.monotonic() + wanted.limit
    found: list[Solve] = []
    kind: Limit = ""
    try:
        threads = child.receive(until, glance)["threads"]
        if threads != servers.threads:
            raise ClientFailed(
                f"the solver has {counted(threads, 'thread')}, and {servers.threads} were requested"
            )
        with ExitStack() as stack:
            if case.speed < 1:
                limit = SpeedLimit(child.process.pid, case.speed * servers.threads)
                kind = stack.enter_context(limit).kind
            child.send({"begin": True})
            while True:
                found.append(from_record(Solve, child.receive(until, glance)))
    except Ended:
        child.wait(_EXIT)
        if child.process.returncode != 0:
            said = "; ".join(child.last_lines(2)) or f"the client {child.ending()}"
            raise ClientFailed(said) from None
    except TimeoutError:
        raise ClientFailed(f"it was not done within {as_given(wanted.limit)}") from None
    finally:
        _end(child)
    return found, kind


def _end(child: Child) -> None:
    """End a client that still runs; an agent that it has started ends with it."""
    if child.process.poll() is None:
        child.ask_to_end(signal.SIGTERM)
        if not child.wait(_EXIT):
            child.process.kill()
            child.process.wait()
    child.close()

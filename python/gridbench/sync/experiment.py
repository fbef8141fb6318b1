"""Synchronised rounds as an `Experiment`: which rounds there are, and how one is run."""

from __future__ import annotations

import os
import platform
import re
import shlex
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gridbench.errors import InputError
from gridbench.experiment import Bench, Experiment
from gridbench.formats import duration
from gridbench.hosts.host_group import HostGroup, Member, near, open_hosts
from gridbench.hosts.hosts_file import HostSlots, place
from gridbench.machine.judgement import Watch
from gridbench.printing import Printing
from gridbench.run.machine import usable_processors
from gridbench.schema import record_of
from gridbench.sync.figures import figures_of
from gridbench.sync.options import SyncParameters
from gridbench.sync.record import ERRORS, FORM, OUTPUT, PROGRAM, PlannedRound, Round, TaskRun
from gridbench.sync.result_kind import SYNC
from gridbench.sync.round_runner import PlannedTask, RoundOutcome, RoundRunner
from gridbench.sync.task_group import TaskGroup, TaskOrder
from gridbench.sync.tasks import USAGE, expand
from gridbench.terminal import new_table

_LEAST_FAILED = 3
"""Successive rounds without any task that began, after which the experiment ends."""


class SyncExperiment(Experiment[PlannedRound, Round]):
    """Rounds with all numbers of workers, parameters and ways to start."""

    kind = SYNC
    form = FORM

    def __init__(self, parameters: SyncParameters) -> None:
        """InputError for contradictory parameters."""
        self.parameters = parameters
        self.command = parameters.command()
        self.where = parameters.hosts.where()
        self._place: HostGroup | None = None
        self._runner: RoundRunner | None = None
        self._useless = 0

    @property
    def name(self) -> str:
        """After the task."""
        return f"sync-{Path(self.parameters.task).name}"

    def record(self) -> dict[str, Any]:
        """The parameters of all rounds."""
        own = record_of(self.parameters)
        return {**own, "arguments": list(self.command[1:]), **self.where.record()}

    def batches(self, bench: Bench, records: Sequence[Round]) -> Iterator[Sequence[PlannedRound]]:
        """All rounds; by default with one worker for each core of the hosts."""
        del records
        yield self.rounds_with(self.parameters.workers or (self._at(bench).cores,))

    def rounds_with(self, counts: Sequence[int]) -> list[PlannedRound]:
        """All rounds with these numbers of workers."""
        own = self.parameters
        return [
            PlannedRound(workers=workers, parameter=parameter, start=start, repeat=repeat)
            for repeat in range(own.rounds)
            for workers in counts
            for parameter in own.parameters
            for start in own.start
        ]

    def _at(self, bench: Bench) -> HostGroup:
        """The hosts, opened when first needed. InputError if one cannot run the program."""
        if self._place is None:
            most = max(self.parameters.workers, default=0)
            self._place = bench.stack.enter_context(
                open_hosts(self.where, most, bench.console, TaskGroup, self.parameters.watch)
            )
            self._runner = RoundRunner(bench.interrupt.check)
            for member in self._place.members:
                why = member.remote.why_not(self.command[0], str(Path.cwd()))
                if why:
                    on = "" if member.near else f" on {member.host.name}"
                    raise InputError(
                        f"the task `{self.parameters.task}` cannot be run{on}: {why}",
                        remedy="give the path of a program that every host has, or the name of a"
                        " task of gridbench: `gridbench sync --list` lists them",
                    )
        return self._place

    def run(self, case: PlannedRound, bench: Bench) -> Round:
        """Run a round."""
        where = self._at(bench)
        assert self._runner is not None
        where.replace_lost()
        planned = planned_tasks(self.parameters, where.members, case)
        watch = Watch(os.getpid())
        watch.begin()
        ran = self._runner.run(planned, case.start, self.parameters.timeout)
        watch.end()
        watch.look_after()
        if reported := self._refused(ran.tasks):
            raise InputError(f"with {case.describe()} no task did any work: {reported}")
        paths = _keep(case, ran, bench.folder)
        return Round(
            workers=case.workers,
            parameter=case.parameter,
            repeat=case.repeat,
            start=case.start,
            at=time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(ran.at)),
            status="done" if all(task.status == "ok" for task in ran.tasks) else "failed",
            prepared_in=ran.prepared_in,
            tasks=tuple(replace(task, output=paths.get(task.worker, "")) for task in ran.tasks),
            hosts=ran.hosts,
            load=watch.record(),
        )

    def _refused(self, tasks: Sequence[TaskRun]) -> str:
        """The message of a built-in task that refused its options, if all tasks ended with it;
        else empty."""
        reasons = {task.why for task in tasks}
        if self.command[0] != PROGRAM or len(reasons) > 1:
            return ""
        if any(task.exit != USAGE for task in tasks):
            return ""
        return reasons.pop().removeprefix(f"exit status {USAGE}: ")

    def saved(self, record: Round, number: int, bench: Bench) -> None:
        """InputError if no task has begun in several rounds."""
        del number, bench
        self._useless = 0 if any(task.began for task in record.tasks) else self._useless + 1
        if self._useless >= _LEAST_FAILED:
            raise InputError(
                f"no task has begun in {self._useless} rounds: {record.tasks[0].why}",
                remedy="mend that, and run the same again with --retry-failed",
            )

    def outcome(self, record: Round) -> str:
        """Failed tasks, start skew and time."""
        bad = [task for task in record.tasks if task.status != "ok"]
        parts = []
        if bad:
            parts.append(f"{len(bad)} of {len(record.tasks)} tasks failed; {bad[0].why}")
        if any(task.began is not None for task in record.tasks):
            figures = figures_of(record)
            skew, span = duration(figures.skew), duration(figures.span)
            parts.append(f"started within {skew}, ended after {span}")
        return ", ".join(parts)


def list_rounds(experiment: SyncExperiment, printing: Printing) -> None:
    """Print all rounds, each with the command of its last worker. This contacts no host: those of a
    grid or a cluster have numbers instead of names."""
    where, parameters = experiment.where, experiment.parameters
    cores = usable_processors()
    hosts = where.hosts or (HostSlots(platform.node(), cores),)
    counts = parameters.workers or (sum(host.cores for host in hosts),)
    if where.emulated or where.grid or where.names:
        nodes = where.nodes if where.emulated else 1
        hosts = tuple(HostSlots(f"host-{n + 1}", -(-max(counts) // nodes)) for n in range(nodes))
    members = [Member(host, None if near(where) else host.name) for host in hosts]
    rows: list[dict[str, Any]] = []
    for one in experiment.rounds_with(counts):
        planned = planned_tasks(parameters, members, one)
        order = planned[-1].order
        command = shlex.join([order.program, *order.arguments])
        rows.append(
            {
                "workers": one.workers,
                "parameter": one.parameter,
                "start": one.start,
                "repeat": one.repeat,
                "hosts": len({task.member.host.name for task in planned}),
                "command": command.replace(shlex.quote(PROGRAM), "gridbench-task"),
            }
        )
    table = new_table()
    for head in ("round", "workers", "hosts", "parameter", "held at", "command of its last worker"):
        table.add_column(head, justify="right" if head in ("round", "workers") else "left")
    for number, row in enumerate(rows, 1):
        shown = (row[name] for name in ("workers", "hosts", "parameter", "start", "command"))
        table.add_row(f"{number:,}", *(f"{v:,}" if isinstance(v, int) else v for v in shown))
    printing.tables().print(table)
    printing.document(lambda: rows)


def planned_tasks(
    parameters: SyncParameters, members: Iterable[Member], case: PlannedRound
) -> list[PlannedTask]:
    """The tasks of a round with their hosts. InputError if the hosts have too few cores."""
    by_name = {member.host.name: member for member in members}
    places = place(
        [member.host for member in by_name.values()],
        case.workers,
        parameters.placement,
        oversubscribe=parameters.oversubscribe or all(one.near for one in by_name.values()),
    )
    program, *arguments = parameters.command()
    found = []
    for worker, (host, rank) in enumerate(places):
        values = {
            "parameter": case.parameter,
            "worker": str(worker),
            "rank": str(rank),
            "host": host,
            "round": str(case.repeat),
            "total": str(case.workers),
        }
        (folder,) = expand([parameters.chdir], values)
        order = TaskOrder(
            worker=worker,
            host=host,
            rank=rank,
            program=program,
            arguments=tuple(expand(arguments, values)),
            directory=os.path.abspath(folder),
            environment={f"GRIDBENCH_{name.upper()}": value for name, value in values.items()},
        )
        found.append(PlannedTask(order, by_name[host]))
    return found


def _keep(case: PlannedRound, ran: RoundOutcome, results: Path) -> dict[int, str]:
    """Write the output of tasks into files; their names below the folder of results, by worker."""
    paths: dict[int, str] = {}
    if not ran.printed:
        return paths
    name = re.sub(r"[^\w.-]+", "_", case.parameter)[:60]
    parts = [f"{case.workers}-workers", name, case.start, str(case.repeat)]
    folder = Path(OUTPUT, "-".join(part for part in parts if part))
    try:
        (results / folder).mkdir(parents=True, exist_ok=True)
        for worker, (output, errors) in ran.printed.items():
            both = output + (ERRORS + errors if errors else b"")
            path = folder / f"worker-{worker}.txt"
            (results / path).write_bytes(both)
            paths[worker] = str(path)
    except OSError as error:
        raise InputError(
            f"cannot keep the output of tasks: {error.strerror}",
            file=results / folder,
            remedy="free some space and run the same command again: it resumes",
        ) from None
    return paths

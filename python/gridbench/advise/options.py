"""The parameters and the command of `gridbench advise`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from gridbench.command_line import CommandWithExamples
from gridbench.engines.names import DEFAULT_ENGINES
from gridbench.errors import InputError
from gridbench.machine.options import Policy
from gridbench.printing import Printing
from gridbench.quantities import (
    CORES,
    FLAG,
    PATH,
    SECONDS,
    SIZE,
    TEXT,
    Count,
    FilePath,
    words,
)
from gridbench.schema import group, option, read_parameters
from gridbench.shared_options import (
    GridOptions,
    auto_rounds_option,
    experiment_options,
    start_option,
)
from gridbench.workload.body import SLEEP, SPIN
from gridbench.workload.options import task_option

if TYPE_CHECKING:
    from gridbench.advise.trying import TrialEffort
    from gridbench.advise.work import DivisibleWork


class _ExistingPath(FilePath):
    """A file or a folder that is there."""

    def read(self, value: Any, folder: Path | None = None) -> Path:
        """The path."""
        path = super().read(value, folder)
        if not path.exists():
            raise InputError(f"`{path}` does not exist", remedy="correct the path")
        return path


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceParameters:
    """A job, the engine or system it is for, and how the advice is tried."""

    work: str | None = option(
        "--work", TEXT, metavar="TIME", help="Time of the job on one core, such as 100s."
    )
    work_from: Path | None = option(
        "--work-from",
        _ExistingPath(),
        metavar="LOG|DIR",
        help="Instead: a task log, or the folder of a run. The job is its tasks, with their times"
        " and data, which can be put together to fewer.",
    )
    cores: int | None = option(
        "--cores",
        CORES,
        metavar="N",
        help="Number of cores; each is a worker with one task at a time. Required.",
    )
    task: str | None = task_option(None, SLEEP)
    threads: int | None = option(
        "--threads-per-task",
        CORES,
        metavar="N",
        help="Threads of each task that computes: on this machine, as many tasks run at once as"
        " have a processor for each of their threads. --work is then the time of the job with one"
        " task after the other.",
        default_text="1",
    )
    memory_traffic: str | None = option(
        "--memory-traffic",
        TEXT,
        metavar="SIZE",
        help="What the whole job reads from memory and writes to it, such as 20GB: tasks that run"
        " at once share the machine's memory bandwidth.",
    )
    memory_bandwidth: str | None = option(
        "--memory-bandwidth",
        TEXT,
        metavar="RATE",
        help="With --memory-traffic: such as 20GB/s.",
        default_text="measured once on this machine",
    )
    input: int = option(
        "--input",
        SIZE,
        metavar="SIZE",
        help="Input of the whole job, such as 1MB, which is divided with it. 1 MB is 1,024 KB.",
        default=0,
    )
    input_per_task: int = option(
        "--input-per-task",
        SIZE,
        metavar="SIZE",
        help="Input of each task, such as 10KB. 1 MB is 1,024 KB.",
        default=0,
    )
    shared: int = option(
        "--shared",
        SIZE,
        metavar="SIZE",
        help="Data that is the same for all tasks.",
        default=0,
    )
    output: int = option(
        "--output", SIZE, metavar="SIZE", help="Output of the whole job.", default=0
    )
    output_per_task: int = option(
        "--output-per-task", SIZE, metavar="SIZE", help="What each task returns.", default=0
    )
    start: str = start_option()
    most_tasks: int = option(
        "--most-tasks",
        Count(1, 10_000_000),
        metavar="N",
        help="The largest number of tasks into which the job can be divided.",
        default=100_000,
    )
    within: str | None = option(
        "--within",
        TEXT,
        metavar="TIME",
        help="Ask for the fewest cores, up to N, with which the job ends within TIME, such as 60s.",
    )
    stddev: str | None = option(
        "--stddev",
        TEXT,
        metavar="SHARE|TIME",
        help="Standard deviation of the times of tasks: a share of their mean, such as 50%, or a"
        " time, such as 5s.",
        default_text="0",
    )
    distribution: str | None = option(
        "--distribution",
        words("normal", "log-normal", "pareto"),
        help="With --stddev: of the times. A normal one is truncated at 0; the others have heavy"
        " tails.",
        default_text="normal",
    )
    pieces: int | None = option(
        "--pieces",
        Count(1, 100_000),
        metavar="N",
        help="With --stddev: the job consists of N pieces, files for example, which deviate by"
        " SHARE, each on its own. A task of n of them then deviates by less: its root-n-th part.",
    )
    engine: str | None = option(
        "--engine", TEXT, metavar="NAME", help="Engine.", default_text=DEFAULT_ENGINES
    )
    where: GridOptions = group(GridOptions)
    source: Path | None = option(
        "--from",
        _ExistingPath(),
        metavar="MODEL.json|DIR",
        help="A model of `gridbench model`, or the folder of runs to fit one to. Without it the"
        " engine is calibrated by some short runs, and its model is kept for the next time.",
    )
    profile: str | None = option(
        "--profile",
        TEXT,
        metavar="NAME|FILE",
        help="System that you don't have: symphony, ninfg, condor, gridrpc, a profile (.toml), or"
        " for `simulate` a model (.json).",
    )
    crossover: Path | None = option(
        "--crossover",
        _ExistingPath(),
        metavar="DIR",
        help="Results of `gridbench data crossover`, to say whether shared data is better in a"
        " data grid.",
        default_text="those that were measured last on this machine",
    )
    renew: bool = option(
        "--renew",
        FLAG,
        help="Calibrate the engine again, even if there is a model of it.",
        default=False,
    )
    maps: bool = option(
        "--map",
        FLAG,
        help="Show the bottleneck over task time and data on the page: of each model in"
        " the file given by --from, or of the engine or system of the advice.",
        default=False,
    )
    trying: bool = option(
        "--try",
        FLAG,
        help="Run the advised split, and 1, 10, 25, 50, 100, 200, 400 and 1,000 tasks beside it, as"
        " far as they fit.",
        default=False,
    )
    rounds: int | Literal["auto"] | None = auto_rounds_option(
        default_text="auto; 1 for a single engine of `run` or `scenario`"
    )
    try_limit: float | None = option(
        "--try-limit",
        SECONDS,
        metavar="S",
        help="With --try: leave out splits that are expected to take more seconds.",
        default_text="60",
    )
    out: Path | None = option(
        "--out",
        PATH,
        metavar="DIR",
        help="Folder for the page and the model.",
        default_text="runs/advice-<time>",
    )
    force: bool = option("--force", FLAG, help="Replace existing files.", default=False)

    @property
    def body(self) -> str:
        """What tasks do. Threads and memory traffic are of tasks that compute."""
        return self.task or (SPIN if self.threads or self.memory_traffic else SLEEP)

    def to_work(self) -> DivisibleWork:
        """The job: of one time (`--work`), or the tasks of a log (`--work-from`). InputError for
        what does not go together."""
        from gridbench.advise.uneven import parse_uneven, read_log
        from gridbench.advise.work import DivisibleWork, parse_roofline, parse_time

        roofline = parse_roofline(threads=self.threads, traffic=self.memory_traffic, body=self.body)
        uneven = parse_uneven(self.stddev, self.distribution, self.pieces, self.work)
        if (self.work is None) == (self.work_from is None):
            both = "--work and --work-from cannot both be given"
            raise InputError(
                "there is no work" if self.work is None else both,
                remedy="give either the time of the job, such as --work 100s, or --work-from a log",
            )
        if self.cores is None:
            raise click.UsageError("Missing option '--cores'.")
        warm = self.start == "warm"
        if self.work is not None:
            most = min(self.most_tasks, uneven.pieces or self.most_tasks) if uneven else None
            return DivisibleWork(
                seconds=parse_time("--work", self.work),
                cores=self.cores,
                bytes_in=self.input,
                bytes_in_each=self.input_per_task,
                bytes_shared=self.shared,
                bytes_out=self.output,
                bytes_out_each=self.output_per_task,
                warm=warm,
                most_tasks=most or self.most_tasks,
                body=self.body,
                uneven=uneven,
                roofline=roofline,
            )
        sizes = {
            "--input": self.input,
            "--input-per-task": self.input_per_task,
            "--shared": self.shared,
            "--output": self.output,
            "--output-per-task": self.output_per_task,
            "--stddev": uneven,
        }
        if given := [name for name, value in sizes.items() if value]:
            raise InputError(
                f"{given[0]} and --work-from cannot both be given",
                remedy="leave it out: the log has times and sizes",
            )
        assert self.work_from is not None
        found = read_log(self.work_from)
        return DivisibleWork(
            seconds=found.seconds,
            cores=self.cores,
            bytes_in=found.bytes_in,
            bytes_shared=found.bytes_shared,
            bytes_out=found.bytes_out,
            warm=warm,
            most_tasks=min(self.most_tasks, found.recorded.pieces),
            body=self.body,
            uneven=found.recorded,
            roofline=roofline,
        )

    def effort(self) -> TrialEffort | None:
        """How much is tried; None: nothing. InputError for what does not go together."""
        from gridbench.advise.trying import effort_of
        from gridbench.run.options import rounds_given

        return effort_of(
            trying=self.trying,
            rounds=rounds_given(self.rounds, several=True),
            limit=self.try_limit,
        )


@click.command(
    cls=CommandWithExamples,
    basic=(
        "--work",
        "--cores",
        "--task",
        "--input",
        "--shared",
        "--output",
        "--within",
        "--engine",
        "--from",
        "--try",
    ),
    examples=(
        "gridbench advise --work 100s --input 1MB --shared 10MB --cores 100",
        "gridbench advise --work 2h --input-per-task 1MB --cores 400 --from model.json",
        "gridbench advise --work 10s --cores 2 --task spin     # it computes here",
        "gridbench advise --work 10s --cores 50 --stddev 50%",
        "gridbench advise --work 60s --cores 16 --memory-traffic 200GB",
        "gridbench advise --work-from tasks.log --cores 50",
        "gridbench advise --work 30d --cores 10000 --profile symphony",
        "gridbench advise --work 2h --cores 500 --within 60s --from model.json",
        "gridbench advise --work 10s --cores 50 --engine process-pool --try",
        "gridbench advise --work 2h --cores 64 --grid grid.toml --server lab",
    ),
)
@experiment_options(AdviceParameters)
def advise(*, given: dict[str, Any], policy: Policy, printing: Printing) -> None:
    """Say into how many tasks to divide a job, and how many cores to ask for.

    The advice gives the expected time with an interval, where the time goes, the bottleneck,
    whether to send data as shared data, and what would help most. DIR then holds report.html, which
    shows the total time over the number of tasks, and model.json.

    The advice is for N cores, wherever they are. With --task spin the tasks compute on this
    machine, where no more of them run at once than it has processors.

    With --threads-per-task and --memory-traffic, tasks compute and share processors and memory: the
    job takes no less than its data takes through the memory, whose bandwidth is measured once.

    With --work-from, the job is the tasks of an earlier run: the advice is how many of them to put
    together, in their order. Times are what tasks slept, or else from calc-in to calc-out.

    Of shared data the advice also says whether it would be there sooner from a data grid, if that
    was measured by `gridbench data crossover`.

    With --grid or --server, the engine is calibrated and tried on servers of a grid, and the advice
    is for work there. Each worker has a processor.

    With --profile, the advice is for a system that is not here. Its workers have a processor each,
    and nothing is measured.

    With --within, the advice is the fewest cores with which 19 of 20 runs end in time, and says
    from how many on a run does so more likely than not.

    With --stddev, tasks differ in time, by the same share of their mean however the job is divided,
    if --pieces says nothing else. Totals are means over several draws of their times. The job as a
    whole takes as long as --work says.

    With --try, the advice is tested on this machine, or on the servers: splits run in random order,
    three times each, and their medians show how close the advised one is to the best. Exit status 1
    says that a run failed, 3 that other programs used the machine, so that nothing can be claimed.
    """
    from gridbench.machine.load import begin_sample

    parameters = read_parameters(AdviceParameters, given)
    # Before what takes long to import, so that it is over when that is there; but not before
    # servers are asked, whose agents may be on this machine.
    elsewhere = parameters.source or parameters.profile or parameters.where.elsewhere
    begun = None if elsewhere else begin_sample()
    from gridbench.advise.command import AdviceRequest, give_advice
    from gridbench.advise.work import parse_bandwidth, parse_time

    within, bandwidth = parameters.within, parameters.memory_bandwidth
    sys.exit(
        give_advice(
            AdviceRequest(
                work=parameters.to_work(),
                effort=parameters.effort(),
                within=None if within is None else parse_time("--within", within),
                bandwidth=parse_bandwidth(bandwidth, parameters.memory_traffic),
                options=parameters,
                policy=policy,
                begun=begun,
                printing=printing,
            )
        )
    )

"""Tasks that begin at one instant, on this machine and on hosts."""

from __future__ import annotations

import contextlib
import os
import random
import shlex
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from benchmarks.figures import Area, AreaCase, Extent, PlannedRow, Target, Values, noise_row
from benchmarks.programs import launch_with_benchmarks, missing_engine, missing_sshd, output_of
from gridbench.formats import as_given
from gridbench.hosts.host_group import HostGroup, open_hosts
from gridbench.hosts.hosts_file import HostChoice
from gridbench.sync.experiment import planned_tasks
from gridbench.sync.figures import RoundFigures, figures_of
from gridbench.sync.options import SyncParameters
from gridbench.sync.record import HoldPoint, PlannedRound, Round
from gridbench.sync.round_runner import RoundRunner
from gridbench.sync.task_group import TaskGroup
from gridbench_testbed.cluster import servers_of
from gridbench_testbed.daemons import lacking
from gridbench_testbed.links.sshd import Rig

_TIMEOUT = 300.0  # seconds for a round


@dataclass(frozen=True, slots=True)
class Seen:
    """A round whose tasks all ended well."""

    figures: RoundFigures
    printed: list[str]
    """What each task has written to its standard output, if it has."""
    uncorrected: float
    """The start skew by the hosts' own clocks, seconds: the truth where these are one."""


class Workers:
    """Runs rounds with the workers of a place."""

    def __init__(self, place: HostGroup, workers: int) -> None:
        self._place = place
        self._workers = workers
        self._rounds = RoundRunner(_no_check)
        self._count = 0

    def run(self, task: str, *words: str, start: HoldPoint = "entry") -> Seen:
        """One round. RuntimeError if a task of it does not end well."""
        # Each host gets the requested number of workers, whatever its number of cores.
        parameters = SyncParameters(task=task, arguments=words, oversubscribe=True)
        case = PlannedRound(workers=self._workers, start=start, repeat=self._count)
        self._count += 1
        planned = planned_tasks(parameters, self._place.members, case)
        ran = self._rounds.run(planned, start, _TIMEOUT)
        bad = [one for one in ran.tasks if one.status != "ok"]
        if bad:
            raise RuntimeError(
                f"{len(bad)} of {len(ran.tasks)} tasks of `{task}` failed: {bad[0].why}"
            )
        if any(one.start != start for one in ran.tasks):
            raise RuntimeError(f"tasks of `{task}` could not be held at {start}")
        record = Round(
            workers=self._workers, parameter="", repeat=case.repeat, start=start, at="",
            status="done", prepared_in=ran.prepared_in, tasks=ran.tasks, hosts=ran.hosts,
        )  # fmt: skip
        printed = [output.decode("utf-8", "replace") for output, _ in ran.printed.values()]
        own = [
            one.began + ran.clocks[one.host].offset / 1e9
            for one in ran.tasks
            if one.began is not None
        ]
        return Seen(figures_of(record), printed, max(own) - min(own))


@contextlib.contextmanager
def workers_at(workers: int, servers: Sequence[str] = ()) -> Iterator[Workers]:
    """So many, on this machine or on the hosts of these servers."""
    where = HostChoice(names=tuple(servers))
    with open_hosts(where, workers, Console(quiet=True), TaskGroup) as place:
        yield Workers(place, workers)


def medians(steps: Mapping[str, Callable[[], Values]], repeats: int) -> Values:
    """Medians of what the steps find, as `STEP QUANTITY`; each is repeated so often, all of them in
    random order."""
    order = [name for name in steps for _ in range(repeats)]
    random.shuffle(order)
    found: dict[str, list[float]] = {}
    for name in order:
        for quantity, value in steps[name]().items():
            found.setdefault(f"{name} {quantity}", []).append(value)
    return {name: statistics.median(values) for name, values in found.items()}


def _no_check() -> None:
    """Who wants an end of the case ends its process, which unwinds."""


# Part `null`: tasks that end at once, all on this machine: skew of their begin, and their span.

_WORKERS = {Extent.TRIAL: 4, Extent.USUAL: 56, Extent.FULL: 56}
_NULL_REPEATS = {Extent.TRIAL: 2, Extent.USUAL: 5, Extent.FULL: 9}


def started(workers: int, repeats: int) -> Values:
    """Seconds of skew and span, held at entry, that again, and with exec inside."""
    with workers_at(workers) as all_workers:

        def step(start: HoldPoint) -> Values:
            figures = all_workers.run("null", start=start).figures
            return {"skew": figures.skew, "span": figures.span}

        return medians(
            {
                "entry": lambda: step("entry"),
                "again": lambda: step("entry"),
                "exec": lambda: step("exec"),
            },
            repeats,
        )


def null_area(extent: Extent) -> Area:
    """One case."""
    workers, repeats = _WORKERS[extent], _NULL_REPEATS[extent]
    arguments = {"workers": workers, "repeats": repeats}
    case = AreaCase("null tasks at one instant", started, arguments)
    rows = []
    for quantity, what, bound in (
        ("span", "first instruction to last exit", 0.010),
        ("skew", "start skew", 0.001),
    ):
        ours, inside = case[f"entry {quantity}"], case[f"exec {quantity}"]
        rows += [
            noise_row(f"{what}, by itself", ours, case[f"again {quantity}"]),
            PlannedRow(f"{what}, held at entry", "s", ours, target=Target(bound), digits=5),
            PlannedRow(f"{what}, exec inside", "s", inside, digits=5),
        ]
    title = f"{workers} null tasks on this machine, real processes; medians of {repeats} rounds"
    return Area("sync/null", title, [case], rows)


# Part `simultaneity`: the share of the span in which all tasks run, of tasks that sleep.

_SECONDS = {Extent.TRIAL: 0.2, Extent.USUAL: 1.0, Extent.FULL: 1.0}
_REPEATS = {Extent.TRIAL: 1, Extent.USUAL: 3, Extent.FULL: 5}


def simultaneous(workers: int, seconds: float, repeats: int) -> Values:
    """The share of the span in which all run, and that again."""
    with workers_at(workers) as all_workers:

        def step() -> Values:
            return {"share": all_workers.run("sleep", f"{seconds:g}").figures.simultaneity}

        return medians({"ours": step, "again": step}, repeats)


def simultaneity_area(extent: Extent) -> Area:
    """One case."""
    workers, seconds, repeats = _WORKERS[extent], _SECONDS[extent], _REPEATS[extent]
    arguments = {"workers": workers, "seconds": seconds, "repeats": repeats}
    case = AreaCase("tasks that sleep", simultaneous, arguments)
    ours, target = case["ours share"], Target(0.99, at_least=True)
    rows = [
        noise_row("the share, by itself", ours, case["again share"], digits=4),
        PlannedRow("share of the span in which all run", "", ours, target=target, digits=4),
    ]
    title = f"{workers} tasks of {as_given(seconds)} on this machine; medians of {repeats} rounds"
    return Area("sync/simultaneity", title, [case], rows)


# Part `hosts`: the same instant on many hosts, beside parallel ssh, and MPI's barrier on this
# machine. The hosts are network namespaces with an sshd each, on this machine's clock. Ours
# measures their clocks as on any hosts; the skew on the one clock shows how well. Parallel ssh is
# compared by what `date` prints.

_SIZES = {Extent.TRIAL: (2, 1), Extent.USUAL: (8, 7), Extent.FULL: (8, 7)}
"""Hosts, and workers of each."""
_ALLOWED = 0.001  # seconds, and what is not known of the clocks
_STAMPS = "date +%s%N; date +%s%N"
"""For a shell: its begin and its end, nanoseconds."""
_LIMIT = 120.0  # seconds for a peer


def ours(hosts: int, each: int, repeats: int) -> Values:
    """Skew of null tasks and what is allowed; skew and span of stamps, and that again; seconds."""
    with Rig(hosts) as rig, workers_at(hosts * each, servers_of(rig)) as all_workers:

        def null() -> Values:
            seen = all_workers.run("null")
            figures = seen.figures
            return {
                "skew": figures.skew,
                "true": seen.uncorrected,
                "allowed": _ALLOWED + figures.clock_error,
                "span": figures.span,
            }

        def stamped() -> Values:
            return _apart(all_workers.run("shell", _STAMPS).printed, hosts * each)

        return medians({"null": null, "stamps": stamped, "again": stamped}, repeats)


def pssh(hosts: int, each: int, repeats: int) -> Values:
    """The same of `parallel-ssh`, with as many logins at once."""

    def command(names: str, config: str) -> list[str]:
        options = ["-h", names, "-p", str(hosts * each), "-t", "0", "-i"]
        return ["parallel-ssh", *options, "-x", shlex.join(["-F", config]), _STAMPS]

    return _by_ssh(command, hosts, each, repeats)


def xargs(hosts: int, each: int, repeats: int) -> Values:
    """The same of `xargs` that runs as many `ssh` at once."""

    def command(names: str, config: str) -> list[str]:
        options = ["-a", names, "-P", str(hosts * each), "-I", "{}"]
        return ["xargs", *options, "ssh", "-n", "-F", config, "{}", _STAMPS]

    return _by_ssh(command, hosts, each, repeats)


def barrier(ranks: int, repeats: int) -> Values:
    """Seconds between the first rank and the last one to leave a barrier."""
    launch = launch_with_benchmarks("mpi")
    # Ranks that wait leave the processors to those that do not.
    options = ["--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
    module = ["-m", "benchmarks.clusters.mpi", "barrier", str(repeats)]
    command = ["mpirun", *options, "-n", str(ranks), *launch.command, *module]
    return {"skew": float(output_of(command, launch.variables, _LIMIT))}


def _by_ssh(
    command: Callable[[str, str], list[str]], hosts: int, each: int, repeats: int
) -> Values:
    """`command`: of a file with a line for each login, and ssh's configuration."""
    with Rig(hosts) as rig, tempfile.TemporaryDirectory(prefix="gridbench-ssh-") as folder:
        names = Path(folder, "hosts")
        names.write_text("".join(f"node{number}\n" for number in rig.nodes for _ in range(each)))
        made = command(str(names), str(rig.config))

        def stamped() -> Values:
            return _apart([output_of(made, dict(os.environ), _LIMIT)], hosts * each)

        return medians({"stamps": stamped}, repeats)


def _apart(printed: Iterable[str], tasks: int) -> Values:
    """Skew and span of tasks that have printed two stamps each, one below the other."""
    lines = [line for text in printed for line in text.splitlines()]
    stamps = [int(line) for line in lines if line.isdecimal() and len(line) > 15]
    if len(stamps) != 2 * tasks:
        raise RuntimeError(f"{tasks} tasks have printed {len(stamps)} stamps, not two each")
    begins, ends = stamps[::2], stamps[1::2]
    return {"skew": (max(begins) - min(begins)) / 1e9, "span": (max(ends) - min(begins)) / 1e9}


def hosts_area(extent: Extent) -> Area:
    """A case for ours and for each peer."""
    hosts, each = _SIZES[extent]
    repeats, no_hosts = _REPEATS[extent], missing_sshd()
    no_pssh = no_hosts
    if lacking("parallel-ssh"):
        no_pssh = "`parallel-ssh` is not installed: scripts/ensure-pssh does that"
    sizes = {"hosts": hosts, "each": each, "repeats": repeats}
    ranks = {"ranks": hosts * each, "repeats": repeats}
    ssh = ("pssh", pssh, no_pssh), ("xargs with ssh", xargs, no_hosts)
    case = AreaCase("ours on hosts", ours, sizes, missing=no_hosts, timeout=300)
    by_ssh = [AreaCase(name, made, sizes, missing=why, timeout=300) for name, made, why in ssh]
    why = missing_engine("mpi")
    mpi = AreaCase("mpirun, a barrier", barrier, ranks, missing=why, timeout=300)
    skew, on_one_clock, bound = case["stamps skew"], case["null true"], Target(1.0, of_limit=True)
    rows = [
        PlannedRow(
            "start skew of null tasks, on corrected clocks", "s", case["null skew"],
            limit=case["null allowed"], target=bound, digits=5,
        ),
        PlannedRow("the same on the one clock of all", "s", on_one_clock, digits=5),
        PlannedRow(
            "first instruction to last exit of null tasks", "s", case["null span"], digits=5
        ),
        noise_row("skew of what `date` prints, ours by itself", skew, case["again skew"]),
        *(
            PlannedRow(
                f"{what}; peer: {peer.name}", "s", case[quantity], peer=peer[quantity], digits=5
            )
            for peer in by_ssh
            for what, quantity in (
                ("skew of what `date` prints", "stamps skew"),
                ("first `date` to the last one's end", "stamps span"),
            )
        ),
        PlannedRow(
            f"start skew on the one clock; peer: {mpi.name}, on this machine", "s", on_one_clock,
            peer=mpi["skew"], digits=5,
        ),
    ]  # fmt: skip
    title = (
        f"{hosts * each} tasks on {hosts} hosts by ssh; medians of {repeats} rounds;"
        " limit: 1 ms and the uncertainty of the clocks"
    )
    return Area("sync/hosts", title, [case, *by_ssh, mpi], rows)

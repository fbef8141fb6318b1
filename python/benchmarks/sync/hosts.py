"""The same instant on many hosts, beside parallel ssh, and MPI's barrier on this machine.

The hosts are network namespaces with an sshd each. Their clocks are this machine's, which ours does
not know: it measures how far they are apart, as on any hosts; how well, the skew on the one clock
shows. Parallel ssh is compared by what `date` prints, which a shell runs in all of them.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks.extent import Extent
from benchmarks.figures import Area, AreaCase, Row, Target, Values, noise_row
from benchmarks.hosts.peers import output_of
from benchmarks.hosts.places import lacks_sshd
from benchmarks.launch import launch_with_benchmarks
from benchmarks.sync.rounds import medians, workers_at
from gridbench.bench.series import Points
from gridbench.engines.environments import environment
from gridbench.errors import InputError
from gridbench_testbed.cluster import servers_of
from gridbench_testbed.daemons import lacking
from gridbench_testbed.links.sshd import Rig

_SIZES = {Extent.TRIAL: (2, 1), Extent.USUAL: (8, 7), Extent.FULL: (8, 7)}
"""Hosts, and workers of each."""
_REPEATS = {Extent.TRIAL: 1, Extent.USUAL: 3, Extent.FULL: 5}
_ALLOWED = 0.001  # seconds, and what is not known of the clocks
_OURS, _PSSH, _XARGS, _BARRIER = "ours on hosts", "pssh", "xargs with ssh", "mpirun, a barrier"
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

    def command(rig: Rig, folder: Path) -> list[str]:
        names = folder / "hosts"
        names.write_text("".join(f"node{number}\n" for number in rig.nodes for _ in range(each)))
        options = ["-h", str(names), "-p", str(hosts * each), "-t", "0", "-i"]
        return ["parallel-ssh", *options, "-x", shlex.join(["-F", str(rig.config)]), _STAMPS]

    return _by_ssh(command, hosts, each, repeats)


def xargs(hosts: int, each: int, repeats: int) -> Values:
    """The same of `xargs` that runs as many `ssh` at once."""

    def command(rig: Rig, folder: Path) -> list[str]:
        names = folder / "hosts"
        names.write_text("".join(f"node{number}\n" for number in rig.nodes for _ in range(each)))
        options = ["-a", str(names), "-P", str(hosts * each), "-I", "{}"]
        return ["xargs", *options, "ssh", "-n", "-F", str(rig.config), "{}", _STAMPS]

    return _by_ssh(command, hosts, each, repeats)


def barrier(ranks: int, repeats: int) -> Values:
    """Seconds between the first rank and the last one to leave a barrier."""
    launch = launch_with_benchmarks("mpi")
    # Ranks that wait leave the processors to those that do not.
    options = ["--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
    module = ["-m", "benchmarks.clusters.mpi_barrier", str(repeats)]
    command = ["mpirun", *options, "-n", str(ranks), *launch.command, *module]
    return {"skew": float(output_of(command, launch.variables, _LIMIT))}


def _by_ssh(
    command: Callable[[Rig, Path], list[str]], hosts: int, each: int, repeats: int
) -> Values:
    with Rig(hosts) as rig, tempfile.TemporaryDirectory(prefix="gridbench-ssh-") as folder:
        made = command(rig, Path(folder))

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


def area(extent: Extent) -> Area:
    """A case for ours and for each peer."""
    hosts, each = _SIZES[extent]
    sizes = {"hosts": hosts, "each": each, "repeats": _REPEATS[extent]}
    no_hosts = lacks_sshd()
    no_pssh = no_hosts
    if lacking("parallel-ssh"):
        no_pssh = "`parallel-ssh` is not installed: scripts/ensure-pssh does that"
    ranks = {"ranks": hosts * each, "repeats": _REPEATS[extent]}
    cases = (
        AreaCase(_OURS, ours, sizes, missing=no_hosts, timeout=300),
        AreaCase(_PSSH, pssh, sizes, missing=no_pssh, timeout=300),
        AreaCase(_XARGS, xargs, sizes, missing=no_hosts, timeout=300),
        AreaCase(_BARRIER, barrier, ranks, missing=_lacks_mpi(), timeout=300),
    )
    title = (
        f"{hosts * each} tasks on {hosts} hosts by ssh; medians of {_REPEATS[extent]} rounds;"
        " limit: 1 ms and the uncertainty of the clocks"
    )
    return Area("sync/hosts", title, cases, _rows, part="hosts")


def _lacks_mpi() -> str:
    try:
        if (found := environment("mpi")) is not None:
            found.require()
    except InputError as error:
        return str(error)
    return ""


def _rows(samples: Points) -> list[Row]:
    skew, span = samples.of(_OURS, "stamps skew"), samples.of(_OURS, "stamps span")
    rows = [
        Row(
            "start skew of null tasks, on corrected clocks",
            "s",
            samples.of(_OURS, "null skew"),
            limit=samples.of(_OURS, "null allowed"),
            target=Target(1.0, of_limit=True),
            digits=5,
        ),
        Row("the same on the one clock of all", "s", samples.of(_OURS, "null true"), digits=5),
        Row(
            "first instruction to last exit of null tasks",
            "s",
            samples.of(_OURS, "null span"),
            digits=5,
        ),
        noise_row(
            "skew of what `date` prints, ours by itself", skew, samples.of(_OURS, "again skew")
        ),
    ]
    for peer in (_PSSH, _XARGS):
        for what, series, quantity in (
            ("skew of what `date` prints", skew, "stamps skew"),
            ("first `date` to the last one's end", span, "stamps span"),
        ):
            rows.append(
                Row(f"{what}; peer: {peer}", "s", series, peer=samples.of(peer, quantity), digits=5)
            )
    rows.append(
        Row(
            f"start skew on the one clock; peer: {_BARRIER}, on this machine",
            "s",
            samples.of(_OURS, "null true"),
            peer=samples.of(_BARRIER, "skew"),
            digits=5,
        )
    )
    return rows

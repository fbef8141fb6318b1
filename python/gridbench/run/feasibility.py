"""Refusing, before anything starts, what this machine cannot do.

A benchmark that swaps or is killed half-way measures nothing. The needs counted here are
those that no engine can avoid, so that a refusal is always right; an engine can still
need more.
"""

from __future__ import annotations

import os
import resource
from pathlib import Path

import psutil

from gridbench.errors import InputError
from gridbench.formats import size
from gridbench.run.client import EngineFacts
from gridbench.run.machine import available_memory, free_shared_memory
from gridbench.workload.workload import Setup

_FILES_PER_WORKER = 3  # descriptors in the client; the process pool needs two, with room for more
_FILES_BESIDE = 100
_PROCESSES_BESIDE = 50
_MOST_OUTSTANDING = 100_000  # tasks without data take memory in every engine, too


def check_workers(setup: Setup) -> None:
    """InputError if `setup.nnodes` processes cannot be started; raises the soft limit of open
    files where that is all that is in the way."""
    room, reason, remedy = _process_room()
    if setup.nnodes > room:
        raise InputError(
            f"{_cores(setup)} is {setup.nnodes:,}, but only {room:,} more processes can be started"
            f" here: {reason}",
            file=setup.path,
            remedy=f"lower {_cores(setup)}, or {remedy}",
        )
    needed = setup.nnodes * _FILES_PER_WORKER + _FILES_BESIDE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        if hard != resource.RLIM_INFINITY and hard < needed:
            raise InputError(
                f"{_cores(setup)} is {setup.nnodes:,}, which needs about {needed:,} open files, but"
                f" this process may have {hard:,}",
                file=setup.path,
                remedy=f"lower {_cores(setup)}, or raise the limit of open files (nofile in"
                " /etc/security/limits.conf)",
            )
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _cores(setup: Setup) -> str:
    """Source of the number of workers."""
    return "--cores" if setup.path is None else "<NNodes>"


def check_body(body: str, engines: dict[str, EngineFacts]) -> None:
    """InputError if an engine cannot run tasks of that body (`gridbench.workload.body`)."""
    for name, facts in engines.items():
        if facts.bodies is not None and body not in facts.bodies:
            raise InputError(
                f"the engine `{name}` cannot run tasks that do `{body.rpartition('/')[2]}`",
                remedy=f"give --task {' or '.join(facts.bodies)}, or choose an engine that runs"
                " Python functions, such as gridrpc-python",
            )


def most_at_once(setup: Setup) -> int:
    """How many tasks can be computed at the same time."""
    return min(setup.nnodes, setup.ntasks)


def check_memory(setup: Setup, engines: dict[str, EngineFacts]) -> None:
    """InputError if the data cannot fit; `engines` are those to run."""
    at_once = most_at_once(setup)
    own = setup.task_bytes + setup.shared_bytes
    in_tasks = at_once * (setup.task_bytes + setup.write_bytes)
    available, free = available_memory(), free_shared_memory()
    for name, facts in engines.items():
        copies = facts.shared_copies * setup.shared_bytes
        needed = own + in_tasks + copies
        if needed > available:
            raise InputError(
                f"the data does not fit into memory on engine `{name}`: {at_once:,} tasks at"
                f" a time need {size(in_tasks)}, shared data {size(copies)}, the client"
                f" {size(own)}; together {size(needed)}, and {size(available)} is available",
                file=setup.path,
                remedy=f"lower {_cores(setup)}, or the sizes of the data",
            )
        if facts.uses_shared_memory and free is not None and in_tasks + copies > free:
            raise InputError(
                f"the data does not fit into /dev/shm on engine `{name}`:"
                f" {size(in_tasks + copies)} is needed, and {size(free)} is free",
                file=setup.path,
                remedy="lower the data sizes, or enlarge it: mount -o remount,size=... /dev/shm",
            )


def most_outstanding(setup: Setup) -> int:
    """How many tasks may be submitted and not yet returned.

    Their data is held to a quarter of the available memory, but not to fewer tasks than there
    are workers, which would be another benchmark; `check_memory` has seen that those fit.
    """
    per_task = max(1, setup.task_bytes + setup.write_bytes)
    return max(setup.nnodes, min(_MOST_OUTSTANDING, available_memory() // 4 // per_task))


def _process_room() -> tuple[int, str, str]:
    """How many more processes can be started, what limits them, and what to do about it."""
    everywhere = len(psutil.pids())
    limits = []
    for name, what in (
        ("/proc/sys/kernel/pid_max", "process numbers (kernel.pid_max)"),
        ("/proc/sys/kernel/threads-max", "threads (kernel.threads-max)"),
    ):
        if (most := _number(Path(name))) is not None:
            limits.append(
                (
                    most - everywhere,
                    f"the machine has at most {most:,} {what}",
                    "raise it by sysctl",
                )
            )
    group = _number(Path("/sys/fs/cgroup/pids.max"))
    used = _number(Path("/sys/fs/cgroup/pids.current"))
    if group is not None and used is not None:
        limits.append(
            (group - used, f"the control group may have {group:,} (pids.max)", "raise pids.max")
        )
    most = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    if most != resource.RLIM_INFINITY and os.geteuid() != 0:  # it does not bind the superuser
        mine = _processes_of_user()
        limits.append(
            (
                most - mine,
                f"the user may have {most:,} processes and has {mine:,}",
                "raise the limit (ulimit -u)",
            )
        )
    if not limits:
        return 10**9, "", ""
    room, reason, remedy = min(limits)
    return max(0, room - _PROCESSES_BESIDE), reason, remedy


def _processes_of_user() -> int:
    me = psutil.Process().uids().real
    count = 0
    for process in psutil.process_iter(["uids"]):
        uids = process.info["uids"]
        count += uids is not None and uids.real == me
    return count


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):  # not there, or "max"
        return None

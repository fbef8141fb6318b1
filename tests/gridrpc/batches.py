"""Grids whose workers a batch system starts, and what runs on these."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import psutil
import pytest

import gridrpc
from gridbench_testbed.batch import BatchSystem, gridengine, htcondor, slurm
from gridbench_testbed.batch.gridengine import GridEngine
from gridbench_testbed.batch.htcondor import HTCondor
from gridbench_testbed.batch.slurm import Slurm
from grids import opened
from processes import HERE, LONG, environment, start_script, until

_R = TypeVar("_R", bound=BatchSystem)


@contextmanager
def _used(rig: _R) -> Iterator[_R]:
    """The batch system that commands of this process are for."""
    with rig, pytest.MonkeyPatch.context() as patch:
        for name, value in rig.variables.items():
            patch.setenv(name, value)
        yield rig


@contextmanager
def slurm_of(nodes: int, processors: int, state: Path | None = None) -> Iterator[Slurm]:
    """A Slurm that this process uses, where there can be one."""
    if why := slurm.why_not():
        pytest.skip(why)
    with _used(Slurm(nodes, processors, state)) as rig:
        yield rig


@contextmanager
def gridengine_of(slots: int, spool: Path | None = None) -> Iterator[GridEngine]:
    """A Grid Engine that this process uses, where there can be one."""
    if why := gridengine.why_not():
        pytest.skip(why)
    with _used(GridEngine(slots, spool)) as rig:
        yield rig


@contextmanager
def htcondor_of(slots: int, spool: Path | None = None) -> Iterator[HTCondor]:
    """An HTCondor that this process uses, where there can be one."""
    if why := htcondor.why_not():
        pytest.skip(why)
    with _used(HTCondor(slots, spool)) as rig:
        yield rig


def printed_script(page: str, line: str) -> str:
    """The job script with this line, as a page of docs/ has it, without its language."""
    text = (Path(__file__).parents[2] / "docs" / page).read_text(encoding="utf-8")
    (found,) = [block for block in text.split("```") if line in block.splitlines()]
    return found.partition("\n")[2]


def home_with_venv(folder: Path) -> dict[str, str]:
    """The environment of somebody whose home is this folder, with ours as `venv` in it."""
    (folder / "venv").symlink_to(sys.prefix)
    return environment() | {"HOME": str(folder)}


class Disk:
    """A small file system."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def fill(self) -> None:
        """Leave no room on it."""
        with self._filler.open("wb", buffering=0) as file, suppress(OSError):
            while file.write(bytes(4096)):
                pass

    def empty(self) -> None:
        """Undo `fill`."""
        self._filler.unlink()


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Disk]:
    """A file system of so many bytes, such as `4k`, in place of a folder."""
    folder.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "none", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def full_disk(folder: Path) -> Iterator[None]:
    """A file system without room in place of a folder."""
    with small_disk(folder, "4k") as disk:
        disk.fill()
        yield


class BatchSite(ABC):
    """A cluster, and the folder that its nodes share with this machine."""

    launcher: str
    for_several: ClassVar[dict[str, str]] = {}
    """The keys by which an agent has several workers."""

    def __init__(self, rig: BatchSystem, shared: Path) -> None:
        self.rig, self.shared = rig, shared

    @abstractmethod
    def running(self) -> list[str]:
        """The jobs that run; each task of an array is one."""

    @abstractmethod
    def queued(self) -> list[str]:
        """The jobs that wait."""

    def server(self, *, name: str = "lab", **keys: Any) -> str:
        """A table of a configuration file: workers find the modules of the tests."""
        settings = {"launcher": self.launcher, "workers": 2, "staging": str(self.shared), **keys}
        lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
        path = f"environment = {{ PYTHONPATH = {json.dumps(str(HERE))} }}"
        return "\n".join([f"[server.{name}]", *lines, path, ""])

    @contextmanager
    def grid(self, folder: Path, **keys: Any) -> Iterator[gridrpc.Grid]:
        """A grid of one server."""
        file = folder / "grid.toml"
        file.write_text(self.server(**keys))
        with opened(config=file) as grid:
            yield grid

    @contextmanager
    def full_grid(self, folder: Path, **keys: Any) -> Iterator[gridrpc.Grid]:
        """A grid of one server, whose workers have all answered."""
        with self.grid(folder, **keys) as grid:
            grid.wait_until_ready(LONG)
            yield grid

    def agents(self) -> list[psutil.Process]:
        """The agents on all nodes, which are this machine."""
        all_processes = psutil.process_iter(["cmdline"])
        found = [(process, process.info["cmdline"] or []) for process in all_processes]
        return [
            process
            for process, words in found
            if words[1:2] == ["agent"] and str(self.shared) in " ".join(words)
        ]

    def tickets(self) -> list[Path]:
        """All files of tickets."""
        return [file for file in self.shared.glob("jobs/*/*/*") if file.name.isalnum()]

    def nothing_is_left(self, seconds: float = LONG) -> bool:
        """Whether no job and no ticket is left, soon; what there is goes to standard error."""

        def is_left() -> list[object]:
            return [*self.rig.jobs(), *self.shared.glob("jobs/*")]

        if until(lambda: not is_left(), seconds):
            return True
        print(is_left(), file=sys.stderr)
        return False


class QueueSite(BatchSite):
    """One whose batch system has daemons, and a queue."""

    @abstractmethod
    def requeue(self, job: str) -> None:
        """Take a job from its node by hand; it starts again if it may."""

    @abstractmethod
    def run_soon(self, job: str) -> None:
        """Have a job that was requeued run at once."""

    @abstractmethod
    def stop_scheduler(self) -> None:
        """End the daemon that has the queue."""

    @abstractmethod
    def start_scheduler(self) -> None:
        """Start it, after `stop_scheduler`."""

    @abstractmethod
    def frozen_scheduler(self) -> AbstractContextManager[None]:
        """Have it hang."""

    @abstractmethod
    def hold(self) -> None:
        """Have no more jobs start."""

    @abstractmethod
    def resume(self) -> None:
        """Undo `hold`."""


class Site(QueueSite):
    """One with Slurm."""

    launcher = "slurm"

    def __init__(self, slurm: Slurm, shared: Path) -> None:
        super().__init__(slurm, shared)
        self.slurm = slurm

    def running(self) -> list[str]:
        """The jobs that run, as `12_1`."""
        jobs = [line.split() for line in self.slurm.jobs()]
        return [job[0] for job in jobs if job[1] == "RUNNING"]

    def queued(self) -> list[str]:
        """The jobs that wait."""
        jobs = [line.split() for line in self.slurm.jobs()]
        return [job[0] for job in jobs if job[1] == "PENDING"]

    def requeue(self, job: str) -> None:
        self.slurm.run("scontrol", "requeue", job)

    def run_soon(self, job: str) -> None:
        """It would wait for two minutes."""
        assert until(lambda: job in self.queued())
        # A node starts no job in the second in which it has ended it.
        time.sleep(2)
        self.slurm.run("scontrol", "update", f"jobid={job}", "starttime=now")

    def stop_scheduler(self) -> None:
        self.slurm.stop_controller()

    def start_scheduler(self) -> None:
        self.slurm.start_controller()

    def frozen_scheduler(self) -> AbstractContextManager[None]:
        return self.slurm.frozen_controller()

    def hold(self) -> None:
        for node in self.slurm.nodes:
            self.slurm.hold(node)

    def resume(self) -> None:
        for node in self.slurm.nodes:
            self.slurm.resume(node)


class GridEngineSite(QueueSite):
    """One with Grid Engine."""

    launcher = "gridengine"
    for_several: ClassVar = {"parallel_environment": "mp"}

    def __init__(self, engine: GridEngine, shared: Path) -> None:
        super().__init__(engine, shared)
        self.engine = engine

    def running(self) -> list[str]:
        """The jobs that run, as `12.1`."""
        jobs = [line.split() for line in self.engine.jobs()]
        return [job[0] for job in jobs if job[1].removeprefix("R") in {"r", "t"}]

    def queued(self) -> list[str]:
        """The jobs that wait."""
        jobs = [line.split() for line in self.engine.jobs()]
        return [job[0] for job in jobs if "q" in job[1]]

    def requeue(self, job: str) -> None:
        self.engine.run("qmod", "-rj", job)

    def run_soon(self, job: str) -> None:
        """It does so anyway."""

    def stop_scheduler(self) -> None:
        self.engine.stop_master()

    def start_scheduler(self) -> None:
        self.engine.start_master()

    def frozen_scheduler(self) -> AbstractContextManager[None]:
        return self.engine.frozen_master()

    def hold(self) -> None:
        self.engine.hold()

    def resume(self) -> None:
        self.engine.resume()


class HTCondorSite(QueueSite):
    """One with HTCondor."""

    launcher = "htcondor"

    def __init__(self, condor: HTCondor, shared: Path) -> None:
        super().__init__(condor, shared)
        self.htcondor = condor

    def running(self) -> list[str]:
        """The jobs that run, as `12.1`."""
        jobs = [line.split() for line in self.htcondor.jobs()]
        return [job[0] for job in jobs if job[1] == "running"]

    def queued(self) -> list[str]:
        """The jobs that wait."""
        jobs = [line.split() for line in self.htcondor.jobs()]
        return [job[0] for job in jobs if job[1] == "idle"]

    def requeue(self, job: str) -> None:
        self.htcondor.run("condor_vacate_job", job)

    def run_soon(self, job: str) -> None:
        """It does so anyway."""

    def stop_scheduler(self) -> None:
        self.htcondor.stop_scheduler()

    def start_scheduler(self) -> None:
        self.htcondor.start_scheduler()

    def frozen_scheduler(self) -> AbstractContextManager[None]:
        return self.htcondor.frozen_scheduler()

    def hold(self) -> None:
        self.htcondor.hold()

    def resume(self) -> None:
        self.htcondor.resume()


class Everywhere:
    """One call on each worker of a grid; they run until they are let go."""

    def __init__(self, grid: gridrpc.Grid, folder: Path, *, idempotent: bool = False) -> None:
        folder.mkdir(exist_ok=True)
        self.gate = folder / "gate"
        started = [folder / f"started{n}" for n in range(grid.workers)]
        self.calls = [
            grid.submit(tell_node_and_wait, str(file), str(self.gate), idempotent=idempotent)
            for file in started
        ]
        assert until(lambda: all(file.exists() for file in started))
        self.nodes = [file.read_text() for file in started]

    def let_go(self) -> list[str]:
        """Where they have run."""
        self.gate.touch()
        return [call.result(LONG) for call in self.calls]


STEPS = """
import sys
from pathlib import Path
import batches, gridrpc
with gridrpc.Grid(config=sys.argv[1]) as grid:
    grid.wait_until_ready(60)
    print(*sorted(batches.Everywhere(grid, Path(sys.argv[2])).let_go()))
"""
"""A program that tells where the workers of its grid run."""

_CLIENT = """
import sys
import gridrpc, remote
grid = gridrpc.Grid(config="grid.toml")
grid.submit(remote.add, 1, 1).result(60)
print("works", flush=True)
sys.stdin.read()
"""


@contextmanager
def start_client(folder: Path, *tables: str) -> Iterator[subprocess.Popen[str]]:
    """A program whose grid has these servers, and has worked already; it stays until it is ended,
    at the latest here: it would ask for its jobs again."""
    (folder / "grid.toml").write_text("\n".join(tables))
    process = start_script(folder, _CLIENT)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "works\n"
        yield process
    finally:
        process.kill()
        process.wait(LONG)


def node() -> str:
    """The node that this worker runs on."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()


def tell_node_and_wait(started: str, file: str) -> str:
    """Writes its node into the first file, then runs until somebody makes the second."""
    new = Path(f"{started}.{os.getpid()}")
    new.write_text(node())
    new.rename(started)
    while not os.path.exists(file):
        time.sleep(0.005)
    return node()

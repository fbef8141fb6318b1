"""Grids whose workers a batch system starts, and what runs on these."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

import gridrpc
from gridbench.batch.slurm import Slurm, why_not
from grids import opened
from processes import HERE, LONG, until


@contextmanager
def slurm_of(nodes: int, processors: int) -> Iterator[Slurm]:
    """A Slurm that this process uses, where there can be one."""
    if why := why_not():
        pytest.skip(why)
    with Slurm(nodes, processors) as slurm, pytest.MonkeyPatch.context() as patch:
        for name, value in slurm.variables.items():
            patch.setenv(name, value)
        yield slurm


class Site:
    """A cluster, and the folder that its nodes share with this machine."""

    def __init__(self, slurm: Slurm, shared: Path) -> None:
        self.slurm, self.shared = slurm, shared

    def server(self, *, name: str = "lab", **keys: Any) -> str:
        """A table of a configuration file: workers find the modules of the tests."""
        settings = {"launcher": "slurm", "workers": 2, "staging": str(self.shared), **keys}
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

    def running(self) -> list[str]:
        """The jobs that run, as `12_1`."""
        jobs = [line.split() for line in self.slurm.jobs()]
        return [job[0] for job in jobs if job[1] == "RUNNING"]

    def queued(self) -> list[str]:
        """The jobs that wait."""
        jobs = [line.split() for line in self.slurm.jobs()]
        return [job[0] for job in jobs if job[1] == "PENDING"]

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
            return [*self.slurm.jobs(), *self.shared.glob("jobs/*")]

        if until(lambda: not is_left(), seconds):
            return True
        print(is_left(), file=sys.stderr)
        return False


def node() -> str:
    """The node that this worker runs on."""
    return os.environ["SLURMD_NODENAME"]


def tell_node_and_wait(started: str, file: str) -> str:
    """Writes its node into the first file, then runs until somebody makes the second."""
    new = Path(f"{started}.{os.getpid()}")
    new.write_text(node())
    new.rename(started)
    while not os.path.exists(file):
        time.sleep(0.005)
    return node()

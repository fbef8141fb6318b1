"""A `map` over clusters that come and go: its results are those of a run without faults."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import psutil
import pytest

import gridrpc
import remote
from processes import HERE, LONG, until

WORKERS = 10
ITEMS = 300

PREFIX = """#!/bin/sh
# Begins when one file is there, and not when the other one is.
until test -e {begin}; do sleep 0.02; done
test -e {end} && exit 1
exec "$@"
"""


class Cluster:
    """A server whose hosts are available for a limited time."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self._begin, self._end = folder / f"{name}.begin", folder / f"{name}.end"
        self._prefix = folder / f"{name}.sh"
        self._prefix.write_text(PREFIX.format(begin=self._begin, end=self._end))
        self._prefix.chmod(0o755)

    def table(self) -> str:
        return f"""
            [server.{self.name}]
            launcher = "local"
            workers = {WORKERS}
            python = "{sys.executable}"
            prefix = ["{self._prefix}"]
            environment = {{ PYTHONPATH = "{HERE}", CLUSTER = "{self.name}" }}
        """

    def join(self) -> None:
        self._begin.touch()

    def leave(self, worker: int) -> None:
        """All its processes end at once, and it cannot start again."""
        self._end.touch()
        agent = psutil.Process(worker).parent().parent()
        agent.kill()


def pids(folder: Path, cluster: str) -> list[int]:
    """The workers of a cluster that have begun an item."""
    return sorted({int(one.name.split(".")[2]) for one in folder.glob(f"{cluster}.*.*")})


@pytest.mark.parametrize("ordered", [True, False])
def test_clusters_leave_and_join_and_workers_are_killed(tmp_path: Path, ordered: bool) -> None:
    first, second = Cluster(tmp_path, "first"), Cluster(tmp_path, "second")
    config = tmp_path / "grid.toml"
    config.write_text(first.table() + second.table())
    notes = tmp_path / "notes"
    notes.mkdir()
    gate = tmp_path / "gate"
    first.join()
    with gridrpc.Grid(WORKERS, config=config) as grid:
        assert until(lambda: len([one for one in grid.hosts() if one.ready]) == 1)
        # The last third waits until the second cluster has begun some of it.
        gates = [None if n < 200 else str(gate) for n in range(ITEMS)]
        results = grid.map(
            remote.chaotic, range(ITEMS), [str(notes)] * ITEMS, gates, idempotent=True,
            ordered=ordered,
        )  # fmt: skip
        came: dict[int, bytes] = {}
        killed: list[int] = []
        for number, values in results:
            assert number not in came, "it has two results"
            came[number] = values.tobytes()
            match len(came):
                case 100:
                    first.leave(pids(notes, "first")[0])
                case 150:
                    second.join()
                case 200:
                    assert until(lambda: bool(pids(notes, "second")))
                    # A tenth of those that there are.
                    killed = [pids(notes, name)[0] for name in ("here", "second")]
                    for pid in killed:
                        os.kill(pid, signal.SIGKILL)
                    gate.touch()
        assert len(killed) == 2
        assert until(lambda: not any(map(psutil.pid_exists, killed)))
        assert grid.submit(abs, -1).result(LONG) == 1
    assert came == {n: remote.chaotic(n)[1].tobytes() for n in range(ITEMS)}
    begun = Counter(int(note.name.split(".")[1]) for note in notes.iterdir())
    assert set(begun) == set(range(ITEMS))
    assert max(begun.values()) > 1, "nobody has lost an item"
    assert np.isfinite(np.frombuffer(came[0])).all()

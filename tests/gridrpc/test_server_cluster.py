"""A server in front of other hosts: hosts that are lost, and a real Slurm."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import gridrpc
from batches import Site, slurm_of
from grids import PROGRAM, CompileIdl
from processes import LONG, until
from servers import Authority, serving

pytestmark = pytest.mark.usefixtures("no_modules_here")

#: Tells where it runs, and waits for a file.
FAR = r"""
Module far;
Globals {
    #include <fcntl.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <unistd.h>
static void wait_for(const char *log, const char *gate, long n)
{
    char line[256], *node = getenv("SLURMD_NODENAME");
    int file = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    int length = snprintf(line, sizeof line, "%ld %d %s\n", n, getpid(), node ? node : "-");
    if (write(file, line, length) != length) abort();
    close(file);
    while (access(gate, F_OK)) usleep(1000);
}
}
Define once(IN string log, IN string gate, IN long n, OUT long r[1])
    { wait_for(log, gate, n); *r = n; }
Define again(IN string log, IN string gate, IN long n, OUT long r[1])
    Idempotent
    { wait_for(log, gate, n); *r = n; }
"""

#: A launcher that starts agents on this machine, whatever their host is called: docs/launchers.md.
LAUNCHER = f"""
import subprocess, sys, threading
agents = {{}}
def wait(number, agent):
    agent.wait()
    print("ended", number, "with status", agent.returncode, flush=True)
for line in sys.stdin:
    match line.split():
        case ["start", number, _, ticket]:
            agent = subprocess.Popen([{str(PROGRAM)!r}, "agent"], stdin=subprocess.PIPE, text=True)
            agent.stdin.write(ticket + "\\n")
            agent.stdin.flush()
            agents[number] = agent
            print("started", number, flush=True)
            threading.Thread(target=wait, args=(number, agent)).start()
        case ["stop", number]:
            agents[number].terminate()
        case ["end"]:
            break
for agent in agents.values():
    agent.stdin.close()
"""


@pytest.fixture
def far(compile_idl: CompileIdl) -> Path:
    return compile_idl(FAR)


def behind(hosts: Path, module: Path) -> str:
    """Tables of a server whose workers are all on hosts."""
    return f"[workers]\ncount = 0\nconfig = '{hosts}'\n[modules]\nfiles = ['{module}']\n"


class Work:
    """Calls of `far`."""

    def __init__(self, grid: gridrpc.Grid, folder: Path) -> None:
        self._grid, self.log, self.gate = grid, folder / "log", folder / "gate"

    def submit(self, number: int, function: str = "once") -> gridrpc.Call[list[int]]:
        return self._grid.submit(f"far/{function}", str(self.log), str(self.gate), number)

    def began(self) -> list[tuple[int, int, str]]:
        """Number, process and node of each call that has begun."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [(int(n), int(pid), node) for n, pid, node in map(str.split, lines)]

    def agent(self, number: int) -> psutil.Process:
        """The agent of the host that ran this call last."""
        pid = next(pid for n, pid, _ in reversed(self.began()) if n == number)
        parents = psutil.Process(pid).parents()
        return next(parent for parent in parents if parent.cmdline()[1:2] == ["agent"])


@pytest.mark.parametrize("launcher", ["local", "program"])
def test_hosts_that_are_lost(tmp_path: Path, far: Path, launcher: str) -> None:
    (tmp_path / "launcher.py").write_text(LAUNCHER)
    command = f"command = ['{sys.executable}', '{tmp_path / 'launcher.py'}']\n"
    (tmp_path / "grid.toml").write_text(
        f"[server.pair]\nlauncher = '{launcher}'\nhosts = ['one', 'two']\nworkers = 1\n"
        f"staging = '{tmp_path / 'staging'}'\n" + (command if launcher == "program" else "")
    )
    with (
        serving(tmp_path, behind(tmp_path / "grid.toml", far)) as server,
        server.client() as grid,
    ):
        work = Work(grid, tmp_path)
        again, once = work.submit(0, "again"), work.submit(1)
        assert until(lambda: len(work.began()) == 2)
        waiting = [work.submit(number) for number in range(2, 8)]
        work.agent(1).kill()
        with pytest.raises(gridrpc.WorkerLost):
            once.result(LONG)
        # The other host continues, and is lost when a new agent has replaced the first.
        assert until(lambda: len(work.began()) == 3)
        work.agent(0).kill()
        assert until(lambda: Counter(n for n, _, _ in work.began())[0] == 2)
        work.gate.touch()
        assert again.result(LONG) == [0]
        assert [int(call.result(LONG)[0]) for call in waiting] == list(range(2, 8))
        counts = Counter(n for n, _, _ in work.began())
        # What had begun on a lost host began twice, if it may; nothing else did.
        assert counts == {**dict.fromkeys(range(8), 1), 0: 2}
    outcomes = Counter(record["outcome"] for record in server.audit("end"))
    assert outcomes == {"ok": 7, "WorkerLost": 1}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Two nodes of two processors."""
    with slurm_of(2, 2) as slurm:
        yield Site(slurm, tmp_path_factory.mktemp("shared"))


@pytest.mark.usefixtures("no_jobs_are_left")
def test_workers_that_slurm_starts(site: Site, tmp_path: Path, far: Path) -> None:
    (tmp_path / "grid.toml").write_text(site.server(nodes=2, workers=1))
    authority = Authority(tmp_path)
    ann = authority.user("ann")
    with serving(tmp_path, behind(tmp_path / "grid.toml", far), authority) as server:
        with server.client(ann) as grid:
            work = Work(grid, tmp_path)
            calls = [work.submit(number) for number in range(2)]
            assert until(lambda: len(work.began()) == 2)
            # Each in a job of its own, which Slurm may start on either node.
            assert {node for _, _, node in work.began()} <= {"n1", "n2"}
            assert len({pid for _, pid, _ in work.began()}) == 2
            assert len(site.running()) == 2
            work.gate.touch()
            assert [int(call.result(LONG)[0]) for call in calls] == [0, 1]
        assert server.stop() == 0


@pytest.mark.usefixtures("no_jobs_are_left")
def test_nodes_that_start_with_the_first_call_and_end_when_idle(
    site: Site, tmp_path: Path, far: Path
) -> None:
    (tmp_path / "grid.toml").write_text(site.server(nodes="0-2", workers=1, idle=1))
    with serving(tmp_path, behind(tmp_path / "grid.toml", far)) as server:
        with server.client() as grid:
            work = Work(grid, tmp_path)
            assert not site.slurm.jobs()
            # As many nodes as there is work for, not only one.
            calls = [work.submit(number) for number in range(3)]
            assert until(lambda: len(work.began()) == 2)
            assert len(site.running()) == 2
            work.gate.touch()
            assert [int(call.result(LONG)[0]) for call in calls] == [0, 1, 2]
            assert until(lambda: not site.slurm.jobs())
            # The server asks again.
            assert list(work.submit(3).result(LONG)) == [3]
        with server.client() as grid:
            assert list(Work(grid, tmp_path).submit(4).result(LONG)) == [4]


@pytest.mark.usefixtures("no_jobs_are_left")
def test_a_client_leaves_a_call_that_waits_for_a_node(
    site: Site, tmp_path: Path, far: Path
) -> None:
    (tmp_path / "grid.toml").write_text(site.server(nodes="0-2", workers=1, idle=1))
    site.hold()
    try:
        with serving(tmp_path, behind(tmp_path / "grid.toml", far)) as server:
            with server.client() as grid:
                call = Work(grid, tmp_path).submit(0)
                assert until(lambda: len(site.queued()) == 1)
                assert server.state_of("pools")[0]["queued"] == 1
                assert call.cancel()
            assert until(lambda: not site.slurm.jobs())
    finally:
        site.resume()


@pytest.mark.usefixtures("no_jobs_are_left")
def test_slurm_refuses_the_nodes_of_a_server(site: Site, tmp_path: Path, far: Path) -> None:
    (tmp_path / "grid.toml").write_text(site.server(nodes="0-2", workers=1, partition="none"))
    with (
        serving(tmp_path, behind(tmp_path / "grid.toml", far)) as server,
        server.client() as grid,
    ):
        work = Work(grid, tmp_path)
        for number, function in enumerate(["once", "again", "once"]):
            with pytest.raises(gridrpc.WorkerLost, match="Slurm has refused the job"):
                work.submit(number, function).result(LONG)
    outcomes = Counter(record["outcome"] for record in server.audit("end"))
    assert outcomes["NoWorkers"] >= 1

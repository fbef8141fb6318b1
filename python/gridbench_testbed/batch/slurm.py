"""A Slurm of its own on this machine: some nodes of many declared processors each.

The rig starts munged, slurmctld and a slurmd for each node, on free ports of the loopback device,
with all files in one temporary folder. It needs neither systemd nor control groups nor the
system's own munge, and several rigs do not know of each other. The nodes share everything of this
machine, its processors and host name too; a job finds its node in SLURMD_NODENAME.

    with Slurm(nodes=4, processors=32) as slurm:
        slurm.run("srun", "--nodes=4", "true")
"""

from __future__ import annotations

import contextlib
import getpass
import re
import secrets
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Self

from gridbench_testbed.batch import BatchSystem
from gridbench_testbed.daemons import free_ports, lacking

_CONFIG = """\
ClusterName=grid
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
CryptoType=crypto/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={state}
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/%n.log
SlurmctldPort={port}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
MaxJobCount=50000
MaxArraySize=20001
KillWait=2
MinJobAge=300
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldTimeout=30
SlurmdTimeout=60
InactiveLimit=0
{nodes}
PartitionName=batch Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
PartitionName=small Nodes=ALL MaxTime=10 MaxNodes=1 State=UP
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP OverSubscribe=NO PriorityTier=9
PartitionName=closed Nodes=ALL State=DOWN
"""


def why_not() -> str:
    """Why there can be no rig here; empty if there can."""
    program = lacking("munged", "slurmctld", "slurmd", "sbatch", "setpriv")
    return f"`{program}` is not installed: scripts/ensure-slurm does that" if program else ""


class Slurm(BatchSystem):
    """A Slurm.

    Nodes are called n1, n2 and so on. Partitions: `batch`, the default; `small`, of one node and
    ten minutes for a job; `urgent`, whose jobs take nodes from those of the others; `closed`, which
    starts none.
    """

    why_not = staticmethod(why_not)

    def __init__(self, nodes: int = 4, processors: int = 32, state: Path | None = None) -> None:
        """`processors`: of each node, as Slurm is told.

        `state`: where slurmctld keeps jobs, if not in `folder`.
        """
        super().__init__("slurm")
        self._state_folder = state or self.folder / "state"
        self.nodes = [f"n{number}" for number in range(1, nodes + 1)]
        """The names of its nodes."""
        self.processors = processors
        self.variables = {"SLURM_CONF": str(self.folder / "slurm.conf")}
        try:
            self._make()
        except BaseException:
            self.close()
            raise

    @classmethod
    def of(cls, nodes: int, processors: int) -> Self:
        """One that runs jobs on so many nodes, with so many processors each."""
        return cls(nodes=nodes, processors=processors)

    @property
    def version(self) -> str:
        """Of its programs."""
        return self.run("sbatch", "--version").split()[-1]

    def jobs(self) -> list[str]:
        """The jobs that wait or run, as `12 RUNNING n1`; each task of an array is one."""
        return self.run("squeue", "--noheader", "--array", "--format=%i %T %N").splitlines()

    def cancel_all(self) -> None:
        """Cancel all jobs, and wait until they are gone."""
        self.run("scancel", "--quiet", f"--user={getpass.getuser()}")
        self._until(lambda: not self.jobs(), "jobs do not end")

    def hold(self, node: str) -> None:
        """Have a node take no more jobs."""
        self.run("scontrol", "update", f"nodename={node}", "state=drain", "reason=tests")

    def fail(self, node: str) -> None:
        """Have Slurm take a node for down: its jobs end as those of a node that has failed."""
        self.run("scontrol", "update", f"nodename={node}", "state=down", "reason=tests")

    def resume(self, node: str) -> None:
        """Undo `hold` and `fail`."""

        def is_back() -> bool:
            if self._state(node) in ("idle", "mix", "alloc"):
                return True
            # While its jobs end, and when it has come back by itself, it cannot be told.
            with contextlib.suppress(RuntimeError):
                self.run("scontrol", "update", f"nodename={node}", "state=resume")
            return False

        self._until(is_back, f"{node} is not back")

    def stop_controller(self) -> None:
        """End slurmctld: commands get no answer, jobs go on."""
        self._end("slurmctld")

    def start_controller(self) -> None:
        """Start slurmctld, after `stop_controller`."""
        self._start("slurmctld", "slurmctld", "-D")
        self._until(self._answers, "slurmctld does not answer")

    def frozen_controller(self) -> AbstractContextManager[None]:
        """Have slurmctld hang: commands wait for an answer, jobs go on."""
        return self._frozen(self._daemons["slurmctld"].pid)

    @contextlib.contextmanager
    def changed(self, name: str, value: str) -> Iterator[None]:
        """Have slurmctld run with another value of a setting in slurm.conf; it is started anew."""
        file = self.folder / "slurm.conf"
        usual = file.read_text()
        other = re.sub(rf"^{name}=.*$", f"{name}={value}", usual, flags=re.MULTILINE)
        try:
            self._restarted(other)
            yield
        finally:
            self._restarted(usual)

    def _restarted(self, config: str) -> None:
        self.stop_controller()
        (self.folder / "slurm.conf").write_text(config)
        self.start_controller()

    def stop_node(self, node: str) -> None:
        """End a node's slurmd: what runs there goes on."""
        self._end(node)

    def start_node(self, node: str) -> None:
        """Start a node's slurmd, after `stop_node`."""
        self._start(node, "slurmd", "-D", "-N", node)

    def spool(self, node: str) -> Path:
        """Where a node's slurmd keeps job scripts."""
        return self.folder / f"spool.{node}"

    def _make(self) -> None:
        self._state_folder.mkdir(exist_ok=True)
        key = self.folder / "munge.key"
        key.touch(0o600)
        key.write_bytes(secrets.token_bytes(1024))
        host = socket.gethostname().split(".")[0]
        ports = free_ports(len(self.nodes) + 1)
        lines = [
            f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} "
            f"CPUs={self.processors} RealMemory=2000 State=UNKNOWN"
            for node, port in zip(self.nodes, ports[1:], strict=True)
        ]
        config = _CONFIG.format(
            host=host, folder=self.folder, user=getpass.getuser(), port=ports[0],
            nodes="\n".join(lines), state=self._state_folder,
        )  # fmt: skip
        (self.folder / "slurm.conf").write_text(config)
        parts = {"socket": "munge.socket", "pid-file": "munge.pid", "log-file": "log/munge.log"}
        parts |= {"seed-file": "munge.seed", "key-file": "munge.key"}
        files = [f"--{option}={self.folder / name}" for option, name in parts.items()]
        # A folder in /tmp is one that others can write to, in the eyes of munged.
        self._start("munged", "munged", "--foreground", "--force", *files)
        self._until((self.folder / "munge.socket").exists, "munged does not answer")
        self.start_controller()
        for node in self.nodes:
            self.start_node(node)
        idle = dict.fromkeys(self.nodes, "idle")
        self._until(lambda: {node: self._state(node) for node in idle} == idle, "nodes are not up")

    def _answers(self) -> bool:
        try:
            return "UP" in self.run("scontrol", "ping")
        except RuntimeError:
            return False

    def _state(self, node: str) -> str:
        """A node's state in one word, without the signs behind it."""
        said = self.run(
            "sinfo", "--noheader", f"--nodes={node}", "--format=%t", "--partition=batch"
        )
        return re.sub(r"\W", "", said)

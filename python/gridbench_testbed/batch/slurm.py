"""A private Slurm on this machine: some nodes with many declared processors each.

The rig starts munged, slurmctld and a slurmd for each node, on free ports of the loopback device,
with all files in one temporary folder. It needs no systemd, control groups or system munge, and
several rigs are independent. The nodes share this machine with its processors and host name; a job
finds its node in SLURMD_NODENAME.

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
    """Why Slurm cannot start here; empty if it can."""
    program = lacking("munged", "slurmctld", "slurmd", "sbatch", "setpriv")
    return f"`{program}` is not installed: scripts/ensure-slurm does that" if program else ""


class Slurm(BatchSystem):
    """A Slurm.

    Nodes are n1, n2 and so on. Partitions: `batch`, the default; `small`, with one node and ten
    minutes per job; `urgent`, which preempts jobs of others; `closed`, which starts none.
    """

    why_not = staticmethod(why_not)

    def __init__(
        self,
        nodes: int = 4,
        processors: int = 32,
        state: Path | None = None,
        namespace: Path | None = None,
    ) -> None:
        """`processors`: declared, of each node. `state`: slurmctld's folder, if not in `folder`.
        `namespace`: the network namespace that it runs in."""
        super().__init__("slurm", namespace=namespace)
        self._state_folder = state or self.folder / "state"
        self.nodes = [f"n{number}" for number in range(1, nodes + 1)]
        """The names of its nodes."""
        self.processors = processors
        self.variables = {"SLURM_CONF": str(self.folder / "slurm.conf")}
        with self._making():
            self._make()

    @classmethod
    def of(cls, nodes: int, processors: int) -> Self:
        """One that runs jobs on so many nodes, with so many processors each."""
        return cls(nodes=nodes, processors=processors)

    @property
    def version(self) -> str:
        """Of its programs."""
        return self.run("sbatch", "--version").split()[-1]

    def jobs(self) -> list[str]:
        """Waiting and running jobs, as `12 RUNNING n1`, with each task of an array."""
        return self.run("squeue", "--noheader", "--array", "--format=%i %T %N").splitlines()

    def cancel_all(self) -> None:
        """Cancel all jobs, and wait for their end."""
        self.run("scancel", "--quiet", f"--user={getpass.getuser()}")
        self._until(lambda: not self.jobs(), "jobs do not end")

    def hold(self, node: str) -> None:
        """Drain a node."""
        self.run("scontrol", "update", f"nodename={node}", "state=drain", "reason=tests")

    def fail(self, node: str) -> None:
        """Set a node down: its jobs end as after a failure."""
        self.run("scontrol", "update", f"nodename={node}", "state=down", "reason=tests")

    def resume(self, node: str) -> None:
        """Undo `hold` and `fail`."""

        def is_back() -> bool:
            if self._state(node) in ("idle", "mix", "alloc"):
                return True
            # Fails while its jobs end, and after it has returned by itself.
            with contextlib.suppress(RuntimeError):
                self.run("scontrol", "update", f"nodename={node}", "state=resume")
            return False

        self._until(is_back, f"{node} is not back")

    def stop_controller(self) -> None:
        """Stop slurmctld: commands get no answer, jobs continue."""
        self._end("slurmctld")

    def start_controller(self) -> None:
        """Start slurmctld, after `stop_controller`."""
        self._start("slurmctld", "slurmctld", "-D")
        self._until(self._answers, "slurmctld does not answer")

    def frozen_controller(self) -> AbstractContextManager[None]:
        """Freeze slurmctld: commands wait for an answer, jobs continue."""
        return self._frozen(self._daemons["slurmctld"].pid)

    @contextlib.contextmanager
    def changed(self, name: str, value: str) -> Iterator[None]:
        """Restart slurmctld with another value of a setting in slurm.conf."""
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
        """Stop a node's slurmd: its jobs continue."""
        self._end(node)

    def start_node(self, node: str) -> None:
        """Start a node's slurmd, after `stop_node`."""
        self._start(node, "slurmd", "-D", "-N", node)

    def spool(self, node: str) -> Path:
        """The folder of a node's job scripts."""
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
        # Required, as munged considers folders in /tmp writable by others.
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
        """A node's state in one word, without flags."""
        said = self.run(
            "sinfo", "--noheader", f"--nodes={node}", "--format=%t", "--partition=batch"
        )
        return re.sub(r"\W", "", said)

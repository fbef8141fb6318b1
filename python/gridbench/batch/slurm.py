"""A Slurm of its own on this machine: some nodes of many declared processors each.

The rig starts munged, slurmctld and a slurmd for each node, on free ports of the loopback device,
with all files in one temporary folder. It needs neither systemd nor control groups nor the
system's own munge, and several rigs do not know of each other. The nodes share everything of this
machine, its processors and host name too; a job finds its node in SLURMD_NODENAME.

    with Slurm(nodes=4, processors=32) as slurm:
        slurm.run("srun", "--nodes=4", "true")
"""

from __future__ import annotations

import atexit
import contextlib
import getpass
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

_PATIENCE = 30.0  # seconds for what takes milliseconds
_MARK = "GRIDBENCH_SLURM"
"""The variable that tells the daemons of a rig, and what they start, from all other processes."""

_CONFIG = """\
ClusterName=grid
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
CryptoType=crypto/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
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
SlurmctldTimeout=30
SlurmdTimeout=60
InactiveLimit=0
{nodes}
PartitionName=batch Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
PartitionName=small Nodes=ALL MaxTime=10 MaxNodes=1 State=UP
PartitionName=closed Nodes=ALL State=DOWN
"""


def why_not() -> str:
    """Why there can be no rig here; empty if there can."""
    for program in ("munged", "slurmctld", "slurmd", "sbatch", "setpriv"):
        if shutil.which(program, path=_path()) is None:
            return f"`{program}` is not installed: scripts/ensure-slurm does that"
    return ""


def _path() -> str:
    """Daemons are in folders that not everybody's PATH has."""
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


class Slurm:
    """While open, there is a Slurm for commands with the variables of `environment`.

    Nodes are called n1, n2 and so on. Partitions: `batch`, the default; `small`, of one node and
    ten minutes for a job; `closed`, which starts none.
    """

    def __init__(self, nodes: int = 4, processors: int = 32) -> None:
        """`processors`: of each node, as Slurm is told."""
        self.folder = Path(tempfile.mkdtemp(prefix=f"gr{os.getpid()}-slurm-"))
        """All its files: log/ has what the daemons write."""
        self.nodes = [f"n{number}" for number in range(1, nodes + 1)]
        """The names of its nodes."""
        self.processors = processors
        self.variables = {"SLURM_CONF": str(self.folder / "slurm.conf")}
        """What programs need in their environment to use it."""
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._closed = False
        atexit.register(self.close)
        try:
            self._make()
        except BaseException:
            self.close()
            raise

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a command that uses it."""
        return {**os.environ, "PATH": _path(), **self.variables}

    def run(self, *command: str) -> str:
        """Run one of Slurm's commands; what it has printed."""
        ran = subprocess.run(
            command, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=_PATIENCE, check=False,
        )  # fmt: skip
        if ran.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {ran.returncode}: {ran.stderr.strip()}")
        return ran.stdout

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
        self._end("slurmctld", signal.SIGTERM)

    def start_controller(self) -> None:
        """Start slurmctld, after `stop_controller`."""
        self._start("slurmctld", "slurmctld", "-D")
        self._until(self._answers, "slurmctld does not answer")

    def close(self) -> None:
        """End all jobs and daemons, and remove the files; may be called again."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        try:
            if "slurmctld" in self._daemons:
                with contextlib.suppress(RuntimeError, TimeoutError, subprocess.TimeoutExpired):
                    self.cancel_all()
        finally:
            for name in reversed(list(self._daemons)):
                self._end(name, signal.SIGTERM)
            # What looks after a job's processes outlives slurmd.
            for pid in self._marked():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Slurm:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _make(self) -> None:
        (self.folder / "log").mkdir()
        (self.folder / "state").mkdir()
        # Slurm takes an authentication that everybody can reach.
        self.folder.chmod(0o755)
        key = self.folder / "munge.key"
        key.touch(0o600)
        key.write_bytes(secrets.token_bytes(1024))
        host = socket.gethostname().split(".")[0]
        ports = _free_ports(len(self.nodes) + 1)
        lines = [
            f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} "
            f"CPUs={self.processors} RealMemory=2000 State=UNKNOWN"
            for node, port in zip(self.nodes, ports[1:], strict=True)
        ]
        config = _CONFIG.format(
            host=host, folder=self.folder, user=getpass.getuser(), port=ports[0],
            nodes="\n".join(lines),
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
            self._start(node, "slurmd", "-D", "-N", node)
        idle = dict.fromkeys(self.nodes, "idle")
        self._until(lambda: {node: self._state(node) for node in idle} == idle, "nodes are not up")

    def _start(self, name: str, program: str, *arguments: str) -> None:
        path = shutil.which(program, path=_path()) or program
        with (self.folder / "log" / f"{name}.out").open("ab") as log:
            self._daemons[name] = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", path, *arguments], cwd="/",
                env={**self.environment, _MARK: str(self.folder)}, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def _end(self, name: str, number: signal.Signals) -> None:
        daemon = self._daemons.pop(name)
        daemon.send_signal(number)
        try:
            daemon.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()

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

    def _marked(self) -> list[int]:
        """What the daemons have left."""
        mark = f"{_MARK}={self.folder}".encode()
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    found.append(int(process.name))
        return found

    def _until(self, condition: Callable[[], object], what: str) -> None:
        end = time.monotonic() + _PATIENCE
        while not condition():
            for name, daemon in self._daemons.items():
                if daemon.poll() is not None:
                    raise RuntimeError(f"{name} has ended: {self._log()}")
            if time.monotonic() > end:
                raise TimeoutError(f"{what}: {self._log()}")
            time.sleep(0.02)

    def _log(self) -> str:
        """The last of what the daemons have written."""
        logs = sorted((self.folder / "log").iterdir())
        return "\n".join(f"{log.name}: {log.read_text(errors='replace')[-1000:]}" for log in logs)


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens at, all different."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]

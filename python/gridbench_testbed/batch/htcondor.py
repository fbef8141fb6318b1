"""A private HTCondor on this machine: a pool of one machine with many declared slots.

The rig starts condor_master, which starts all other daemons, on one free port of the loopback
device, with all files in one temporary folder. Programs are those unpacked by
scripts/ensure-htcondor. Several pools are independent.

HTCondor refuses jobs of root. For a pool of root, daemons and commands run in user namespaces that
map root to another user id, with the same rights and files.

    with HTCondor(slots=100) as htcondor:
        htcondor.run("condor_submit", "-terse", "executable=/bin/true", "-queue", "1")
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Self

from gridbench_testbed.batch import BatchSystem
from gridbench_testbed.daemons import free_ports, lacking, name_of

PLACE = "GRIDBENCH_HTCONDOR"
"""Environment variable with the folder of the unpacked HTCondor."""

_OTHER = "1"
"""User and group id of root in the namespaces of a pool: `daemon`, on all systems."""
_STATES = ("unexpanded", "idle", "running", "removed", "completed", "held", "output", "suspended")

_CONFIG = """\
RELEASE_DIR = {place}/usr
BIN = $(RELEASE_DIR)/bin
SBIN = $(RELEASE_DIR)/sbin
LIB = $(RELEASE_DIR)/lib
LIBEXEC = $(RELEASE_DIR)/libexec/condor
SHARE = $(RELEASE_DIR)/share/condor
LOCAL_DIR = {folder}
LOG = {folder}/log
SPOOL = {spool}
EXECUTE = {folder}/execute
RUN = {folder}/run
LOCK = {folder}/run
DAEMON_SOCKET_DIR = {folder}/run
LOCAL_CONFIG_FILE = {folder}/changed.conf
REQUIRE_LOCAL_CONFIG_FILE = FALSE
LOCAL_CONFIG_DIR =
DAEMON_LIST = MASTER, SHARED_PORT, COLLECTOR, NEGOTIATOR, SCHEDD, STARTD
CONDOR_HOST = 127.0.0.1
COLLECTOR_HOST = 127.0.0.1:{port}
SHARED_PORT_PORT = {port}
USE_SHARED_PORT = TRUE
NETWORK_INTERFACE = 127.0.0.1
BIND_ALL_INTERFACES = FALSE
ENABLE_IPV6 = FALSE
NO_DNS = TRUE
DEFAULT_DOMAIN_NAME = gridbench
UID_DOMAIN = gridbench
FILESYSTEM_DOMAIN = gridbench
TRUST_UID_DOMAIN = TRUE
CONDOR_ADMIN =
MAIL = /bin/true
SEC_DEFAULT_AUTHENTICATION = REQUIRED
SEC_DEFAULT_AUTHENTICATION_METHODS = FS
SEC_DEFAULT_ENCRYPTION = OPTIONAL
SEC_DEFAULT_INTEGRITY = OPTIONAL
ALLOW_READ = {user}@*
ALLOW_WRITE = {user}@*
ALLOW_DAEMON = {user}@*
ALLOW_NEGOTIATOR = {user}@*
ALLOW_ADMINISTRATOR = {user}@*
ALLOW_CLIENT = *
NUM_CPUS = {slots}
MEMORY = {memory}
DISK = 100000000
NUM_SLOTS = 1
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_1 = 100%
SLOT_TYPE_1_PARTITIONABLE = TRUE
CLAIM_PARTITIONABLE_LEFTOVERS = TRUE
JOB_DEFAULT_REQUESTCPUS = 1
JOB_DEFAULT_REQUESTMEMORY = 16
JOB_DEFAULT_REQUESTDISK = 1024
START = TRUE
SUSPEND = FALSE
PREEMPT = FALSE
KILL = FALSE
WANT_SUSPEND = FALSE
WANT_VACATE = FALSE
MAXJOBRETIREMENTTIME = 0
RUNBENCHMARKS = FALSE
ENABLE_URL_TRANSFERS = FALSE
DOCKER =
SINGULARITY =
STARTD_ENFORCE_DISK_LIMITS = FALSE
NEGOTIATOR_INTERVAL = 1
NEGOTIATOR_CYCLE_DELAY = 1
NEGOTIATOR_MIN_INTERVAL = 1
SCHEDD_INTERVAL = 2
SCHEDD_MIN_INTERVAL = 1
UPDATE_INTERVAL = 2
JOB_START_COUNT = 50
JOB_START_DELAY = 0
JOB_STOP_COUNT = 100
JOB_STOP_DELAY = 0
MAX_JOBS_RUNNING = 10000
PERIODIC_EXPR_INTERVAL = 5
MACHINE_MAX_VACATE_TIME = 2
JOB_MAX_VACATE_TIME = 2
KILLING_TIMEOUT = 2
SHUTDOWN_FAST_TIMEOUT = 10
MASTER_BACKOFF_CONSTANT = 1
MASTER_BACKOFF_CEILING = 4
SHUTDOWN_GRACEFUL_TIMEOUT = 10
BASE_CGROUP =
CGROUP_MEMORY_LIMIT_POLICY = none
USE_PID_NAMESPACES = FALSE
DISCARD_SESSION_KEYRING_ON_STARTUP = FALSE
MOUNT_UNDER_SCRATCH =
MOUNT_PRIVATE_DEV_SHM = FALSE
"""


def place() -> Path:
    """The folder of scripts/ensure-htcondor."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get(PLACE) or Path(cache, "gridbench", "htcondor"))


def why_not() -> str:
    """Why HTCondor cannot start here; empty if it can."""
    program = lacking("setpriv", "unshare")
    if program:
        return f"`{program}` is not installed: it is part of util-linux"
    if not (place() / "complete").exists():
        return "HTCondor is not installed: scripts/ensure-htcondor does that"
    return ""


class HTCondor(BatchSystem):
    """A pool of HTCondor, whose machine gives each job the processors that it requests."""

    why_not = staticmethod(why_not)

    def __init__(self, slots: int = 400, spool: Path | None = None) -> None:
        """`slots`: declared processors. `spool`: condor_schedd's folder, by default in `folder`."""
        super().__init__("htcondor")
        self.slots = slots
        self._spool = spool or self.folder / "spool"
        self._place = place()
        self.variables = {
            "CONDOR_CONFIG": str(self.folder / "condor_config"),
            "PATH": f"{self.folder / 'bin'}:{super().environment['PATH']}",
        }
        with self._making():
            self._make()

    @classmethod
    def of(cls, nodes: int, processors: int) -> Self:
        """One that runs jobs on so many processors; all nodes are its one host."""
        return cls(slots=nodes * processors)

    @property
    def version(self) -> str:
        """Of its programs."""
        return self.run("condor_version").split()[1]

    def jobs(self) -> list[str]:
        """Unfinished jobs, as `12.0 running`, `idle`, `held` and so on."""
        columns = ("ClusterId", "ProcId", "JobStatus")
        said = self.run("condor_q", "-allusers", "-autoformat", *columns)
        found = []
        for line in said.splitlines():
            cluster, number, state = line.split()
            if _STATES[int(state)] not in ("completed", "removed"):
                found.append(f"{cluster}.{number} {_STATES[int(state)]}")
        return found

    def cancel_all(self) -> None:
        """Cancel all jobs, and wait for their end and that of their processes."""
        with contextlib.suppress(RuntimeError):  # there are none
            self.run("condor_rm", "-all")
        self._until(lambda: not self.jobs() and not self._starters(), "jobs do not end")

    def hold(self) -> None:
        """Stop the machine from accepting jobs."""
        self._change("START = FALSE\n")

    def resume(self) -> None:
        """Undo `hold`."""
        self._change("")

    def stop_scheduler(self) -> None:
        """Stop condor_schedd: commands get no answer, jobs continue."""
        self.run("condor_off", "-fast", "-daemon", "schedd")
        self._until(lambda: not self._answers(), "condor_schedd does not end")

    def start_scheduler(self) -> None:
        """Start condor_schedd, after `stop_scheduler`."""
        self.run("condor_on", "-daemon", "schedd")
        self._until(self._answers, "condor_schedd does not answer")

    def frozen_scheduler(self) -> AbstractContextManager[None]:
        """Freeze condor_schedd: commands wait for an answer, jobs continue."""
        (pid,) = self._pids("condor_schedd")
        return self._frozen(pid)

    def stop_machine(self, how: str) -> None:
        """Stop condor_startd. `how`: `-fast` with all jobs, `-peaceful` after they have ended."""
        self.run("condor_off", how, "-daemon", "startd")

    def start_machine(self) -> None:
        """Start condor_startd, after `stop_machine`."""
        self._until(lambda: not self._pids("condor_startd"), "condor_startd does not end")
        self.run("condor_on", "-daemon", "startd")
        self._until(lambda: self._pids("condor_startd"), "condor_startd does not start")

    @contextlib.contextmanager
    def policy(self, name: str, value: str) -> Iterator[None]:
        """Change a setting of condor_schedd, such as MAX_JOBS_PER_OWNER."""
        before = self.run("condor_config_val", name).strip()
        self._set_policy(name, value)
        try:
            yield
        finally:
            self._set_policy(name, before)

    def _set_policy(self, name: str, value: str) -> None:
        (self.folder / "changed.conf").write_text(f"{name} = {value}\n")
        self.run("condor_reconfig", "-daemon", "schedd")
        known = ("condor_config_val", "-schedd", name)
        self._until(lambda: self.run(*known).strip() == value, "condor_schedd is not told")

    def _make(self) -> None:
        self._spool.mkdir(exist_ok=True)
        for name in ("execute", "run", "bin"):
            (self.folder / name).mkdir()
        other = ["unshare", "--user", f"--map-user={_OTHER}", f"--map-group={_OTHER}", "--"]
        as_other = other if os.geteuid() == 0 else []
        for program in (self._place / "usr" / "bin").glob("condor_*"):
            self._command(program.name, [*as_other, str(program)])
        for name in ("condor_off", "condor_on", "condor_reconfig", "condor_restart"):
            self._command(name, [*as_other, str(self._place / "usr" / "sbin" / name)])
        config = _CONFIG.format(
            place=self._place, folder=self.folder, spool=self._spool,
            port=free_ports(1)[0], slots=self.slots, memory=self.slots * 250,
            user=self.run(*as_other, "id", "--user", "--name").strip(),
        )  # fmt: skip
        (self.folder / "condor_config").write_text(config)
        master = str(self._place / "usr" / "sbin" / "condor_master")
        self._start("condor_master", *as_other, master, "-f")
        self._until(self._is_up, "the pool does not come up")

    def _command(self, name: str, command: list[str]) -> None:
        """Create a command in the PATH of this pool's users."""
        file = self.folder / "bin" / name
        file.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        file.chmod(0o755)

    def _change(self, settings: str) -> None:
        (self.folder / "changed.conf").write_text(settings)
        self.run("condor_reconfig", "-daemon", "startd")
        wanted = "FALSE" if settings else "TRUE"
        self._until(lambda: self._start_expression().upper() == wanted, "it is not told")

    def _start_expression(self) -> str:
        said = self.run(
            "condor_status", "-constraint", "PartitionableSlot", "-autoformat", "Start"
        ).split()
        return said[0] if said else ""

    def _is_up(self) -> bool:
        return self._answers() and bool(self._start_expression())

    def _answers(self) -> bool:
        try:
            self.run("condor_q", "-totals")
        except (RuntimeError, subprocess.TimeoutExpired):
            return False
        return True

    def _pids(self, name: str) -> list[int]:
        """The processes of a daemon of this pool."""
        return [pid for pid in self._marked() if name_of(pid) == name]

    def _starters(self) -> list[str]:
        """Slots that jobs have claimed."""
        return self.run("condor_status", "-claimed", "-autoformat", "Name").split()

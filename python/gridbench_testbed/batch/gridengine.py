"""A private Grid Engine on this machine: one host with many declared slots.

The rig starts sge_qmaster and sge_execd on free ports, with all files in one temporary folder,
beside the cell of the system's packages. Daemons and jobs run as root, who has to start it.

    with GridEngine(slots=100) as grid_engine:
        grid_engine.run("qsub", "-sync", "y", "-b", "y", "true")
"""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import ClassVar, Self

from gridbench_testbed.batch import BatchSystem
from gridbench_testbed.daemons import free_ports, lacking

_PROGRAMS = Path("/usr/lib/gridengine")
"""Debian's folder of programs that work without the system's cell."""
_SHARE = Path("/usr/share/gridengine")

_BOOTSTRAP = """\
admin_user none
default_domain none
ignore_fqdn true
spooling_method classic
spooling_lib libspoolc
spooling_params {spooling}
binary_path {programs}
qmaster_spool_dir {spool}
security_mode none
listener_threads 2
worker_threads 2
scheduler_threads 1
"""

_GLOBAL = """\
execd_spool_dir {folder}/spool/execd
mailer /bin/true
xterm /bin/true
load_sensor none
prolog none
epilog none
shell_start_mode posix_compliant
login_shells bash,sh
min_uid 0
min_gid 0
user_lists none
xuser_lists none
projects none
xprojects none
enforce_project false
enforce_user auto
load_report_time 00:00:01
max_unheard 00:05:00
reschedule_unknown 00:00:00
loglevel log_warning
administrator_mail none
set_token_cmd none
pag_cmd none
token_extend_time none
shepherd_cmd none
qmaster_params none
execd_params none
reporting_params accounting=true reporting=false flush_time=00:00:01 joblog=false \
sharelog=00:00:00
finished_jobs 100
gid_range 20000-21999
qlogin_command builtin
qlogin_daemon builtin
rlogin_command builtin
rlogin_daemon builtin
rsh_command builtin
rsh_daemon builtin
max_aj_instances 2000
max_aj_tasks 75000
max_u_jobs 0
max_jobs 0
auto_user_oticket 0
auto_user_fshare 0
auto_user_default_project none
auto_user_delete_time 86400
delegated_file_staging false
reprioritize 0
jsv_url none
jsv_allowed_mod ac,h,i,e,o,j,M,N,p,w
"""

_HOST = """\
hostname {host}
load_scaling NONE
complex_values NONE
user_lists NONE
xuser_lists NONE
projects NONE
xprojects NONE
usage_scaling NONE
report_variables NONE
"""

_PARALLEL = """\
pe_name {name}
slots 9999
user_lists NONE
xuser_lists NONE
start_proc_args /bin/true
stop_proc_args /bin/true
allocation_rule $fill_up
control_slaves TRUE
job_is_first_task FALSE
urgency_slots min
accounting_summary FALSE
qsort_args NONE
"""

_QUEUE = """\
qname {name}
hostlist @allhosts
seq_no 0
load_thresholds NONE
suspend_thresholds NONE
nsuspend 1
suspend_interval 00:05:00
priority 0
min_cpu_interval 00:05:00
processors UNDEFINED
qtype BATCH INTERACTIVE
ckpt_list NONE
pe_list {parallel}
rerun FALSE
slots {slots}
tmpdir /tmp
shell /bin/sh
prolog NONE
epilog NONE
shell_start_mode unix_behavior
starter_method NONE
suspend_method NONE
resume_method NONE
terminate_method NONE
notify 00:00:60
owner_list NONE
user_lists NONE
xuser_lists NONE
subordinate_list NONE
complex_values NONE
projects NONE
xprojects NONE
calendar NONE
initial_state {state}
"""
_LIMITS = ("rt", "cpu", "fsize", "data", "stack", "core", "rss", "vmem")

_SCHEDULER = {
    "schedule_interval": "0:0:1",
    "flush_submit_sec": "1",
    "flush_finish_sec": "1",
    "schedd_job_info": "true",
    "job_load_adjustments": "NONE",
}


def why_not() -> str:
    """Why Grid Engine cannot start here; empty if it can."""
    program = lacking("sge_qmaster", "sge_execd", "qsub", "setpriv")
    if program:
        return f"`{program}` is not installed: scripts/ensure-gridengine does that"
    return "" if os.geteuid() == 0 else "Grid Engine's daemons have to be started by root"


class GridEngine(BatchSystem):
    """A Grid Engine.

    Queues: `all.q`, and `closed.q`, which starts no jobs; the parallel environment is `mp`.
    """

    why_not = staticmethod(why_not)
    # It takes long to end, and its state is always on disk.
    _ends: ClassVar[Mapping[str, signal.Signals]] = {"sge_qmaster": signal.SIGKILL}

    def __init__(
        self, slots: int = 100, spool: Path | None = None, namespace: Path | None = None
    ) -> None:
        """`slots`: of the queue `all.q`. `spool`: sge_qmaster's folder, by default in `folder`.
        `namespace`: the network namespace that it runs in."""
        super().__init__("gridengine", namespace=namespace)
        self.slots = slots
        self._spool = spool or self.folder / "spool" / "qmaster"
        self._host = socket.gethostname().split(".")[0]
        master, execution = free_ports(2)
        self.variables = {
            "SGE_ROOT": str(self.folder / "root"),
            "SGE_CELL": "cell",
            "SGE_QMASTER_PORT": str(master),
            "SGE_EXECD_PORT": str(execution),
            "SGE_CLUSTER_NAME": "gridbench",
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
        return self.run("qstat", "-help").splitlines()[0].split()[-1]

    def jobs(self) -> list[str]:
        """Waiting and running jobs, as `12 r`, and tasks of arrays, as `12.3 qw`."""
        said = self.run("qstat", "-u", "*", "-g", "d")
        found = []
        for line in said.splitlines()[2:]:
            words = line.split()
            # Arrays have a further last column, and running jobs one for the queue.
            task = f".{words[-1]}" if len(words) > 8 + ("@" in line) else ""
            found.append(f"{words[0]}{task} {words[4]}")
        return found

    def cancel_all(self) -> None:
        """Cancel all jobs, and wait for their end."""
        if self.jobs():
            self.run("qdel", "-f", "-u", "*")
        self._until(lambda: not self.jobs(), "jobs do not end")

    def hold(self) -> None:
        """Disable the queue."""
        self.run("qmod", "-d", "all.q")

    def resume(self) -> None:
        """Undo `hold`."""
        self.run("qmod", "-e", "all.q")

    def stop_master(self) -> None:
        """Stop sge_qmaster: commands get no answer, jobs continue."""
        self._end("sge_qmaster")

    def start_master(self) -> None:
        """Start sge_qmaster, after `stop_master`."""
        self._start("sge_qmaster", str(_PROGRAMS / "sge_qmaster"))
        if "sge_execd" in self._daemons:
            # It has to end first, as it reports its end to sge_qmaster.
            self._daemons["sge_execd"] = self._daemons.pop("sge_execd")
        self._until(self._answers, "sge_qmaster does not answer")

    def frozen_master(self) -> AbstractContextManager[None]:
        """Freeze sge_qmaster: commands wait for an answer, jobs continue."""
        return self._frozen(self._daemons["sge_qmaster"].pid)

    def stop_host(self) -> None:
        """Stop sge_execd: its jobs continue."""
        self._end("sge_execd")

    def fail_host(self) -> None:
        """Kill sge_execd and all its jobs at once, as at a power failure."""
        daemon = self._daemons.pop("sge_execd")
        others = {daemon.pid for daemon in self._daemons.values()}
        off: set[int] = set()
        # Stop all before the first ends, so that none reports another's end.
        while running := set(self._marked()) - others - off:
            self._signal(running, signal.SIGSTOP)
            off |= running
        self._signal(off, signal.SIGKILL)
        daemon.wait()

    @staticmethod
    def _signal(pids: set[int], number: signal.Signals) -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def start_host(self) -> None:
        """Start sge_execd, after `stop_host` or `fail_host`."""
        self._start("sge_execd", str(_PROGRAMS / "sge_execd"))

    @contextlib.contextmanager
    def quota(self, limit: str) -> Iterator[None]:
        """Set a resource quota, such as `users * to slots=2`."""
        rule = f"{{\n name tests\n enabled TRUE\n limit {limit}\n}}\n"
        self.run("qconf", "-Arqs", self._file("quota", rule))
        try:
            yield
        finally:
            self.run("qconf", "-drqs", "tests")

    @contextlib.contextmanager
    def setting(self, name: str, value: str) -> Iterator[None]:
        """Change a value of the global configuration, such as `max_u_jobs`."""
        before = self.run("qconf", "-sconf", "global")
        after = re.sub(rf"(?m)^{name}\s.*$", f"{name} {value}", before)
        self._configure_global(after)
        try:
            yield
        finally:
            self._configure_global(before)

    def _configure_global(self, text: str) -> None:
        # The name of the file selects the configuration.
        (self.folder / "global").write_text(text)
        self.run("qconf", "-Mconf", str(self.folder / "global"))

    def _start(self, name: str, program: str, *arguments: str) -> None:
        # Stay in the foreground.
        self.variables["SGE_ND"] = "1"
        try:
            super()._start(name, program, *arguments)
        finally:
            del self.variables["SGE_ND"]

    def _make(self) -> None:
        common = self.folder / "root" / "cell" / "common"
        for place in (common, self._spool, self.folder / "spool" / "execd"):
            place.mkdir(parents=True, exist_ok=True)
        (self.folder / "root" / "util").symlink_to(_SHARE / "util")
        architecture = subprocess.run(
            [_SHARE / "util" / "arch"], capture_output=True, text=True, check=True
        )
        self.variables["SGE_ARCH"] = architecture.stdout.strip()
        # For the helper of `qrsh -inherit`.
        programs = self.folder / "root" / "utilbin" / self.variables["SGE_ARCH"]
        programs.parent.mkdir()
        programs.symlink_to(_PROGRAMS)
        spooling = f"{common};{self._spool}"
        (common / "bootstrap").write_text(
            _BOOTSTRAP.format(spooling=spooling, programs=_PROGRAMS, spool=self._spool)
        )
        (common / "act_qmaster").write_text(f"{self._host}\n")
        (common / "host_aliases").write_text(f"{self._host} localhost\n")
        known = _SHARE / "util" / "resources"
        settings = self._file("global", _GLOBAL.format(folder=self.folder))
        self.run(str(_PROGRAMS / "spoolinit"), "classic", "libspoolc", spooling, "init")
        for what, of in (
            ("configuration", settings),
            ("complexes", str(known / "centry")),
            ("usersets", str(known / "usersets")),
            ("managers", getpass.getuser()),
        ):
            self.run(str(_PROGRAMS / "spooldefaults"), what, of)
        self.start_master()
        self._configure()
        self._start("sge_execd", str(_PROGRAMS / "sge_execd"))
        self._until(self._is_up, "the queue does not come up")

    def _configure(self) -> None:
        self.run("qconf", "-as", self._host)
        self.run("qconf", "-Ae", self._file("host", _HOST.format(host=self._host)))
        group = f"group_name @allhosts\nhostlist {self._host}\n"
        self.run("qconf", "-Ahgrp", self._file("group", group))
        self.run("qconf", "-Ap", self._file("mp", _PARALLEL.format(name="mp")))
        limits = "".join(f"{kind}_{of} INFINITY\n" for of in _LIMITS for kind in "sh")
        for name, state in (("all.q", "default"), ("closed.q", "disabled")):
            queue = _QUEUE.format(name=name, parallel="mp", slots=self.slots, state=state)
            self.run("qconf", "-Aq", self._file(name, queue + limits))
        scheduler = self.run("qconf", "-ssconf")
        for key, value in _SCHEDULER.items():
            scheduler = re.sub(rf"(?m)^{key}\s.*$", f"{key} {value}", scheduler)
        self.run("qconf", "-Msconf", self._file("scheduler", scheduler))

    def _file(self, name: str, contents: str) -> str:
        file = self.folder / f"{name}.conf"
        file.write_text(contents)
        return str(file)

    def _answers(self) -> bool:
        try:
            return self._host in self.run("qconf", "-sh")
        except (RuntimeError, subprocess.TimeoutExpired):
            return False

    def _is_up(self) -> bool:
        """Whether the queue reports its load, and so is in a known state."""
        for line in self.run("qstat", "-f", "-q", "all.q").splitlines():
            words = line.split()
            if words and words[0].startswith("all.q@"):
                return len(words) == 5 and words[3] != "-NA-"
        return False

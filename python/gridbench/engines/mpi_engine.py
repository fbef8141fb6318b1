"""MPI: mpi4py.futures on Open MPI, which starts workers by MPI's process management.

Used as its manual recommends: an `MPIPoolExecutor` that spawns its workers from one process, with
out-of-band pickling, which does not copy arrays into the pickle. Settings of Open MPI allow more
processes than cores, and only the loopback interface. The executor cannot send data to every
worker, so shared data is an argument of each call.

After the loss of a process, MPI hangs or ends all processes. So this driver watches the workers:
when one ends, all open calls fail, and all later ones.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shlex
import signal
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, Future, InvalidStateError
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from gridbench.engines.base import Description
from gridbench.engines.functions import ExecutorEngine, NamespaceNode, one_node
from gridbench.process.children import children_of, end

_OPEN_MPI = {
    "OMPI_MCA_rmaps_base_oversubscribe": "1",  # more workers than cores
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_btl_tcp_if_include": "lo",
    "OMPI_MCA_oob_tcp_if_include": "lo",
}
_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
_PATIENCE = 2.0  # seconds for running tasks to end at `close`
_FAREWELL = 10.0  # seconds for workers to end after the executor


class MpiEngine(ExecutorEngine):
    """mpi4py.futures.MPIPoolExecutor with spawned workers."""

    name: ClassVar[str] = "mpi"
    takes_namespaces: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self._node: NamespaceNode | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._executor: Any = None
        self._library = "not started"
        self._manager: list[threading.Thread] = []
        self._open: set[Future[Any]] = set()
        self._lost = ""

    def describe(self) -> Description:
        """The version is that of mpi4py; the MPI library is a setting."""
        return Description(
            name=self.name,
            version=version("mpi4py"),
            configuration={
                "max_workers": self._workers,
                "use_pkl5": True,
                "library": self._library,
                **{key: os.environ.get(key, value) for key, value in _OPEN_MPI.items()},
                "shared_data": "argument of each call",
            },
        )

    def use_namespaces(self, namespaces: Sequence[str]) -> None:
        """Open MPI's daemon runs there, as on another host, and starts the workers."""
        self._node = one_node(self.name, namespaces)

    def start(self, workers: int) -> None:
        """Spawn the workers, in the executor's thread."""
        self._workers = workers
        if self._node is not None:
            os.environ.update(self._on_node(self._node, workers))
        for key, value in (_OPEN_MPI | (_AS_ROOT if os.geteuid() == 0 else {})).items():
            os.environ.setdefault(key, value)
        # MPI reads its settings at import.
        from mpi4py import MPI
        from mpi4py.futures import MPIPoolExecutor

        self._library = MPI.Get_library_version().split(",")[0]
        others = threading.enumerate()
        # Workers need not import the main module: it has no functions to call.
        self._executor = MPIPoolExecutor(max_workers=workers, use_pkl5=True, main=False)
        self._executor.Future = self._new_future  # for each call
        self._executor.bootup(wait=False)
        self._manager = [thread for thread in threading.enumerate() if thread not in others]
        threading.Thread(target=self._watch, args=(self._executor,), daemon=True).start()

    def _on_node(self, node: NamespaceNode, workers: int) -> dict[str, str]:
        """Settings for Open MPI: a command in place of ssh, and the network."""
        self._folder = tempfile.TemporaryDirectory(prefix="gridbench-mpi-")
        hosts, agent = Path(self._folder.name, "hosts"), Path(self._folder.name, "agent")
        hosts.write_text(f"{node.address} slots={workers}\n", encoding="ascii")
        # A host name of its own, or its processes would be taken for those of this machine.
        inside = shlex.join([*node.inside, "unshare", "--uts"])
        agent.write_text(
            f'#!/bin/sh\nshift\nexec {inside} sh -c "hostname node; $*"\n', encoding="ascii"
        )
        agent.chmod(0o700)
        return {
            "OMPI_MCA_plm": "rsh",
            "OMPI_MCA_plm_rsh_agent": str(agent),
            "OMPI_MCA_orte_default_hostfile": str(hosts),
            "OMPI_MCA_btl_tcp_if_include": node.network,
            "OMPI_MCA_oob_tcp_if_include": node.network,
        }

    def close(self) -> None:
        """End the workers, and kill those that still run soon after."""
        if self._folder is not None:
            self._folder.cleanup()
        executor, self._executor = self._executor, None
        if executor is None:
            return
        daemons, workers = _processes()
        finish = threading.Thread(
            target=executor.shutdown, kwargs={"cancel_futures": True}, daemon=True
        )
        finish.start()
        finish.join(0.0 if self._lost else _PATIENCE)
        if not finish.is_alive():
            # Open MPI's daemon ends with this process.
            end(workers, patience=_FAREWELL)
            return
        self._lost = self._lost or "the engine was closed"
        self._give_up()
        # The executor's thread would wait for its workers forever, and Python for that thread.
        for thread in self._manager:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit)
            )
        finish.join(_PATIENCE)
        end(workers, patience=0.0)
        for daemon in daemons:
            with contextlib.suppress(ProcessLookupError):
                os.kill(daemon, signal.SIGTERM)  # it removes the session's files
        end(daemons, patience=_PATIENCE)

    def _running(self) -> Any:
        if self._executor is None:
            raise RuntimeError("the MPI executor is not running")
        if self._lost:
            raise BrokenExecutor(self._lost)
        return self._executor

    def _watch(self, executor: Any) -> None:
        """Wait in a thread for the first worker to end; fail all calls unless it was closed."""
        executor.bootup(wait=True)
        poll = select.poll()
        with contextlib.ExitStack() as stack:
            for worker in _processes()[1]:
                with contextlib.suppress(ProcessLookupError):
                    descriptor = os.pidfd_open(worker)
                    stack.callback(os.close, descriptor)
                    poll.register(descriptor, select.POLLIN)
            poll.poll()
        if self._executor is not None:
            self._lost = "a worker process ended, and MPI cannot continue without it"
            self._give_up()

    def _new_future(self) -> Future[Any]:
        future: Future[Any] = Future()
        self._open.add(future)
        future.add_done_callback(self._open.discard)
        if self._lost:
            future.set_exception(BrokenExecutor(self._lost))
        return future

    def _give_up(self) -> None:
        for future in tuple(self._open):
            with contextlib.suppress(InvalidStateError):
                future.set_exception(BrokenExecutor(self._lost))


def _processes() -> tuple[set[int], set[int]]:
    """Open MPI's daemons of this process, and the workers that they started."""
    daemons = {child for child in children_of(os.getpid()) if _name(child) == "orted"}
    return daemons, set().union(*(children_of(daemon) for daemon in daemons))


def _name(process: int) -> str:
    """The name of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except OSError:
        return ""

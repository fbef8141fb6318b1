"""HyperQueue: the cluster inside this process that its PyPI package offers, with function tasks.

Used as its manual shows: a `LocalCluster` with one worker that has a core for each concurrent task,
and jobs of one function task each. HyperQueue is for tasks of seconds and more: it starts a process
for each task, and this package reports finished tasks once a second, so shorter times mean nothing.
It returns no values: a task writes its result to a file, and shared data is a file too.

    python -m gridbench.engines.hyperqueue_engine FOLDER CORES

runs server and worker elsewhere, as in a batch job or a network namespace; the client finds them by
FOLDER.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import hyperqueue
from hyperqueue.cluster import WorkerConfig
from hyperqueue.task.function import PythonEnv

from gridbench.engines.base import Description
from gridbench.engines.functions import FunctionEngine, NamespaceNode, one_line, one_node
from gridbench.engines.job_files import read_result, store_argument, write_result
from gridbench.process.children import PYTHON, children_of, end, temporary_files_in

READY = "server-folder"
"""File with the server's folder, once the server can be reached."""
_LOOK_EVERY = 0.02  # seconds
_PERIOD = 1.0  # seconds between reports, the package's own
_LATE = "its Python package reports what has ended once a second: its latency means nothing"


class HyperQueueEngine(FunctionEngine):
    """HyperQueue's LocalCluster."""

    name: ClassVar[str] = "hyperqueue"
    takes_namespaces: ClassVar[bool] = True
    cannot: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("null_call", "argument", "echo", "metg", "solve"), _LATE
    )

    def __init__(self) -> None:
        super().__init__()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._cluster: Any = None
        self._client: Any = None
        # For calls into the package, which hold the interpreter's lock while they wait.
        self._one_at_a_time = threading.Lock()
        self._open: dict[int, tuple[Path, Future[Any]]] = {}
        self._submitted = threading.Condition()
        self._others: set[int] = set()
        self._node: NamespaceNode | None = None

    def use_namespaces(self, namespaces: Sequence[str]) -> None:
        """Server and worker run there. Tasks go over the network, results by files all the same."""
        self._node = one_node(self.name, namespaces)

    def describe(self) -> Description:
        """One worker, whose cores are the benchmark's workers."""
        return Description(
            name=self.name,
            version=version("hyperqueue"),
            configuration={
                "cluster": "LocalCluster of the Python package",
                "cores": self._workers,
                "tasks_per_job": 1,
                "reports_every_seconds": 1,
                "process_for_each_task": True,
                "results_and_shared_data": "files",
            },
        )

    def start(self, workers: int) -> None:
        """Start the server and its worker as threads of this process."""
        self._workers = workers
        self._folder = tempfile.TemporaryDirectory(prefix="gridbench-hq-")
        self._cluster = self._make_cluster(self._folder.name, workers)
        python = PythonEnv(sys.executable)
        self._client = self._cluster.client(python_env=python)
        watcher = self._cluster.client(python_env=python)
        threading.Thread(target=self._watch, args=(watcher,), daemon=True).start()

    def call(self, function: Callable[..., Any], /, *args: Any) -> Any:
        """Submit a job of one task."""
        if self._client is None or self._folder is None:
            raise RuntimeError("HyperQueue is not running")
        place = Path(self._folder.name, uuid.uuid4().hex)
        job = hyperqueue.Job()
        job.function(write_result, args=(place, function, args), stdout=None, stderr=None)
        future: Future[Any] = Future()
        with self._one_at_a_time:
            number = self._client.submit(job).id
        with self._submitted:
            self._open[number] = (place, future)
            self._submitted.notify()
        return future

    def put(self, value: Any) -> Any:
        """Write the value to a file, which stands for it."""
        if self._folder is None:
            raise RuntimeError("HyperQueue is not running")
        return store_argument(value, Path(self._folder.name, uuid.uuid4().hex))

    def close(self) -> None:
        """End the cluster and the processes of tasks."""
        cluster, self._cluster = self._cluster, None
        folder, self._folder = self._folder, None
        self._client = None
        with self._submitted:
            self._submitted.notify()
        if cluster is not None:
            cluster.stop()
            # Only this process can await them.
            end(children_of(os.getpid()) - self._others, patience=0.0)
        self._fail("the engine was closed")
        if folder is not None:
            folder.cleanup()

    def _make_cluster(self, folder: str, cores: int) -> Any:
        """Start a server and a worker; an object with `client` and `stop`."""
        self._others = children_of(os.getpid())
        if self._node is not None:
            return _ClusterOnNode(self._node, folder, cores, self.patience)
        with _standard_output_to_error(), temporary_files_in(folder):
            return hyperqueue.LocalCluster(folder, WorkerConfig(cores=cores))

    def _watch(self, client: Any) -> None:
        """Poll for finished jobs once a second while any is open; runs in a thread.

        The package's `wait_for_jobs` polls as often, but blocks all other threads and returns only
        when all jobs have ended. So each call is left at its first report of progress.
        """
        while True:
            with self._submitted:
                self._submitted.wait_for(lambda: self._open or self._cluster is None)
            ended: list[int] = []
            try:
                with self._one_at_a_time:
                    client.connection.wait_for_jobs(tuple(self._open), partial(self._report, ended))
            except _Reported:
                for number in ended:
                    with self._one_at_a_time:
                        client.forget(number)  # or the server keeps its data
            except Exception as error:  # the server has ended
                self._fail(one_line(error))
            with self._submitted:
                if self._submitted.wait_for(lambda: self._cluster is None, timeout=_PERIOD):
                    return

    def _report(self, ended: list[int], jobs: Mapping[int, Mapping[str, Any]]) -> None:
        """Resolve finished jobs; called with the states of all."""
        for number, state in jobs.items():
            if state["completed"]:
                place, future = self._open.pop(number)
                _resolve(future, place)
                ended.append(number)
        raise _Reported

    def _fail(self, why: str) -> None:
        """Fail all open calls."""
        while self._open:
            _, (_, future) = self._open.popitem()
            with contextlib.suppress(InvalidStateError):
                future.set_exception(RuntimeError(why))


class _ClusterOnNode:
    """Server and worker in a network namespace, with the interface of `LocalCluster`."""

    def __init__(self, node: NamespaceNode, folder: str, cores: int, patience: float) -> None:
        command = [*node.inside, *PYTHON, "-m", __name__, folder, str(cores)]
        quiet: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        self._process = subprocess.Popen(command, **quiet)
        ready, end = Path(folder, READY), time.monotonic() + patience
        while not ready.exists():
            if time.monotonic() > end or self._process.poll() is not None:
                raise RuntimeError("HyperQueue does not start in its network namespace")
            time.sleep(_LOOK_EVERY)
        self._server = ready.read_text(encoding="utf-8")
        # It names this machine, whose address in the namespace is another one.
        for file in Path(self._server).glob("*/access.json"):
            access = json.loads(file.read_text(encoding="utf-8"))
            access["client"]["host"] = node.address
            file.write_text(json.dumps(access), encoding="utf-8")

    def client(self, **options: Any) -> Any:
        return hyperqueue.Client(self._server, **options)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


class _Reported(Exception):
    """Leaves `wait_for_jobs` after one report."""


def _resolve(future: Future[Any], place: Path) -> None:
    """Set the result of a call from its file."""
    try:
        error, value = read_result(place)
        place.unlink()
    except FileNotFoundError:
        error, value = RuntimeError("the task's process ended without a result"), None
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error)


@contextlib.contextmanager
def _standard_output_to_error() -> Iterator[None]:
    """Redirect standard output: the server prints its ports there."""
    sys.stdout.flush()
    stored = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(stored, 1)
        os.close(stored)


def main(folder: str, cores: int) -> None:
    """Run a server and a worker until a signal ends them."""
    with temporary_files_in(folder):
        cluster = hyperqueue.LocalCluster(folder, WorkerConfig(cores=cores))
    part = Path(folder, f"{READY}.part")
    part.write_text(cluster.cluster.server_dir, encoding="utf-8")
    # Readers see the whole file.
    part.rename(part.with_suffix(""))
    signal.pause()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

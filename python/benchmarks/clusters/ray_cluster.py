"""Ray on several hosts: a head without processors beside the client, a node on each host."""

from __future__ import annotations

import logging
import os
import socket
import tempfile
import time
from pathlib import Path
from typing import Any

# Before the driver of one machine, which has Ray listen on the loopback interface alone.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "1"

from gridbench.engines.ray_engine import RayEngine

# isort: split
import ray

from benchmarks.clusters.client import ClusterJob, ClusterPrograms

_STORE = 500_000_000  # bytes of each object store, at least
_OWN_FOLDER = 'mount -t tmpfs tmpfs "$0" && exec "$@"'
_PATIENCE = 120.0  # seconds for the head to answer, or for a node to join


class RayCluster(RayEngine):
    """The driver of one machine, on a cluster that it makes."""

    def __init__(self, job: ClusterJob) -> None:
        super().__init__()
        self._job = job
        self._programs = ClusterPrograms()

    def start(self, workers: int) -> None:
        """`ray start`, as its manual has it, first of the head and then on each host."""
        self._workers = workers
        self._folder = tempfile.TemporaryDirectory(prefix="gb-ray-", ignore_cleanup_errors=True)
        os.environ.pop("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", None)
        client, job = self._job.client, self._job
        port = _free_port(client)
        store = f"--object-store-memory={max(_STORE, 4 * job.size)}"
        self._run([
            "--head", f"--node-ip-address={client}", f"--port={port}", "--num-cpus=0",
            "--include-dashboard=false", f"--temp-dir={self._folder.name}", store,
        ])  # fmt: skip
        _wait_for(client, port)
        options: dict[str, Any] = {"_node_ip_address": client}
        ray.init(
            address=f"{client}:{port}", log_to_driver=False, logging_level=logging.ERROR, **options
        )
        at_once = os.cpu_count() or 1
        for number, node in enumerate(job.nodes):
            # A node gives up if it has not joined in 30 s, which many that start together may take.
            self._wait_for_nodes(number - at_once + 1)
            self._run(
                [
                    f"--address={client}:{port}", f"--node-ip-address={node.address}",
                    f"--num-cpus={job.workers}", store,
                ],
                # Each host has files of its own: Ray numbers its sockets by what it finds.
                before=[*node.inside, "sh", "-c", _OWN_FOLDER, self._folder.name],
                home=node.home,
            )  # fmt: skip
        self._wait_for_nodes(len(job.nodes))

    def _wait_for_nodes(self, count: int) -> None:
        """Return when so many have joined, besides the head; TimeoutError, RuntimeError."""
        until = time.monotonic() + _PATIENCE
        while ray.cluster_resources().get("CPU", 0) < count * self._job.workers:
            for node in self._programs.started:
                if node.poll() is not None:
                    raise RuntimeError(f"`ray start` ended with {node.returncode}")
            if time.monotonic() > until:
                raise TimeoutError("not all nodes have joined Ray's head")
            time.sleep(0.1)

    def close(self) -> None:
        """Disconnect, and end the programs."""
        ray.shutdown()
        self._programs.close()
        if self._folder is not None:
            self._folder.cleanup()

    def _run(self, options: list[str], before: list[str] | None = None, home: str = "") -> None:
        program = Path(os.environ["VIRTUAL_ENV"]) / "bin" / "ray"
        command = [*(before or []), str(program), "start", "--block", "--disable-usage-stats"]
        self._programs.run([*command, *options], {}, home)


def _free_port(address: str) -> int:
    with socket.create_server((address, 0)) as listener:
        return int(listener.getsockname()[1])


def _wait_for(address: str, port: int) -> None:
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            socket.create_connection((address, port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)

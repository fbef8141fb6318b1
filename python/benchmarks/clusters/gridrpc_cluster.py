"""gridrpc with Python workers, on hosts behind ssh."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import gridbench
from benchmarks.clusters.task import Job
from gridbench.engines.gridrpc_engines import PythonEngine


class Cluster(PythonEngine):
    """The driver of one machine, with servers in its place."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        self._job = job

    def _place(self, workers: int) -> dict[str, Any]:
        """All settings but these are the defaults: connections are encrypted."""
        del workers
        values = {
            "command": shlex.join(self._job.ssh),
            "workers": self._job.workers,
            "python": sys.executable,
            "environment.PYTHONPATH": str(Path(gridbench.__file__).parents[1]),
        }
        keys = urlencode(values, quote_via=quote)
        return {"servers": [f"ssh://{node.name}?{keys}" for node in self._job.nodes]}

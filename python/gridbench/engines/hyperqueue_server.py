"""The program of a batch job with HyperQueue's server and a worker in it: its folder, and cores."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

READY = "server-folder"
"""The file in the folder that says where the server is, once it can be reached."""

if __name__ == "__main__":
    import hyperqueue
    from hyperqueue.cluster import WorkerConfig

    from gridbench.process.children import temporary_files_in

    folder, cores = sys.argv[1], int(sys.argv[2])
    with temporary_files_in(folder):
        cluster = hyperqueue.LocalCluster(folder, WorkerConfig(cores=cores))
    part = Path(folder, f"{READY}.part")
    part.write_text(cluster.cluster.server_dir, encoding="utf-8")
    # Whoever sees it sees all of it.
    part.rename(part.with_suffix(""))
    # Slurm ends it with its job.
    signal.pause()

"""Functions on ranks of MPI, which `make mpi` sees to, called from C."""

from __future__ import annotations

import subprocess
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "gridrpc/ranks.idl"


def test_ranks_are_an_attribute_of_a_handle(run, prefix, tmp_path):
    command = [prefix / "bin/gridrpc", "compile", SOURCE, "-o", tmp_path]
    subprocess.run(command, check=True, timeout=120, capture_output=True)
    run("ranks.c", GRIDRPC_MODULE_PATH=str(tmp_path), GRIDRPC_WORKERS="2")

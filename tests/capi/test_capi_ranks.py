"""Functions on ranks of MPI, which `make mpi` sees to, called from C."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "gridrpc/ranks.idl"


@pytest.mark.parametrize("configured", [False, True])
def test_ranks_are_an_attribute_of_a_handle(run, prefix, tmp_path, configured):
    command = [prefix / "bin/gridrpc", "compile", SOURCE, "-o", tmp_path]
    subprocess.run(command, check=True, timeout=120, capture_output=True)
    (tmp_path / "client.conf").write_text(
        "<SERVER>\nhostname localhost\n"
        "mpi_runNoOfCPUs ranks/sum=2\nmpi_runNoOfCPUs add=7\n</SERVER>\n"
    )
    arguments = ["client.conf"] if configured else []
    ran = run("ranks.c", *arguments, GRIDRPC_MODULE_PATH=str(tmp_path), GRIDRPC_WORKERS="2")
    assert "mpi_runNoOfCPUs" not in ran.stderr

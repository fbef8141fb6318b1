"""Functions on ranks of MPI, called from C."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "gridrpc/ranks.idl"


def test_ranks_are_an_attribute_of_a_handle(run, prefix, tmp_path):
    headers = ["mpicc", "-E", "-include", "mpi.h", "-x", "c", os.devnull]
    try:
        subprocess.run(headers, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("there is no Open MPI: `make mpi` installs it")
    command = [prefix / "bin/gridrpc", "compile", SOURCE, "-o", tmp_path]
    subprocess.run(command, check=True, timeout=120, capture_output=True)
    run("ranks.c", GRIDRPC_MODULE_PATH=str(tmp_path), GRIDRPC_WORKERS="2")

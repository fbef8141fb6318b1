"""What calls ask for beside the place of a worker, called from C."""

from __future__ import annotations

import pytest

from gridbench_testbed.batch.slurm import Slurm, why_not


def test_cores_memory_and_resources_are_attributes_of_a_handle(run):
    server = "local://lab?workers=3&memory=8GB&resources.gpu=2"
    run("needs.c", GRIDRPC_SERVERS=server)


def test_this_machine_has_memory(run):
    run("memory.c", GRIDRPC_WORKERS="1")


def test_the_time_that_a_call_takes_is_an_attribute_of_a_handle(run, tmp_path):
    if why := why_not():
        pytest.skip(why)
    (tmp_path / "staging").mkdir()
    with Slurm(1, 2) as slurm:
        server = f"slurm://lab?workers=1&wall_time=00:01:00&staging={tmp_path / 'staging'}"
        run("timed.c", GRIDRPC_SERVERS=server, **slurm.variables, PATH=slurm.environment["PATH"])
        assert slurm.jobs() == []

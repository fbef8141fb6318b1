"""SimGrid, which knows nothing of the pipeline model, finds the same stamps."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import simgrid_farm
from gridbench.model.pipeline import Link, Manager, PipelineCase, PipelineParameters, evaluate

RATE = 125e6
TURN, EVENLY = Link(rate=RATE), Link(rate=RATE, sharing="evenly")
MANAGER = Manager(inward=Link(rate=60e6), outward=Link(rate=70e6))
MEGABYTE = 1 << 20


@pytest.fixture(scope="module")
def farm(tmp_path_factory) -> Path:
    return simgrid_farm.compile_farm(tmp_path_factory.mktemp("farm"))


@pytest.mark.parametrize(
    ("parameters", "sizes"),
    [
        pytest.param(PipelineParameters(to_workers=TURN, from_workers=TURN), (1, 0), id="in turn"),
        pytest.param(PipelineParameters(to_workers=TURN, from_workers=TURN), (1, 2), id="and back"),
        pytest.param(
            PipelineParameters(to_workers=EVENLY, from_workers=EVENLY), (1, 0), id="evenly"
        ),
        pytest.param(
            PipelineParameters(to_workers=EVENLY, from_workers=EVENLY), (2, 1), id="both ways"
        ),
        pytest.param(
            PipelineParameters(to_workers=TURN, from_workers=TURN, manager=MANAGER),
            (1, 1),
            id="two hops",
        ),
    ],
)
def test_simgrid_finds_the_same_stamps(
    farm: Path, tmp_path: Path, parameters: PipelineParameters, sizes: tuple[int, int]
) -> None:
    generator = np.random.default_rng(7)
    case = PipelineCase(
        generator.uniform(0.5, 1.5, 300),
        np.sort(generator.uniform(0, 2, 60)),
        bytes_in=sizes[0] * MEGABYTE,
        bytes_out=sizes[1] * MEGABYTE,
    )
    command = simgrid_farm.command(farm, tmp_path, case, parameters)
    subprocess.run(command, check=True, capture_output=True)
    theirs, ours = simgrid_farm.stamps(tmp_path), evaluate(case, parameters)
    assert simgrid_farm.largest_difference(theirs, ours) < 1e-6

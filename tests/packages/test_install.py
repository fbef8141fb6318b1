"""Ways to install, each in a fresh environment; builds are isolated.

`pip install .`, and that of the wheel with all extras, make the environments of all other tests, in
fresh.py. pip builds that wheel from the source distribution, as `pip install` of that would.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from fresh import VERSION, Environment, alone, isolated_build, run

PROGRAM = """
import gridrpc
with gridrpc.Grid(workers=2) as grid:
    print(list(grid.map(abs, [-1, 2])))
"""


def check(environment: Environment, folder: Path) -> None:
    assert environment.run("python", "-c", PROGRAM, cwd=folder) == "[1, 2]\n"
    assert f"gridrpc {VERSION}" in environment.run("gridrpc", "--version", cwd=folder)


@pytest.mark.parametrize("extras", [False, True], ids=["sources", "wheel"])
def test_pip_installs_the_sources_and_the_wheel(
    request: pytest.FixtureRequest, tmp_path: Path, extras: bool
) -> None:
    name = "full_environment" if extras else "environment"
    environment: Environment = request.getfixturevalue(name)
    check(environment, tmp_path)
    if extras:
        assert "gridbench" in environment.run("gridbench", "--version", cwd=tmp_path)


def test_uv_installs_the_sources(unpacked: Path, tmp_path: Path) -> None:
    prefix = tmp_path / "venv"
    uv = Path(sys.executable).parent / "uv"
    variables = {**isolated_build(unpacked), "VIRTUAL_ENV": str(prefix)}
    with alone():
        make = (uv, "venv", "--quiet", "--python", sys.executable, prefix)
        run(*make, cwd=tmp_path, environment=variables)
        run(uv, "pip", "install", "--quiet", ".", cwd=unpacked, environment=variables)
    check(Environment(prefix), tmp_path)
    run(uv, "pip", "check", cwd=tmp_path, environment=variables)

"""The recipe of the conda package says what pyproject.toml says.

It is built by `make conda`, with a program that tests cannot install.
"""

from __future__ import annotations

import re
import tomllib

from fresh import ROOT

RECIPE = (ROOT / "packaging/conda/recipe.yaml").read_text()
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]


def listed(key: str) -> list[str]:
    """The plain items of the list under a key of the recipe, at whatever depth."""
    block = re.search(rf"^( *)(?:- )?{key}:\n((?:\1 +.*\n)+)", RECIPE, re.MULTILINE)
    assert block is not None, key
    return re.findall(r"^ +- ([^$\n:]+)$", block[2], re.MULTILINE)


def bounds(requirements: list[str]) -> dict[str, str]:
    return dict(re.findall(r"^(\S+?) *>=(\S+)$", "\n".join(requirements), re.MULTILINE))


def test_it_is_of_this_version() -> None:
    assert f'version: "{PROJECT["version"]}"' in RECIPE


def test_it_requires_what_the_project_requires() -> None:
    run = bounds(listed("run"))
    assert run == bounds(PROJECT["dependencies"])
    optional = [one for extra in PROJECT["optional-dependencies"].values() for one in extra]
    assert bounds(listed("run_constraints")) == bounds(optional)
    host = bounds(listed("host"))
    build = PYPROJECT["dependency-groups"]["build"]
    assert PYPROJECT["build-system"]["requires"] == build
    assert host == bounds([*build, f"python{PROJECT['requires-python']}"])

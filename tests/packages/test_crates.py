"""Crates that the builds for Python, for C and of the program have in common are compiled once."""

from __future__ import annotations

import pytest
from fresh import ROOT, run


def features(package: str, *options: str) -> dict[str, str]:
    """The features of each crate that is built for a package of the workspace, by crate."""
    # Crates that a build runs, and those that it links, may differ: both stand in the list.
    form = ("--edges", "no-dev", "--prefix", "none", "--format", "{p} [{f}]")
    told = run("cargo", "tree", "--locked", "--package", package, *options, *form, cwd=ROOT)
    lines = {line.removesuffix(" (*)") for line in told.splitlines()}
    found: dict[str, str] = {}
    for line in sorted(lines):
        crate, _, of = line.partition(" [")
        found[crate] = found.get(crate, "") + "[" + of
    return found


@pytest.mark.parametrize("package", ["gridrpc-capi", "gridrpc-cli"])
def test_crates_have_the_features_that_python_asks_for(package: str) -> None:
    for_python = features("gridrpc-python", "--features", "pyo3/extension-module")
    differ = {
        crate: of for crate, of in features(package).items() if for_python.get(crate, of) != of
    }
    assert not differ, "the common crates sys or transport have to ask for these features as well"

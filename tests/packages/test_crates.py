"""Crates that the builds for Python, for C, of the program, of tests and of fuzz targets have in
common are compiled once."""

from __future__ import annotations

import pytest
from fresh import ROOT, run


def features(*options: str, edges: str = "no-dev") -> dict[str, str]:
    """The features of each crate that is built for packages of the workspace, by crate."""
    # Crates that a build runs, and those that it links, may differ: both are in the list.
    form = ("--edges", edges, "--prefix", "none", "--format", "{p} [{f}]")
    reported = run("cargo", "tree", "--locked", *options, *form, cwd=ROOT)
    lines = {line.removesuffix(" (*)") for line in reported.splitlines()}
    found: dict[str, str] = {}
    for line in sorted(lines):
        crate, _, of = line.partition(" [")
        found[crate] = found.get(crate, "") + "[" + of
    return found


@pytest.mark.parametrize("package", ["gridrpc-capi", "gridrpc-cli"])
def test_crates_have_the_features_that_python_asks_for(package: str) -> None:
    for_python = features("--package", "gridrpc-python", "--features", "pyo3/extension-module")
    of_package = features("--package", package)
    differ = {crate: of for crate, of in of_package.items() if for_python.get(crate, of) != of}
    assert not differ, "the common crates sys or transport have to ask for these features as well"


def test_tests_need_crates_with_no_further_features() -> None:
    for_tests = features("--workspace", edges="normal,build,dev")
    program = features("--package", "gridrpc-cli")
    differ = {crate: of for crate, of in program.items() if for_tests[crate] != of}
    assert not differ, "what is depended on in tests asks for these features as well"


def test_fuzz_targets_need_crates_as_the_program_has_them() -> None:
    program = features("--package", "gridrpc-cli")
    fuzzed = features("--package", "gridrpc-*-fuzz")
    differ = {crate: of for crate, of in fuzzed.items() if program.get(crate, of) != of}
    assert not differ, "the fuzz packages have to ask for these features as well"

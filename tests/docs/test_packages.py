"""No two packages of gridbench import from each other, and those in python/ do so one way.

Imports within functions count as well; those for types alone do not, nor do modules that are
imported by name, as the kinds of results and the engines are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

PYTHON = Path(__file__).parents[2] / "python"
PACKAGE = PYTHON / "gridbench"
TOP = ""
"""The package of modules that lie in gridbench itself."""


def imports(tree: ast.AST) -> Iterator[str]:
    """Names of the modules that a module imports."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                continue
            case ast.Import(names=names):
                yield from (one.name for one in names)
            case ast.ImportFrom(module=str(name)):
                yield name
            case _:
                yield from imports(node)


def package_of(name: str) -> str:
    """`run` of `gridbench.run.client`."""
    first, *rest = name.split(".")[1:] or [TOP]
    return first if rest or (PACKAGE / first).is_dir() else TOP


@cache
def needs() -> dict[str, set[str]]:
    """By package, those that it needs."""
    found: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        here = package_of(".".join(["gridbench", *path.relative_to(PACKAGE).with_suffix("").parts]))
        imported = imports(ast.parse(path.read_text()))
        others = {package_of(name) for name in imported if name.split(".")[0] == "gridbench"}
        # Those that lie in gridbench itself serve all, and the program needs all.
        if here != TOP:
            found.setdefault(here, set()).update(others - {here, TOP})
    return found


def test_there_is_something_to_look_at() -> None:
    assert {"statistics", "process"} <= needs()["bench"]
    assert "engines" in needs()["run"]


def test_no_two_packages_import_from_each_other() -> None:
    found = needs()
    pairs = [(one, other) for one in found for other in found[one] if one in found.get(other, ())]
    assert pairs == []


def top_needs() -> dict[str, set[str]]:
    """By package in python/, those of them that it needs."""
    packages = {path.parent.name for path in PYTHON.glob("*/__init__.py")}
    return {
        package: {
            name.split(".")[0]
            for path in (PYTHON / package).rglob("*.py")
            for name in imports(ast.parse(path.read_text()))
        }
        & packages - {package}
        for package in packages
    }


def test_packages_of_python_need_each_other_one_way() -> None:
    found = top_needs()
    assert {"gridbench", "gridbench_testbed", "gridrpc"} <= found["benchmarks"]
    assert {"gridbench_testbed", "gridrpc"} <= found["gridbench"]
    TopologicalSorter(found).prepare()  # CycleError names a circle
    assert found["gridbench_testbed"] <= {"gridrpc"}
    assert found["gridrpc"] == set()

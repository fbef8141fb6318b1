"""No two packages of gridbench import from each other.

Imports within functions count as well; those for types alone do not, nor do modules that are
imported by name, as the kinds of results and the engines are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "python/gridbench"
TOP = ""
"""The package of modules that lie in gridbench itself."""


def imports(tree: ast.AST) -> Iterator[str]:
    """Names of the modules of gridbench that a module imports."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                continue
            case ast.ImportFrom(module=str(name)) if name.split(".")[0] == "gridbench":
                yield name
            case _:
                yield from imports(node)


def package_of(name: str) -> str:
    """`run` of `gridbench.run.client`."""
    first, *rest = name.split(".")[1:] or [TOP]
    return first if rest or (PACKAGE / first).is_dir() else TOP


def needs() -> dict[str, set[str]]:
    """By package, those that it needs."""
    found: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        here = package_of(".".join(["gridbench", *path.relative_to(PACKAGE).with_suffix("").parts]))
        others = {package_of(name) for name in imports(ast.parse(path.read_text()))}
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

"""No two files of a crate depend on each other, directly or through others, and no two folders.

What a file depends on is read from the paths in it, after `use` or elsewhere, and followed through
what `lib.rs` and `mod.rs` export again: `crate::Grid` is grid.rs. Calls of methods do not count:
where the methods of one type are in several files, those may call each other.
"""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "crates/client/src"
CRATES = sorted(path.parent for path in ROOT.glob("crates/*/Cargo.toml"))

#: A module by its names below the root, the root being ().
Module = tuple[str, ...]

USE = re.compile(r"(\bpub(?:\([^)]*\))?\s+)?\buse\s+([^;]+);")
PATH = re.compile(r"\b(?:crate|(?:super::)*super|self)(?:::\w+)+")


def without_tests(text: str) -> str:
    """The code that is not for tests alone, without comments."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    while (start := text.find("#[cfg(test)]")) >= 0:
        depth, end = 0, start
        for end in range(start + len("#[cfg(test)]"), len(text)):
            depth += {"{": 1, "[": 1, "(": 1, "}": -1, "]": -1, ")": -1}.get(text[end], 0)
            if depth == 0 and text[end] in "};":
                break
        text = text[:start] + text[end + 1 :]
    return text


def leaves(tree: str) -> list[tuple[list[str], str]]:
    """The paths of a `use`, each with the name that it has from there on."""
    tree = tree.strip()
    if (group := re.fullmatch(r"(.*?)\{(.*)\}", tree, re.DOTALL)) is None:
        path, _, alias = re.sub(r"\s+as\s+", "=", tree).partition("=")
        parts = [part.strip() for part in path.split("::") if part]
        if parts[-1] == "self":
            parts.pop()
        return [(parts, alias or parts[-1])]
    depth, branches = 0, [""]
    for letter in group[2]:
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            branches.append("")
        else:
            branches[-1] += letter
    named = [group[1] + branch.strip() for branch in branches if branch.strip()]
    return [leaf for path in named for leaf in leaves(path)]


class Rooms:
    """The files below a folder, and what they need of each other."""

    def __init__(self, root: Path) -> None:
        self.code: dict[Module, str] = {}
        self.names: dict[Module, str] = {}
        tests: list[Module] = []
        for file in sorted(root.rglob("*.rs")):
            parts = file.relative_to(root).with_suffix("").parts
            module = parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts
            text = file.read_text(encoding="utf-8")
            self.code[module] = without_tests(text)
            self.names[module] = file.relative_to(root).as_posix()
            tests += [
                (*module, name) for name in re.findall(r"#\[cfg\(test\)\]\s+mod (\w+);", text)
            ]
        for module in list(self.code):
            if any(module[: len(test)] == test for test in tests):
                del self.code[module]
        self.handed_on: dict[Module, dict[str, Module]] = {}
        self.brought_in: dict[Module, dict[str, Module]] = {}
        for module, code in self.code.items():
            self.handed_on[module], self.brought_in[module] = {}, {}
            for use in USE.finditer(code):
                kind = self.handed_on if use[1] else self.brought_in
                for written, name in leaves(use[2]):
                    path = self.from_root(module, written)
                    if path is not None:
                        assert name != "*", f"{self.names[module]}: name what it uses of {path}"
                        kind[module][name] = path

    def from_root(self, module: Module, parts: list[str]) -> Module | None:
        """A path as it is written in a file, from the root; None: it leads elsewhere."""
        if parts[0] == "crate":
            return tuple(parts[1:])
        if parts[0] in ("self", "super"):
            for at, part in enumerate(parts):
                if part not in ("self", "super"):
                    return (*module, *parts[at:])
                if part == "super":
                    if not module:
                        return None
                    module = module[:-1]
            return module
        return (*module, *parts) if (*module, parts[0]) in self.code else None

    def home(self, path: Module) -> Module:
        """The file in which what has this path is written."""
        module: Module = ()
        for at, name in enumerate(path):
            if (*module, name) in self.code:
                module = (*module, name)
                continue
            further = self.handed_on[module].get(name) or self.brought_in[module].get(name)
            return module if further is None else self.home((*further, *path[at + 1 :]))
        return module

    def needs(self, module: Module) -> dict[Module, str]:
        """The files that this one needs, each with something that it needs of it."""
        code = USE.sub("", self.code[module])
        code = re.sub(r"\bpub\([^)]*\)|\bmod \w+;", "", code)
        paths = [self.from_root(module, path[0].split("::")) for path in PATH.finditer(code)]
        known = self.brought_in[module] | self.handed_on[module]
        for name, path in known.items():
            if name in self.handed_on[module] and not re.search(rf"\b{name}\b", code):
                # It only shows others the way.
                continue
            within = [] if path not in self.code else re.findall(rf"\b{name}::(\w+)", code)
            paths += [(*path, item) for item in within] or [path]
        needed = {self.home(path): "::".join(path) for path in paths if path}
        needed.pop(module, None)
        return needed

    def describe(self, one: Module) -> dict[Module, str]:
        """The sentence on each file that this one needs."""
        needs = self.needs(one).items()
        return {
            other: f"{self.names[one]} needs {item} of {self.names[other]}" for other, item in needs
        }

    def circle(self) -> str | None:
        """Files that need each other, if there are any."""
        return circle_of({one: self.describe(one) for one in self.code})

    def circle_of_rooms(self) -> str | None:
        """Rooms that need each other: folders, and files that are in none."""
        needs: dict[Module, dict[Module, str]] = {}
        for one in self.code:
            others = {other[:1]: text for other, text in self.describe(one).items()}
            needs.setdefault(one[:1], {}).update(others)
            needs[one[:1]].pop(one[:1], None)
        return circle_of(needs)


def circle_of(needs: dict[Module, dict[Module, str]]) -> str | None:
    """The message about circular needs, if there are some."""
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        # Each comes behind one that needs it in turn.
        around: list[Module] = error.args[1][::-1]
        return "\n".join(needs[one][other] for one, other in pairwise(around))
    return None


def test_known_dependencies_are_found() -> None:
    rooms = Rooms(CLIENT)
    assert {("call", "handle"), ("common",), ("reactor",)} <= rooms.needs(("grid",)).keys()
    assert ("grid",) in rooms.needs(("grid", "workers"))


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.name)
def test_no_files_of_a_crate_depend_on_each_other(crate: Path) -> None:
    circle = Rooms(crate / "src").circle()
    assert circle is None, f"files depend on each other in a circle:\n{circle}"


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate.name)
def test_no_folders_of_a_crate_depend_on_each_other(crate: Path) -> None:
    circle = Rooms(crate / "src").circle_of_rooms()
    assert circle is None, f"folders depend on each other in a circle:\n{circle}"


def layers() -> dict[str, int]:
    """The row of each file or folder of the client in the table of its README."""
    text = (CLIENT.parent / "README.md").read_text(encoding="utf-8")
    table = re.search(r"^\| files \| about \|\n\|---\|---\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert table is not None
    rows = [row.split("|")[1] for row in table[1].splitlines()]
    return {
        name: layer
        for layer, row in enumerate(rows)
        for name in re.findall(r"(\w+)(?:\.rs|/)", row)
    }


def test_files_need_none_of_a_layer_above_theirs() -> None:
    rooms, layer = Rooms(CLIENT), layers()
    modules = rooms.code.keys() - {()}
    assert layer.keys() == {module[0] for module in modules}
    wrong = [
        f"{rooms.names[module]} needs {rooms.names[other]}"
        for module in sorted(modules)
        for other in rooms.needs(module)
        if layer[other[0]] > layer[module[0]]
    ]
    assert not wrong, "\n".join(wrong)


def write(root: Path, **files: str) -> Rooms:
    for name, text in files.items():
        path = root / (name.replace("__", "/") + ".rs")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Rooms(root)


@pytest.mark.parametrize(
    "back",
    [
        "use crate::upper::Upper;",
        "use crate::Handle;",
        "use crate::{room, sync::now as time, upper::{self, Upper as Top}};",
        "use super::upper;",
        "fn ask(of: &crate::Handle) {}",
        "fn ask(of: &super::Handle) {}",
        "use crate::room; fn ask(of: &room::Below) {}",
    ],
)
def test_circles_are_found_however_they_are_written(tmp_path: Path, back: str) -> None:
    rooms = write(
        tmp_path,
        mod="mod lower;\nmod room;\nmod upper;\npub use upper::Upper as Handle;",
        upper="use crate::{lower::Lower};",
        room__mod="mod below;\npub(super) use below::Below;",
        room__below="use super::super::upper;",
        sync="",
        lower=f"pub struct Lower;\n{back}",
    )
    circle = rooms.circle()
    assert circle is not None
    assert "upper.rs needs lower::Lower of lower.rs" in circle


@pytest.mark.parametrize(
    "text",
    [
        "/// See [`crate::Handle`].\n// use crate::upper::Upper;",
        "#[cfg(test)]\nmod tests {\n    use crate::Handle;\n    fn f() { g([1; 2]); }\n}",
        "#[cfg(test)]\nuse super::upper::Upper;",
        "pub(in crate) fn f() {}",
        "use gridrpc_core::upper::Upper;\nuse std::sync::Arc;",
        "use crate::room;",
    ],
)
def test_what_is_no_need_makes_no_circle(tmp_path: Path, text: str) -> None:
    rooms = write(
        tmp_path,
        mod="mod lower;\nmod room;\nmod upper;\npub use upper::Upper as Handle;",
        upper="use crate::lower::Lower;",
        room__mod="mod above;\npub(super) use above::Above;",
        room__above="use crate::Handle;",
        lower=f"pub struct Lower;\n{text}",
    )
    assert rooms.circle() is None


def test_circles_of_rooms_are_found_where_no_files_need_each_other(tmp_path: Path) -> None:
    rooms = write(
        tmp_path,
        mod="mod room;\nmod upper;",
        room__mod="mod above;\nmod below;",
        room__above="use crate::upper::Upper;",
        room__below="",
        upper="use crate::room::below::Below;",
    )
    assert rooms.circle() is None
    circle = rooms.circle_of_rooms()
    assert circle is not None
    assert "room/above.rs needs upper::Upper of upper.rs" in circle

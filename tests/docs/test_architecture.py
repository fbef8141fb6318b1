"""ARCHITECTURE.md names files and functions that there are."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
#: Names of files, with as many of their folders as the text gives.
FILES = sorted(set(re.findall(r"(?<![\w./*-])[\w./-]+\.(?:rs|py|md)\b", TEXT)))
#: `Type::name`, and `Type.name` of a class in Python.
MEMBERS = sorted(set(re.findall(r"`(?:_native\.)?([A-Z]\w+)(?:::|\.)(\w+)`", TEXT)))


@cache
def tracked() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


@cache
def sources() -> list[str]:
    """The text of all sources."""
    kinds = (".rs", ".py", ".pyi")
    names = (name for name in tracked() if name.endswith(kinds) and not name.startswith("tests/"))
    return [(ROOT / name).read_text(encoding="utf-8") for name in names]


def test_the_text_names_files_and_members() -> None:
    assert len(FILES) > 50
    assert len(MEMBERS) > 15


@pytest.mark.parametrize("name", FILES)
def test_files_are_there(name: str) -> None:
    # Crates are named without the `crates/` and `src/` in front of their files.
    wanted = name.strip("/").split("/")
    for path in tracked():
        parts = [part for part in path.split("/") if part != "src" or "src" in wanted]
        if parts[-len(wanted) :] == wanted:
            return
    pytest.fail(f"ARCHITECTURE.md names {name}, which is not there")


@pytest.mark.parametrize(("owner", "name"), MEMBERS)
def test_members_are_there(owner: str, name: str) -> None:
    defined = re.compile(rf"\b(?:struct|enum|trait|type|class|for|impl(?:<.*?>)?) {owner}\b")
    member = re.compile(rf"\b(?:fn|def|async def) {name}\b|^\s+(?:pub )?{name}\b", re.MULTILINE)
    assert any(defined.search(text) and member.search(text) for text in sources())


def test_every_crate_and_folder_of_the_map_is_there() -> None:
    block = re.search(r"## The map\n\n```\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    assert block is not None
    crates = set(re.findall(r"^  (\w+)/", block[1].split("\npython/")[0], re.MULTILINE))
    assert crates == {path.name for path in (ROOT / "crates").iterdir() if path.is_dir()}
    for folder in re.findall(r"^(\w+)/", block[1], re.MULTILINE):
        assert (ROOT / folder).is_dir(), folder

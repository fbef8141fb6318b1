"""The conformance table has every function, and the tests that it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "docs/conformance.md").read_text(encoding="utf-8")
PAGES = ROOT / "docs/c"

#: A test: a file, and perhaps a function in it.
TEST = re.compile(r"`([\w./]+\.(?:c|py|rs))(?:: (\w+))?`")

#: Where files without a folder are.
FOLDERS = ("tests/capi", "tests/capi/programs")


def functions() -> list[str]:
    found = set()
    for header in ("grpc.h", "ninf.h"):
        text = (ROOT / "crates/capi/include" / header).read_text(encoding="utf-8")
        code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        code = re.sub(r"^#.*(?:\\\n.*)*$", "", code, flags=re.MULTILINE)
        found |= set(re.findall(r"\b((?:grpc|Ninf)_\w+)\([^;{]*\);", code))
    return sorted(found)


def named_tests() -> list[tuple[str, str]]:
    return sorted({(file, name or "") for file, name in TEST.findall(TABLE)})


def test_both_lists_are_found():
    assert {"grpc_call", "grpc_get_error", "Ninf_call"} < set(functions())
    assert len(functions()) > 110
    assert len(named_tests()) > 70


@pytest.mark.parametrize("name", functions())
def test_every_function_is_in_the_table_and_has_a_page(name):
    assert re.search(rf"`{name}`", TABLE), f"docs/conformance.md has no `{name}`"
    page = PAGES / f"{name}.md"
    assert page.read_text(encoding="utf-8").startswith(f"# {name}\n")


@pytest.mark.parametrize(("file", "name"), named_tests())
def test_every_test_that_is_named_exists(file, name):
    folders = [""] if "/" in file else FOLDERS
    (path,) = (path for folder in folders if (path := ROOT / folder / file).is_file())
    text = path.read_text(encoding="utf-8")
    begin = {".py": r"^def ", ".rs": r"#\[test\]\s+fn ", ".c": r"^(?:static )?\w+ \*?"}[path.suffix]
    assert not name or re.search(rf"{begin}{name}\(", text, re.MULTILINE), f"no {name} in {file}"


def test_no_row_is_without_a_test():
    """Except those that say that something never happens."""
    for line in TABLE.splitlines():
        if line.startswith("|") and not line.startswith(("| case", "|---")):
            assert TEST.search(line.split("|")[-2]) or "never returned" in line, line

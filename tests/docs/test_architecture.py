"""Files and members that ARCHITECTURE.md and the READMEs of crates and packages name."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAP = "ARCHITECTURE.md"
#: The map fits on three pages.
MAP_BYTES = 8192
CRATES = sorted(path.parent.name for path in ROOT.glob("crates/*/Cargo.toml"))
PACKAGES = sorted(path.parent.name for path in ROOT.glob("python/*/__init__.py"))
#: Folders with code in other languages.
LIBRARIES = ("datagrid", "java", "lisp")
READMES = [
    *(f"crates/{name}/README.md" for name in CRATES),
    *(f"python/{name}/README.md" for name in PACKAGES),
    *(f"{name}/README.md" for name in LIBRARIES),
]
#: Those that exist: test_every_crate_and_package_has_a_readme reports the others.
DOCUMENTS = [MAP, *(name for name in READMES if (ROOT / name).is_file())]

#: A row of the map's table of crates.
CRATE_ROW = re.compile(r"^\| \[(\w+)\]\((crates/\w+/README\.md)\) \| (\d) \|", re.MULTILINE)


@cache
def text_of(document: str) -> str:
    return (ROOT / document).read_text(encoding="utf-8")


def files_in(document: str) -> list[str]:
    """Names of files, with as many of their folders as the text gives."""
    return sorted(
        set(re.findall(r"(?<![\w./*-])[\w./-]+\.(?:rs|py|md|java|lisp)\b", text_of(document)))
    )


def members_in(document: str) -> list[tuple[str, str]]:
    """`Type::name`, and `Type.name` of a class in Python."""
    pattern = r"`(?:_native\.)?([A-Z]\w+)(?:::|\.)(\w+)`"
    return sorted(set(re.findall(pattern, text_of(document))))


FILES = [(document, name) for document in DOCUMENTS for name in files_in(document)]
MEMBERS = sorted({member for document in DOCUMENTS for member in members_in(document)})


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


def is_there(document: str, name: str) -> bool:
    """Whether a document's file exists: in its own folder, or anywhere if its folder is given."""
    folder, _, _ = document.rpartition("/")
    if name.startswith("../"):
        return (ROOT / folder / name).is_file()
    # Crates are named without the `crates/` and `src/` in front of their files.
    wanted = name.split("/")
    for path in tracked():
        if not path.endswith(wanted[-1]):
            continue
        if len(wanted) == 1 and folder and not path.startswith(f"{folder}/"):
            continue
        parts = [part for part in path.split("/") if part != "src" or "src" in wanted]
        if parts[-len(wanted) :] == wanted:
            return True
    return False


def test_the_texts_name_files_and_members() -> None:
    assert len(FILES) > 200
    assert len(MEMBERS) > 60


@pytest.mark.parametrize(("document", "name"), FILES)
def test_files_are_there(document: str, name: str) -> None:
    assert is_there(document, name), f"{document} names {name}, which does not exist"


@pytest.mark.parametrize(("document", "name"), [(MAP, "core/none.rs"), (READMES[0], "none.rs")])
def test_missing_files_are_noticed(document: str, name: str) -> None:
    assert not is_there(document, name)


@pytest.mark.parametrize(("owner", "name"), MEMBERS)
def test_members_are_there(owner: str, name: str) -> None:
    defined = re.compile(rf"\b(?:struct|enum|trait|type|class|for|impl(?:<.*?>)?) {owner}\b")
    member = re.compile(rf"\b(?:fn|def|async def) {name}\b|^\s+(?:pub )?{name}\b", re.MULTILINE)
    candidates = (text for text in sources() if owner in text and name in text)
    assert any(defined.search(text) and member.search(text) for text in candidates)


@pytest.mark.parametrize("readme", READMES)
def test_every_crate_and_package_has_a_readme_with_its_tests(readme: str) -> None:
    assert re.search(r"^## Tests$", text_of(readme), re.MULTILINE)


def test_the_map_fits_on_three_pages() -> None:
    assert len(text_of(MAP).encode()) <= MAP_BYTES


def test_every_crate_package_and_folder_is_in_the_map() -> None:
    rows = {name: readme for name, readme, _ in CRATE_ROW.findall(text_of(MAP))}
    assert rows == {name: f"crates/{name}/README.md" for name in CRATES}
    table = re.search(r"\| folder \| contents \|\n\|---\|---\|\n((?:\|.*\n)+)", text_of(MAP))
    assert table is not None
    folders = re.findall(r"^\| (?:\[|`)([\w/]+)", table[1], re.MULTILINE)
    assert [name for name in folders if not (ROOT / name).is_dir()] == []
    top = {path.split("/")[0] for path in tracked() if "/" in path and not path.startswith(".")}
    assert {name.split("/")[0] for name in folders} == top - {"crates"}
    assert {f"python/{name}" for name in PACKAGES} <= set(folders)


def test_crates_depend_on_their_own_layer_or_below() -> None:
    layers = {name: int(layer) for name, _, layer in CRATE_ROW.findall(text_of(MAP))}
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["dependencies"]
    folders = {
        name: Path(one["path"]).name
        for name, one in workspace.items()
        if isinstance(one, dict) and "path" in one
    }
    wrong = []
    for crate in CRATES:
        manifest = tomllib.loads((ROOT / "crates" / crate / "Cargo.toml").read_text())
        needed = (folders[name] for name in manifest.get("dependencies", {}) if name in folders)
        wrong += [f"{crate} needs {one}" for one in needed if layers[one] > layers[crate]]
    assert wrong == []


#: Crates that a call passes, from its client to its worker.
CALL_PATH = (
    "wire", "core", "sys", "shm", "transport", "link", "typed", "worker", "client", "invoke",
    "agent",
)  # fmt: skip


@pytest.mark.parametrize("crate", CALL_PATH)
def test_the_path_of_a_call_has_no_asynchronous_runtime(crate: str) -> None:
    manifest = tomllib.loads(text_of(f"crates/{crate}/Cargo.toml"))
    assert not {"tokio", "hyper", "tonic", "axum"} & set(manifest["dependencies"])


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_inside_is_in_the_readme_and_has_a_docstring(package: str) -> None:
    folder = ROOT / "python" / package
    text = text_of(f"python/{package}/README.md")
    for file in folder.rglob("*/__init__.py"):
        name = file.parent.relative_to(folder).parts[0]
        assert re.search(rf"\b{name}\b", text), f"the README of {package} does not name {name}"
        docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
        assert docstring, f"{file.relative_to(ROOT)} has no docstring"

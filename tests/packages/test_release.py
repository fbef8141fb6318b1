"""`scripts/release` refuses to build what cannot be released."""

from __future__ import annotations

import re
import shutil
import tomllib
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest
from fresh import ROOT, VERSION, run

LOADER = SourceFileLoader("release", str(ROOT / "scripts/release"))
release = module_from_spec(spec_from_loader("release", LOADER))
LOADER.exec_module(release)

#: Files with the version, as paths.
FILES = sorted(release.versions())


def edit(tree: Path, name: str, pattern: str, by: str) -> None:
    file = tree / name
    text, changed = re.subn(pattern, by, file.read_text(), count=1, flags=re.MULTILINE)
    assert changed == 1
    file.write_text(text)


def commit(tree: Path) -> None:
    run("git", "add", "--all", cwd=tree)
    who = ("-c", "user.name=Test", "-c", "user.email=test@gridrpc.example")
    run("git", *who, "commit", "--quiet", "--message", "tree", cwd=tree)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The files that the script reads, committed, with the dates of a release."""
    for name in (*FILES, "CHANGELOG.md", "scripts/release"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tmp_path / name)
    edit(tmp_path, "CHANGELOG.md", r"^## [\d.]+, .*$", f"## {VERSION}, 2027-03-31")
    citation = tmp_path / "CITATION.cff"
    text = re.sub(r"^date-released: .*\n", "", citation.read_text(), flags=re.MULTILINE)
    citation.write_text(f"{text}date-released: 2027-03-31\n")
    debian = "packaging/debian/changelog"
    edit(tmp_path, debian, r"^( -- .*>  ).*$", r"\1Wed, 31 Mar 2027 12:00:00 +0000")
    run("git", "init", "--quiet", cwd=tmp_path)
    commit(tmp_path)
    return tmp_path


def dry_run(tree: Path, expected: int = 0) -> str:
    return run(tree / "scripts/release", "--dry-run", cwd=tree, expected=expected)


def test_all_files_of_this_checkout_name_one_version() -> None:
    said = run(ROOT / "scripts/release", "--versions", cwd=ROOT)
    assert said.splitlines() == [f"{name}: {VERSION}" for name in release.versions()]
    # Whoever adds a place adds it there as well: java, lisp, Debian, conda and Rust are different.
    assert len(FILES) > 12


def test_a_dry_run_prints_the_commands_and_builds_nothing(tree: Path) -> None:
    said = dry_run(tree)
    for command in (
        "make wheel sdist deb",
        "twine check --strict",
        f"git tag --sign v{VERSION}",
        f"twine upload dist/gridrpc-{VERSION}-*.whl",
    ):
        assert command in said
    assert not (tree / "dist").exists()
    assert run("git", "tag", cwd=tree) == ""


@pytest.mark.parametrize("name", FILES)
def test_another_version_in_one_file_is_named(tree: Path, name: str) -> None:
    if name == "pyproject.toml":
        edit(tree, name, rf'^version = "{VERSION}"', 'version = "9.8.7"')
    else:
        (place,) = (one for glob, one in release.VERSIONS if (tree / name) in tree.glob(glob))
        text = (tree / name).read_text()
        found = re.search(place, text, re.MULTILINE)
        start, end = found.span("version")
        (tree / name).write_text(f"{text[:start]}9.8.7{text[end:]}")
    commit(tree)
    said = dry_run(tree, expected=1)
    assert re.search(rf"^error: {re.escape(name)}: names .*9\.8\.7", said, re.MULTILINE) or (
        name == "pyproject.toml" and said.count("but pyproject.toml has 9.8.7") == len(FILES) - 1
    )


def test_a_file_without_its_version_is_named(tree: Path) -> None:
    edit(tree, "lisp/gridrpc.asd", r"^.*:version.*\n", "")
    commit(tree)
    assert "lisp/gridrpc.asd: names no version" in dry_run(tree, expected=1)


@pytest.mark.parametrize(
    ("name", "pattern", "by", "said"),
    [
        ("CHANGELOG.md", r"2027-03-31", "not released yet", f"{VERSION} has no date"),
        ("CHANGELOG.md", rf"^## {VERSION}", "## 9.8.7", "the first section is not about"),
        ("CHANGELOG.md", r"^## .*$", "", "the first section is not about"),
        ("CITATION.cff", r"2027-03-31", "2027-03-30", "date-released is not 2027-03-31"),
        ("CITATION.cff", r"^date-released.*\n", "", "date-released is not 2027-03-31"),
        ("packaging/debian/changelog", "31 Mar", "30 Mar", "the first entry is not of 2027-03-31"),
    ],
)
def test_missing_and_differing_dates_are_named(
    tree: Path, name: str, pattern: str, by: str, said: str
) -> None:
    edit(tree, name, pattern, by)
    commit(tree)
    assert f"{name}: {said}" in dry_run(tree, expected=1)


def test_what_is_not_committed_the_tag_and_earlier_packages_stop_it(tree: Path) -> None:
    (tree / "new.txt").touch()
    run("git", "tag", f"v{VERSION}", cwd=tree)
    said = dry_run(tree, expected=1)
    assert "error: not committed: new.txt" in said
    assert f"error: the tag v{VERSION} exists" in said
    commit(tree)
    (tree / ".gitignore").write_text("dist/\n")
    (tree / "dist").mkdir()
    (tree / "dist/old.whl").touch()
    assert "error: dist/ is not empty" in dry_run(tree, expected=1)


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", "docs/installing.md", "docs/compatibility.md"]
)
def test_pages_name_the_oldest_rust_and_python(page: str) -> None:
    text = (ROOT / page).read_text()
    oldest = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    python = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert re.search(rf"Rust\b[^.]*\b{re.escape(oldest['rust-version'])}\b", text)
    assert re.search(rf"Python\b[^.]*\b{re.escape(python.removeprefix('>='))}\b", text)


def test_continuous_integration_compiles_with_the_oldest_rust() -> None:
    oldest = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    text = (ROOT / ".github/workflows/ci.yml").read_text()
    assert f"rust:{oldest['rust-version']}-bookworm" in text

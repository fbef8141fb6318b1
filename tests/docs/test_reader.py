"""What is wrong on a page is found: the reader of test_as_printed.py, given wrong pages."""

from __future__ import annotations

import pytest
from blocks import blocks_of
from not_run import NOT_RUN, NotRun

ACTIVE = "```sh\nsource .venv/bin/activate\n```\n"


def sh(*lines: str) -> str:
    return "```sh\n" + "".join(f"{line}\n" for line in lines) + "```\n"


def text(*lines: str) -> str:
    return sh(*lines).replace("```sh", "```text")


def python(*lines: str) -> str:
    return sh(*lines).replace("```sh", "```python")


def test_blocks_are_found_with_what_stands_before_them():
    page = (
        "Save this as `a.py`:\n\n" + python("x = 1") + "\n" + text("1") + "\nWords\n\n- a list\n\n"
    )
    page += "  ```sh\n  echo  # a comment\n  a \\\n    b '#no'\n  ```\n"
    saved, printed, shell = blocks_of("page.md", page)
    assert (saved.kind, saved.name, saved.line, saved.text) == ("python", "a.py", 3, "x = 1\n")
    assert printed.follows_directly
    assert not shell.follows_directly
    assert shell.commands == ["echo", "a    b '#no'"]
    with pytest.raises(ValueError, match=r"page\.md:1: this block has no end"):
        blocks_of("page.md", "```sh\nls\n")


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ("```\nls\n```\n", "the block has no kind"),
        ("```cobol\nSTOP RUN.\n```\n", "is of the kind `cobol`, and not_run.py does not have it"),
        (sh("false"), "`false` has ended with status 1"),
        (sh("echo 1") + text("2"), "printed is\n2\nbut it has said\n1\n"),
        (sh("echo 1") + "Words.\n\n" + text("2"), "no command of this page has said\n2"),
        (sh("gridbench engines"), "`gridbench engines` has ended with status 127"),
        (ACTIVE + python("raise SystemExit('no')"), "`python program.py` has ended with status 1"),
        (ACTIVE + python("print(1)") + text("2"), "but it has said\n1\n"),
        (ACTIVE + python("import pytest"), "No module named 'pytest'"),
        (ACTIVE + sh("x").replace("sh", "idl", 1), "`gridrpc compile fragment.idl` has ended"),
        (ACTIVE + sh("[grid]", "workrs = 1").replace("sh", "toml", 1), "unknown key `workrs`"),
        (ACTIVE + sh("grpc_wait(1.0, 2);").replace("sh", "c", 1), "too many arguments"),
        (
            ACTIVE + sh("#include <grpc.h>", "int grpc_wait(void);").replace("sh", "c", 1),
            "conflicting types",
        ),
        (ACTIVE + sh("end program").replace("sh", "fortran", 1), "has not said yet how"),
    ],
)
def test_what_is_wrong_is_found(reader, page, found):
    (wrong,) = reader.read(blocks_of("page.md", page))
    assert found in wrong


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("gridbench simulate --cors 400", "has no option `--cors`"),
        (
            "gridbench model runs/none --out model.json",
            "reads runs/none, which nothing on this page has written",
        ),
        ("make bench-nothing-that-is", ""),
        ("make no-such-target", "No rule to make target"),
    ],
)
def test_what_is_not_run_is_checked(reader, monkeypatch, command, found):
    monkeypatch.setitem(NOT_RUN, "page.md", {command: NotRun("a test")})
    wrong = reader.read(blocks_of("page.md", ACTIVE + sh(command)))
    assert (found in "".join(wrong)) if found else not wrong
    assert reader.done["page.md:1"] == "run"


def test_what_is_not_run_stands_for_what_it_writes(reader, monkeypatch):
    first, second = "gridbench scenario 4 --out runs/a", "gridbench model runs/a --out model.json"
    third = "gridbench advise --work 1s --cores 2 --from model.json"
    left = {one: NotRun("a test") for one in (first, second, third)}
    monkeypatch.setitem(NOT_RUN, "page.md", left)
    page = ACTIVE + sh(first, second, third)
    assert not reader.read(blocks_of("page.md", page))
    assert list(reader.done.values()) == ["run", "not run"]


def test_what_is_exported_and_where_one_goes_to_stays(reader):
    page = sh("cd examples", "export NAME='two words'") + sh('echo "$NAME"', "pwd")
    assert not reader.read(blocks_of("page.md", page))
    assert reader.said == f"two words\n{reader.folder.resolve()}/examples\n"

"""The programs in the guide and the README run, and print what the text says they print."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from gridrpc import Config

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/guide.md")
SECONDS = 120

#: A block of Python, and the block of text right behind it, which is its output.
PROGRAM = re.compile(
    r"^```python\n(?P<program>.*?)^```$(?:\n+```text\n(?P<output>.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)


#: A block of IDL: a module that the programs of its page use.
IDL = re.compile(r"^```idl\n(?P<source>.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="session")
def modules(tmp_path_factory) -> Path:
    """A folder with the modules of all pages."""
    folder = tmp_path_factory.mktemp("modules")
    for page in PAGES:
        for match in IDL.finditer((ROOT / page).read_text(encoding="utf-8")):
            name = re.search(r"^Module (\w+);", match["source"], re.MULTILINE)[1]
            (folder / f"{name}.idl").write_text(match["source"], encoding="utf-8")
            program = Path(sys.prefix) / "bin" / "gridrpc"
            subprocess.run([program, "compile", f"{name}.idl"], cwd=folder, check=True)
    return folder


def programs() -> list:
    found = []
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        for match in PROGRAM.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(pytest.param(match["program"], match["output"], id=f"{page}:{line}"))
    return found


@pytest.mark.parametrize(("program", "output"), programs())
def test_program_runs(tmp_path, modules, program, output):
    for module in modules.glob("*.so"):
        (tmp_path / module.name).symlink_to(module)
    script = tmp_path / "script.py"
    script.write_text(program, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, script.name],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    if output is not None:
        assert ran.stdout == output


def test_every_page_has_programs():
    pages = {param.id.partition(":")[0] for param in programs()}
    assert pages == set(PAGES)


def test_guide_has_all_keys_of_the_configuration_with_their_defaults():
    text = (ROOT / "docs/guide.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```toml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    table = tomllib.loads(block)["grid"]
    defaults = {field.name: field.default for field in fields(Config)}
    lists = {name: tuple(value) for name, value in table.items() if isinstance(value, list)}
    assert {**table, **lists} == defaults

"""Golden files: what documents look like, reviewed by people in diffs.

`UPDATE_GOLDEN=1 make test-one T=...` rewrites them.
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path

_FOLDER = Path(__file__).parent / "gridbench" / "golden"


def same_as_golden(text: str, name: str) -> None:
    """Fail with a diff unless the text is that of the file `name` below tests/gridbench/golden."""
    file = _FOLDER / name
    text = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
    if os.environ.get("UPDATE_GOLDEN"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    known = file.read_text(encoding="utf-8") if file.exists() else ""
    changes = difflib.unified_diff(
        known.splitlines(), text.splitlines(), name, "now", lineterm="", n=1
    )
    if found := "\n".join(changes):
        raise AssertionError(f"differs; UPDATE_GOLDEN=1 accepts it:\n{found}")

"""Changes that nobody can notice: each was looked at, and is not tried again."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from pathlib import Path

from .changes import ROOT, Mutant

LISTS = Path(__file__).with_suffix("")
"""A file for each package."""


class Equivalent:
    """For each file of the packages, pairs of lines as they are and as they would be."""

    def __init__(self) -> None:
        self._listed: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for path in sorted(LISTS.glob("*.toml")):
            for one in tomllib.loads(path.read_text())["change"]:
                file = f"python/gridbench/{path.stem}/{one['file']}"
                self._listed[file].add((one["was"], one["becomes"]))

    def __contains__(self, mutant: Mutant) -> bool:
        listed = self._listed.get(mutant.file)
        return listed is not None and line_changed(mutant) in listed

    def unclear(self) -> list[str]:
        """Entries whose line is no longer in its file, or more than once."""
        return [
            f"{file}: {was}"
            for file, pairs in self._listed.items()
            for was in sorted({was for was, _ in pairs})
            if [line.strip() for line in (ROOT / file).read_text().splitlines()].count(was) != 1
        ]


def line_changed(mutant: Mutant) -> tuple[str, str]:
    """The first line that differs, as it is and as it becomes, without indentation."""
    text = (ROOT / mutant.file).read_text()
    pairs = zip(text.splitlines(), mutant.made(text).splitlines(), strict=False)
    was, becomes = next((one, other) for one, other in pairs if one != other)
    return was.strip(), becomes.strip()

"""The files that pages are made of."""

from __future__ import annotations

from importlib import resources


def asset(name: str) -> str:
    """The text of a file that pages are made of: `report/report.js` is assets/report.js of the
    package gridbench.report."""
    package, _, file = name.rpartition("/")
    folder = resources.files("gridbench." + package.replace("/", "."))
    return folder.joinpath("assets", file).read_text(encoding="utf-8")

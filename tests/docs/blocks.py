"""The fenced blocks of the pages in Markdown: README, docs and examples."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(r"^(?P<fence> *(?:```+|~~~+))[ \t]*(?P<kind>[^`\n]*)$")
#: "Save this as `volume.py`:", "With this `vectors.f90`".
_NAMED = re.compile(r"\b(?:this|this\s+as|it\s+as)\s+`(?P<name>[\w-]+\.\w+)`:?\s*$")


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    page: str
    line: int
    #: The text after the first fence: the language.
    kind: str
    text: str
    #: What stands between the block before, or the page's begin, and this one.
    before: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def name(self) -> str:
        """The name of the file that it is to be saved as, or nothing."""
        found = _NAMED.search(self.before)
        return found["name"] if found else ""

    @property
    def follows_directly(self) -> bool:
        """Is there nothing between the block before and this one?"""
        return not self.before.strip()

    @property
    def commands(self) -> list[str]:
        """The commands of a block of kind `sh`, without comments at their ends."""
        lines = self.text.replace("\\\n", " ").splitlines()
        bare = (re.sub(r"(^|\s+)#\s.*$", "", line).strip() for line in lines)
        return [line for line in bare if line]


def pages() -> list[str]:
    """All pages for users, as paths below the root."""
    found = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*/README.md")]
    return sorted(str(path.relative_to(ROOT)) for path in found)


def blocks_of(page: str, text: str | None = None) -> list[Block]:
    """The blocks of a page, in order; `text` is what stands there, if not in the file."""
    if text is None:
        text = (ROOT / page).read_text(encoding="utf-8")
    found: list[Block] = []
    lines = text.splitlines()
    before: list[str] = []
    at = 0
    while at < len(lines):
        opened = _FENCE.match(lines[at])
        if not opened:
            before.append(lines[at])
            at += 1
            continue
        indent = len(opened["fence"]) - len(opened["fence"].lstrip())
        end = at + 1
        while end < len(lines) and lines[end].strip() != opened["fence"].strip():
            end += 1
        if end == len(lines):
            raise ValueError(f"{page}:{at + 1}: this block has no end")
        inside = "".join(f"{line[indent:]}\n" for line in lines[at + 1 : end])
        prose = "\n".join(before)
        found.append(Block(page, at + 1, opened["kind"].strip(), inside, prose))
        before = []
        at = end + 1
    return found


def prose_of(page: str) -> str:
    """Text of a page outside of its blocks."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    for block in blocks_of(page):
        # The fences go as well.
        first = block.line - 1
        for at in range(first, first + block.text.count("\n") + 2):
            lines[at] = ""
    return "\n".join(lines)

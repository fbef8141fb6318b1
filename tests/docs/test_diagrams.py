"""The diagrams of docs/images: they name what exists, and their text stays inside of them."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from blocks import ROOT

SVG = "{http://www.w3.org/2000/svg}"
DIAGRAMS = sorted((ROOT / "docs/images").glob("*.svg"))
#: Widths of a letter in wide fonts such as DejaVu Sans, by class, in pixels.
LETTER = {"head": 8.2, "soft": 7.2, "": 7.8}


def drawn(path: Path) -> ElementTree.Element:
    return ElementTree.fromstring(path.read_text(encoding="utf-8"))


def number(element: ElementTree.Element, name: str) -> float:
    return float(element.get(name, "0"))


def overflowing(picture: ElementTree.Element) -> list[str]:
    """Texts that end behind the box that they begin in, or the picture."""
    *_, width, height = map(float, picture.get("viewBox", "").split())
    boxes = [
        (number(one, "x"), number(one, "y"), number(one, "width"), number(one, "height"))
        for one in picture.iter(f"{SVG}rect")
        if one.get("x")
    ]
    boxes.append((0.0, 0.0, width, height))
    found = []
    for text in picture.iter(f"{SVG}text"):
        x, y, words = number(text, "x"), number(text, "y"), text.text or ""
        # Zones lie below boxes, and labels of arrows may cross their edges.
        around = min(
            (
                box
                for box in boxes
                if box[0] <= x <= box[0] + box[2] and box[1] <= y <= box[1] + box[3]
            ),
            key=lambda box: box[2] * box[3],
        )
        end = x + LETTER[text.get("class", "")] * len(words)
        edge = around[0] + around[2] if around[3] <= 66 else width
        if end > edge:
            found.append(f"{words!r} ends at {end:.0f}, its box at {edge:.0f}")
    return found


def test_there_are_three() -> None:
    assert [path.stem for path in DIAGRAMS] == ["architecture", "call", "server"]


@pytest.mark.parametrize("path", DIAGRAMS, ids=lambda path: path.stem)
def test_it_is_readable_by_everyone(path: Path) -> None:
    picture = drawn(path)
    title = picture.find(f"{SVG}title")
    assert title is not None
    assert title.text
    assert picture.get("aria-labelledby") == title.get("id")
    style = picture.findtext(f"{SVG}style") or ""
    assert "prefers-color-scheme:dark" in style
    assert "@media print" in style
    assert overflowing(picture) == []


def test_text_that_does_not_fit_is_found() -> None:
    box = '<rect x="10" y="10" width="50" height="40"/><text x="14" y="30">much too long</text>'
    picture = ElementTree.fromstring(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 90 90">{box}</svg>'
    )
    assert len(overflowing(picture)) == 1


def test_crates_of_the_architecture_exist() -> None:
    texts = [one.text or "" for one in drawn(DIAGRAMS[0]).iter(f"{SVG}text")]
    named = {
        name
        for text in texts
        if (found := re.match(r"crates? (.*)", text))
        for name in re.findall(r"\w+", found[1].partition("with")[0].partition(";")[0])
        if name != "and"
    }
    assert {"client", "core", "agent", "server", "worker", "directory"} <= named
    assert [name for name in sorted(named) if not (ROOT / "crates" / name).is_dir()] == []

"""The table of contents beside each page, made once.

The theme makes it again for each page, which is most of the time that the site takes to build.
"""

from __future__ import annotations

import posixpath
from functools import partial
from typing import Any

from bs4 import BeautifulSoup, Tag
from furo.navigation import get_navigation_tree
from sphinx.application import Sphinx

_HERE = ("current", "current-page")
"""Classes of the entry of the page itself; what is above it has the first."""


class Navigation:
    """All entries, which are changed for each page: where links lead to, and which one is open."""

    def __init__(self, page: str, tree: str) -> None:
        """`tree`: what the theme makes for the page."""
        self._soup = BeautifulSoup(get_navigation_tree(tree), "html.parser")
        for entry in self._soup.find_all(["ul", "li", "a"]):
            entry["class"] = [name for name in entry.get("class", ()) if name not in _HERE]
        for box in self._soup.find_all("input"):
            box.attrs.pop("checked", None)
        self._links: list[tuple[Tag, str]] = [
            (link, posixpath.normpath(posixpath.join(posixpath.dirname(page), link["href"])))
            if link["href"] != "#"
            else (link, page)
            for link in self._soup.find_all("a")
        ]

    def of(self, page: str) -> str:
        """As HTML of this page."""
        folder = posixpath.dirname(page)
        here = None
        for link, target in self._links:
            link["href"] = "#" if target == page else posixpath.relpath(target, folder or ".")
            here = link if target == page else here
        if here is None:
            return str(self._soup)
        above = here.find_parents(["ul", "li"])
        boxes = [box for entry in above if (box := entry.find("input", recursive=False))]
        marked = [(tag, tag["class"]) for tag in (here, *above)]
        for tag, classes in marked:
            tag["class"] = [*classes, _HERE[0]]
        above[0]["class"].append(_HERE[1])
        for box in boxes:
            box["checked"] = ""
        html = str(self._soup)
        for tag, classes in marked:
            tag["class"] = classes
        for box in boxes:
            del box["checked"]
        return html


def _before(app: Sphinx, pagename: str, _: str, context: dict[str, Any], *__: object) -> None:
    """The theme gets nothing to make entries of."""
    if not hasattr(app, "navigation"):
        make = partial(context["toctree"], collapse=False, titles_only=True, maxdepth=-1)
        page = app.builder.get_target_uri(pagename)
        app.navigation = Navigation(page, make(includehidden=True))  # type: ignore[attr-defined]
    context["toctree"] = lambda **_: ""


def _after(app: Sphinx, pagename: str, _: str, context: dict[str, Any], *__: object) -> None:
    page = app.builder.get_target_uri(pagename)
    context["furo_navigation_tree"] = app.navigation.of(page)  # type: ignore[attr-defined]


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("html-page-context", _before, priority=400)
    app.connect("html-page-context", _after, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""How Sphinx makes the documentation site: `make docs`.

The sources are the Markdown files as they are in the repository, so that the same links work
here and where the repository is browsed. Nothing of the site comes from the network.

Sphinx, as it reads docstrings and takes dead links for errors, and is maintained: MkDocs 1 has no
releases any more, and its theme Material was supported until November 2026.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))

from interface_lexer import InterfaceLexer
from pygments.lexers.special import TextLexer

ROOT = Path(__file__).parents[2]

project = "gridrpc"
author = "the gridrpc project"
version = release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "navigation", "program_help"]
root_doc = "docs/README"
include_patterns = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/**.md",
    "docs/**.rst",
    "examples/*/README.md",
    "crates/*/README.md",
    "python/*/README.md",
    "datagrid/README.md",
    "java/README.md",
    "lisp/README.md",
]
# Builds leave large folders here. Of crates, packages and libraries, Sphinx reads the README only.
exclude_patterns = [
    ".*", "crates/*/[!R]*", "dist", "packaging", "python/*/[!R]*", "runs", "target", "tests",
    "datagrid/[!R]*", "java/[!R]*", "lisp/[!R]*",
]  # fmt: skip

# ---- Markdown

#: Headings are link targets under the names that GitHub gives them.
myst_heading_anchors = 4

# ---- The reference of Python

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_maximum_signature_line_length = 88
# Docstrings write code between single backticks.
default_role = "literal"

# ---- Pages

html_theme = "furo"
html_title = f"gridrpc {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
templates_path = ["templates"]
html_additional_pages = {"index": "begin.html"}
html_copy_source = False
html_show_sourcelink = False
# Browsers do not let a page that is opened from a file read others, to quote from them.
html_show_search_summary = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1b5e9e", "color-brand-content": "#1b5e9e"},
    "dark_css_variables": {"color-brand-primary": "#7db8f0", "color-brand-content": "#7db8f0"},
    "navigation_with_keys": True,
}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

#: Pages whose lists and tables of pages are the site's table of contents.
_CONTENTS = ("ARCHITECTURE", "docs/README", "docs/c/README", "docs/developers/notes/README")
_LISTED = re.compile(
    r"^(?:- |\| )\[(?P<title>[^\]]+)\]\((?P<page>[\w./-]+)\.(?:md|rst)\)", re.MULTILINE
)
_SECTION = re.compile(r"^## (?P<title>.+)$", re.MULTILINE)
#: A link to a folder: where repositories are browsed, its README is shown.
_FOLDER = re.compile(r"(?<=\]\()(?P<folder>[\w./-]+?)/?(?=\))")
#: Code in docstrings, between backticks; and texts between quotes, which are code as well.
_CODE = re.compile(r"(?P<code>`[^`]*`)|(?P<text>\"[^\"\s]+\")")


def _toctree(text: str, caption: str = "") -> str:
    """A table of contents with the pages that the text lists, under the titles that it has there;
    nothing if it lists none."""
    listed = [f"{found['title'].strip('`')} <{found['page']}>" for found in _LISTED.finditer(text)]
    options = [":hidden:", *([f":caption: {caption}"] if caption else [])]
    return "\n".join(["", "```{toctree}", *options, "", *listed, "```", ""]) if listed else ""


def _read(app: Sphinx, docname: str, source: list[str]) -> None:
    """What differs between the site and the places where the repository is browsed."""
    page = Path(app.srcdir, docname)

    def readme(found: re.Match[str]) -> str:
        folder = found["folder"]
        return f"{folder}/README.md" if (page.parent / folder / "README.md").is_file() else folder

    source[0] = _FOLDER.sub(readme, source[0])
    if docname == app.config.root_doc:
        _, *parts = _SECTION.split(source[0])
        for title, part in zip(parts[::2], parts[1::2], strict=True):
            source[0] += _toctree(part, title)
    elif docname in _CONTENTS:
        source[0] += _toctree(source[0])


def _read_docstring(*event: Any) -> None:
    """Texts between quotes are code: neither links nor typography."""
    lines: list[str] = event[-1]
    lines[:] = [
        _CODE.sub(lambda found: found["code"] or f"``{found['text']}``", line) for line in lines
    ]


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_lexer("csv", TextLexer)
    app.add_lexer("idl", InterfaceLexer)
    app.connect("source-read", _read)
    app.connect("autodoc-process-docstring", _read_docstring)
    return {"parallel_read_safe": True}

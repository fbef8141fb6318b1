"""Every command and program of README, docs and examples is run as it is printed: see reader.py."""

from __future__ import annotations

import pytest
from blocks import blocks_of, pages
from not_run import FAILS, GIVEN, NOT_RUN, SAYS

#: Pages whose blocks are checked together: all of them show calls of one library.
C_PAGES = [page for page in pages() if page.startswith("docs/c/") and page != "docs/c/README.md"]
#: All others are in a file of their own, so that they can be read side by side with these.
HERE = (
    "docs/c/README.md", "docs/calls.md", "docs/coming-from-ninf-g.md", "docs/configuration.md",
    "docs/errors.md", "docs/executors.md", "docs/fortran-functions.md", "docs/fortran.md",
    "docs/guide.md", "docs/idl.md",
    "docs/maps.md", "docs/modules.md", "docs/objects.md", "docs/resources.md",
    "docs/serialization.md", "docs/sessions.md", "docs/shared-data.md", "docs/workers.md",
)  # fmt: skip


@pytest.mark.parametrize("page", HERE)
def test_page(page, reader):
    wrong = reader.read(blocks_of(page))
    assert not wrong, "\n\n".join(wrong)


def test_pages_of_functions_in_c(reader):
    # They continue where the overview ends, which says how the module comes to be.
    wrong = reader.read(blocks_of("docs/c/README.md"))
    for page in C_PAGES:
        wrong += reader.read(blocks_of(page))
    assert not wrong, "\n\n".join(wrong)


def test_every_exception_is_one():
    """What is not run, and what is expected of commands, is on its page."""
    for table in (NOT_RUN, FAILS, SAYS):
        for page, entries in table.items():
            there = set()
            for block in blocks_of(page):
                there |= set(block.commands) if block.kind == "sh" else {block.text.split("\n")[0]}
            assert entries.keys() <= there, page
    assert GIVEN.keys() <= set(pages())

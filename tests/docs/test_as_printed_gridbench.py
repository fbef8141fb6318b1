"""The pages about gridbench, the README, the examples, and all that is new, as they are printed."""

from __future__ import annotations

import sys

import pytest
from blocks import ROOT, blocks_of, pages
from reader import Reader

sys.path.insert(0, str(ROOT / "tests/gridbench"))

from test_as_printed import C_PAGES, HERE

from linking import why_not

PAGES = [page for page in pages() if blocks_of(page) and page not in (*HERE, *C_PAGES)]


@pytest.mark.parametrize("page", PAGES)
def test_page(page, full_environment, tmp_path):
    if page == "docs/links.md" and (why := why_not()):
        pytest.skip(why)
    wrong = Reader(full_environment, tmp_path).read(blocks_of(page))
    assert not wrong, "\n\n".join(wrong)

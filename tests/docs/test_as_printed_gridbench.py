"""The pages about gridbench, the README, the examples, and all that is new, as they are printed."""

from __future__ import annotations

import sys

import pytest
from blocks import ROOT, blocks_of, pages
from not_run import NOT_RUN, OCTAVE

sys.path.insert(0, str(ROOT / "tests/gridbench"))

from test_as_printed import C_PAGES, HERE

import linking
from gridbench_testbed.services import gfarm, mounts, redis

PAGES = [page for page in pages() if blocks_of(page) and page not in (*HERE, *C_PAGES)]

#: Why a page cannot be followed here, as functions.
NEEDS = {
    "docs/databases.md": (gfarm.why_no_postgres,),
    "docs/ensemble-benchmark.md": (linking.why_not,),
    "docs/links.md": (linking.why_not,),
    "docs/sync.md": (lambda: gfarm.why_not("none"), mounts.why_no_passthrough, redis.why_not),
    "examples/database/README.md": (gfarm.why_no_postgres,),
}


@pytest.mark.octave
def test_octave(reader, monkeypatch):
    page = "docs/languages.md"
    run = {block: why for block, why in NOT_RUN[page].items() if why is not OCTAVE}
    monkeypatch.setitem(NOT_RUN, page, run)
    wrong = reader.read(blocks_of(page))
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.parametrize("page", PAGES)
def test_page(page, reader):
    for why_not in NEEDS.get(page, ()):
        if why := why_not():
            pytest.skip(why)
    wrong = reader.read(blocks_of(page))
    assert not wrong, "\n\n".join(wrong)

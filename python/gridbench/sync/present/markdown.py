"""The cases as a table in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gridbench.pages.markdown import escaped, table_lines
from gridbench.sync.bottlenecks import bottlenecks as limits_of
from gridbench.sync.cases import cases_of
from gridbench.sync.present.limiting import Limits, remembered
from gridbench.sync.present.notes import headline, notices, own_part
from gridbench.sync.present.rows import cases_table
from gridbench.sync.present.terminal import NO_COUNT
from gridbench.sync.record import Round


def markdown(rounds: Sequence[Round], *, limits: Limits = limits_of) -> str:
    """The outcome in sentences, and the table."""
    return "\n".join(_lines(rounds, limits)).rstrip() + "\n"


def _lines(rounds: Sequence[Round], limits: Limits) -> Iterator[str]:
    cases = cases_of(rounds)
    limits = remembered(limits)
    for line in headline(cases, limits):
        yield from (escaped(line), "")
    yield from (f"- {escaped(line)}" for line in notices(cases))
    if not cases:
        return
    yield ""
    yield from table_lines(cases_table(cases, limits))
    if not all(case.counts for case in cases):
        yield from ("", escaped(NO_COUNT))
    if told := own_part(cases):
        yield from ("", escaped(told))

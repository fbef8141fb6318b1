"""Runs as Markdown: what happened, in sentences, and their figures side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gridbench.pages.markdown import escaped, table_lines
from gridbench.report.page import cost_table, figures_table
from gridbench.report.prose import notices, sentences
from gridbench.report.run_analysis import Study
from gridbench.report.verdict import verdict


def markdown(studies: Sequence[Study]) -> str:
    """The outcome in sentences, and the tables."""
    return "\n".join(_lines(studies)).rstrip() + "\n"


def _lines(studies: Sequence[Study]) -> Iterator[str]:
    if told := verdict(studies):
        yield from (escaped(told), "")
    for study in studies:
        yield from (escaped(" ".join(sentences(study))), "")
        yield from (f"- {escaped(f'{notice.what} {notice.meaning}')}" for notice in notices(study))
        yield ""
    yield from (*table_lines(figures_table(studies)), "")
    yield from ("Cost of the job, per worker:", "", *table_lines(cost_table(studies)))

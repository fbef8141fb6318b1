"""The rounds of an engine, of which a report shows the one of median time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from gridbench.report.prose import counts, disturbed_only
from gridbench.report.run_analysis import Rounds, Study, study
from gridbench.report.source import load_runs
from gridbench.statistics.interval import index_of_median


def studies_of(sources: Iterable[Path]) -> list[Study]:
    """The runs that a report on the sources shows. InputError as for `load_runs`."""
    return together([study(run) for run in load_runs(sources)])


def together(studies: Iterable[Study]) -> list[Study]:
    """The rounds of each engine in the same results as one study: that of median time of those that
    count. Where a round has not ended well it is that round: an engine that loses a task in one
    round of five has not done its work. Other runs are as they were."""
    groups: dict[object, list[Study]] = {}
    for number, one in enumerate(studies):
        groups.setdefault(one.run.repeated or number, []).append(one)
    return [_shown(group) for group in groups.values()]


def _shown(group: list[Study]) -> Study:
    if group[0].run.repeated is None:
        return group[0]
    good = [one for one in group if counts(one)]
    busy = [one for one in group if disturbed_only(one)]
    bad = [one for one in group if not counts(one) and not disturbed_only(one)]
    middle = good or busy
    shown = bad[0] if bad else middle[index_of_median([one.end for one in middle])]
    totals, disturbed = (tuple(one.end for one in own) for own in (good, busy))
    return replace(shown, rounds=Rounds(totals, len(group), disturbed=disturbed))

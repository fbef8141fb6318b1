"""Which rounds of a scenario's cases are run: as many as were asked for, or until they tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gridbench.scenario.grids import ScenarioCase
from gridbench.scenario.plan import ScenarioItem, items_of
from gridbench.scenario.results import CaseResult
from gridbench.statistics.claims import FEWEST, MOST, undecided

ALIKE = 1.1
"""Factor within which what two engines cost beside the tasks is alike, and a single engine's cost
is known well enough."""


def rounds_of(
    cases: Sequence[ScenarioCase],
    engines: Sequence[str],
    rounds: int | None,
    *,
    seed: int,
    results: Callable[[], Sequence[CaseResult]],
) -> Iterator[list[ScenarioItem]]:
    """What to run, in batches: the next one is asked for when that of the last one is in `results`.

    `rounds` None: after `FEWEST` rounds of all, those cases again, round by round, in which it is
    open which engine costs less or, with one engine, what it costs; each `MOST` times at most.
    """
    yield items_of(cases, engines, FEWEST if rounds is None else rounds, seed)
    if rounds is not None:
        return
    for number in range(FEWEST, MOST):
        open_still = _open(results(), engines)
        items = [
            item
            for item in items_of(cases, engines, number + 1, seed)
            if item.round == number and item.engine in open_still.get(item.case.key, ())
        ]
        if not items:
            return
        yield items


def _open(results: Sequence[CaseResult], engines: Sequence[str]) -> dict[str, list[str]]:
    """By case the engines that have to run it again. One that has failed in it, or was skipped for
    want of memory or time, is not asked again."""
    out = {(one.case, one.engine) for one in results if one.status in ("skipped", "failed")}
    found: dict[str, dict[str, list[float]]] = {}
    for result in results:
        if result.engine in engines and (result.case, result.engine) not in out:
            values = found.setdefault(result.case, {}).setdefault(result.engine, [])
            if result.status == "done" and result.overhead_s is not None:
                values.append(result.overhead_s)
    return {case: undecided(values, ALIKE) for case, values in found.items()}

"""From how many workers on more of them add nothing, of rounds made by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridbench.analysis.scaling import Scalability, fit_scalability
from gridbench.sync.cases import PhaseScaling, scaling_of
from gridbench.sync.record import HoldPoint, Phase, Round, TaskRun

COUNTS = [1, 2, 4, 7, 14, 28, 56]


def one_round(
    workers: int,
    rate: float,
    *,
    of_bytes: bool = False,
    parameter: str = "",
    start: HoldPoint = "entry",
    repeat: int = 0,
    failed: bool = False,
) -> Round:
    """Its tasks take a second for their phase, and do so much together."""
    amount = round(rate / workers)
    phase = Phase(
        name="mkdir", seconds=1.0,
        bytes=amount if of_bytes else 0, operations=0 if of_bytes else amount,
    )  # fmt: skip
    tasks = tuple(
        TaskRun(worker=n, host="a", rank=n, status="ok", began=0.0, ended=1.0, phases=(phase,))
        for n in range(workers)
    )
    return Round(
        workers=workers, parameter=parameter, repeat=repeat, start=start, at="",
        status="failed" if failed else "done", prepared_in=0.0, tasks=tasks,
    )  # fmt: skip


def knee(rates: Mapping[int, float], *, of_bytes: bool = False) -> PhaseScaling:
    (found,) = scaling_of(one_round(n, rate, of_bytes=of_bytes) for n, rate in rates.items())
    return found


# ---- The law


@given(
    alone=st.floats(1, 1e9),
    contention=st.floats(0, 0.99),
    coherence=st.sampled_from([0.0, 1e-4, 1e-3, 0.02]),
)
def test_the_law_is_found_from_what_follows_it(
    alone: float, contention: float, coherence: float
) -> None:
    law = Scalability(alone, contention, coherence, 0.0)
    found = fit_scalability({n: law.rate(n) for n in COUNTS})
    assert found is not None
    assert found.alone == pytest.approx(alone, rel=1e-3)
    assert found.contention == pytest.approx(contention, rel=1e-3, abs=1e-5)
    assert found.coherence == pytest.approx(coherence, rel=1e-3, abs=1e-6)
    assert found.error < 1e-3


def test_the_law_has_a_maximum_or_none() -> None:
    assert Scalability(10, 0.0, 0.0, 0.0).most == math.inf
    assert Scalability(10, 1.5, 0.1, 0.0).most == 1
    law = Scalability(10, 0.1, 0.001, 0.0)
    assert law.most == pytest.approx(30)
    assert law.rate(1) == 10
    assert law.rate(30) > max(law.rate(29), law.rate(31))


def test_nothing_is_fitted_to_little() -> None:
    assert fit_scalability({1: 1.0, 2: 2.0, 3: 3.0}) is None
    assert fit_scalability({1: 1.0, 2: 2.0, 3: 0.0, 4: 4.0}) is None
    assert fit_scalability({1: 1.0, 2: 2.0, 3: math.nan, 4: 4.0}) is None


# ---- Sweeps


def test_a_sweep_that_still_rises_has_no_knee() -> None:
    found = knee({n: 100.0 * n for n in COUNTS}, of_bytes=False)
    assert found.workers is None
    assert found.told.startswith(
        "More workers still do more: 5,600 operations/s with 56, 2.00× those with 28."
    )
    assert "workers do not hold each other up" in found.told


def test_a_sweep_that_becomes_flat_has_one() -> None:
    found = knee({n: min(100.0 * n, 1400.0) for n in COUNTS})
    assert found.workers == 14
    assert found.told.startswith(
        "From 14 workers on, more of them add nothing: 1,400 operations/s with 14, and 1,400"
        " operations/s with 56."
    )


def test_a_sweep_that_falls_has_one_where_it_is_highest() -> None:
    law = Scalability(100.0, 0.05, 0.01, 0.0)
    found = knee({n: law.rate(n) for n in COUNTS})
    assert found.workers == 7
    assert found.told.startswith("Most is done by 7 workers, and more do less: ")
    assert found.law is not None
    assert "5 % of the work is done by one worker at a time, and each worker" in found.told
    assert "so that about 10 do the most." in found.told


def test_contention_alone_has_a_bound() -> None:
    law = Scalability(1e6, 0.1, 0.0, 0.0)
    found = knee({n: law.rate(n) for n in COUNTS})
    assert found.workers is None
    assert "so that any number of them stays below 10,000,000 operations/s" in found.told


def test_workers_can_cost_each_other_time_without_contention() -> None:
    law = Scalability(1e6, 0.0, 0.001, 0.0)
    assert "fits within 0 %: each worker costs every other one time, so that about 32" in (
        knee({n: law.rate(n) for n in COUNTS}).told
    )


def test_bytes_are_told_as_such() -> None:
    found = knee({n: min(n, 2) * 2.0**20 for n in COUNTS}, of_bytes=True)
    assert found.of_bytes
    assert found.rates[56] == pytest.approx(2**21, rel=1e-3)
    assert "2.10 MB/s with 2," in found.told


def test_what_does_not_follow_the_law_is_not_told_by_it() -> None:
    found = knee({1: 100.0, 2: 900.0, 4: 150.0, 8: 1200.0})
    assert found.law is None
    assert "law" not in found.told


def test_each_sweep_is_told_by_itself() -> None:
    starts: tuple[HoldPoint, ...] = ("entry", "exec")
    rounds = [
        one_round(n, 10_000.0 * n * scale, parameter=parameter, start=start, repeat=repeat)
        for start in starts
        for parameter in ("4k", "8k")
        for n in (1, 2, 4)
        for repeat, scale in enumerate((1.0, 5.0, 1.0))  # the median of which counts
    ]
    found = scaling_of(rounds)
    assert [(one.start, one.parameter) for one in found] == [
        ("entry", "4k"), ("entry", "8k"), ("exec", "4k"), ("exec", "8k"),
    ]  # fmt: skip
    assert all(one.rates == {1: 10_000, 2: 20_000, 4: 40_000} for one in found)


def test_few_counts_and_failed_rounds_tell_nothing() -> None:
    assert scaling_of([one_round(1, 100.0), one_round(2, 200.0)]) == ()
    assert scaling_of([one_round(n, 100.0 * n, failed=n == 4) for n in (1, 2, 4)]) == ()
    assert scaling_of([]) == ()


@given(st.dictionaries(st.integers(1, 50), st.floats(1e3, 1e9), min_size=3, max_size=6))
def test_any_sweep_is_told(rates: dict[int, float]) -> None:
    found = knee(rates)
    best = max(found.rates.values())
    if found.workers is None:
        assert found.rates[max(rates)] >= 0.95 * best
    else:
        assert found.rates[found.workers] >= 0.95 * best
        assert all(rate < 0.95 * best for n, rate in found.rates.items() if n < found.workers)
    assert found.told.endswith(".")
    assert "nan" not in found.told
    assert "inf" not in found.told

"""From how many workers on more of them add nothing, of rounds made by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden import same_as_golden
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


def examples() -> dict[str, PhaseScaling]:
    """Sweeps, by their form."""
    laws = {
        "Contention and coherence": Scalability(100.0, 0.05, 0.01, 0.0),
        "Contention alone": Scalability(1e6, 0.1, 0.0, 0.0),
        "Coherence alone": Scalability(1e6, 0.0, 0.001, 0.0),
    }
    return {
        "Still rising": knee({n: 100.0 * n for n in COUNTS}),
        "Flat from 14 workers on": knee({n: min(100.0 * n, 1400.0) for n in COUNTS}),
        "Bytes": knee({n: min(n, 2) * 2.0**20 for n in COUNTS}, of_bytes=True),
        "Without a law": knee({1: 100.0, 2: 900.0, 4: 150.0, 8: 1200.0}),
        **{name: knee({n: law.rate(n) for n in COUNTS}) for name, law in laws.items()},
    }


def test_sweeps_are_reported_as_reviewed() -> None:
    lines = [f"- {name}: {found.told}" for name, found in examples().items()]
    same_as_golden("\n".join(lines), "sync/scaling.md")


def test_the_number_of_workers_from_which_on_more_add_nothing() -> None:
    found = examples()
    assert {name: one.workers for name, one in found.items()} == {
        "Still rising": None, "Flat from 14 workers on": 14, "Bytes": 2, "Without a law": None,
        "Contention and coherence": 7, "Contention alone": None, "Coherence alone": 28,
    }  # fmt: skip
    assert found["Without a law"].law is None
    assert found["Bytes"].rates[56] == pytest.approx(2**21, rel=1e-3)


def test_each_sweep_is_reported_by_itself() -> None:
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
def test_any_sweep_is_reported(rates: dict[int, float]) -> None:
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

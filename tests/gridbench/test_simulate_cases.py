"""How predictions of cases are printed, and which are refused: of a model that is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from golden import same_as_golden
from gridbench.errors import InputError
from gridbench.model.kind import CaseEstimate, FittedModel, ModelParameter, Span
from gridbench.model.model_kind import parameters as of_tasks
from gridbench.pages.document import markdown
from gridbench.simulate import sweep as cases
from gridbench.simulate.document import cases_document
from gridbench.simulate.sweep import CasePrediction, CasePredictions

PARAMETERS = (ModelParameter("cores", "cores"), ModelParameter("size", "data", "bytes"))
CASE = {"cores": 2000.0, "size": 2048.0}
FAR = ("cores: 2,000 is outside what was measured, 1 to 8",)


@dataclass(frozen=True)
class Stated:
    """A model that only gives the names and the measured cases."""

    name: str = "one"
    told: str = "one on here"
    quantity: str = "total time"
    measured: Mapping[str, Span] = field(
        default_factory=lambda: {"cores": Span(1, 8), "size": Span(0.0, 0.0)}
    )


ONE: FittedModel = Stated()  # type: ignore[assignment]
OTHER: FittedModel = Stated("other", "other on here", "time of a task")  # type: ignore[assignment]


def _expected(total: float, *outside: str) -> CaseEstimate:
    parts = {"ideal": 0.5, "overhead": total - 0.5}
    return CaseEstimate(total=total, low=total / 2, high=total * 2, parts=parts, outside=outside)


def test_cases_are_shown_by_model_with_two_digits() -> None:
    near = {"cores": 4.0, "size": 2048.0}
    rows = [
        CasePrediction(ONE, near, _expected(1.234)),
        CasePrediction(ONE, CASE, _expected(12.34, *FAR)),
        CasePrediction(OTHER, near, _expected(1.5)),
    ]
    text = markdown(cases_document(CasePredictions(PARAMETERS, rows)))
    same_as_golden(text, "simulate/cases.md")


def test_what_no_run_had_is_refused_without_telling_how_far_it_is() -> None:
    with pytest.raises(InputError) as refused:
        cases._refuse_far(ONE, PARAMETERS, {"cores": 4.0, "size": 5.0})
    assert refused.value.what == "one on here: no run had data, and this has 5 B"
    assert "--far" in refused.value.remedy
    with pytest.raises(InputError) as refused:
        cases._refuse_far(ONE, PARAMETERS, {"cores": 2000.0, "size": 0.0})
    assert refused.value.what == f"one on here: {FAR[0]}: more than 10 times as far"


def test_values_are_parsed_by_what_they_are() -> None:
    found = cases._given(["cores=1,2", "size=2KB"], PARAMETERS, "tasks")
    assert found == {"cores": [1, 2], "size": [2048]}
    with pytest.raises(InputError) as refused:
        cases._given(["cores"], PARAMETERS, "tasks")
    assert refused.value.remedy == "give --case cores=..., --case size=..."


def test_tasks_have_no_data_unless_it_is_requested() -> None:
    usual = {one.name: one.usual for one in of_tasks}
    assert (usual["input"], usual["shared"], usual["output"]) == (0, 0, 0)
    assert [name for name, value in usual.items() if value is None] == ["cores", "tasks", "sleep"]

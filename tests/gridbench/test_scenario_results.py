"""The results of a scenario: going on, reading while it runs, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gridbench.errors import InputError
from gridbench.jsonl_store import Header, RecordFile
from gridbench.scenario.results import CASES, FORM, CaseResult, read_cases

HEADER = Header(
    machine={"host": "here"},
    versions={"python": "3.11"},
    options={"scenario": 3, "time_scale": 0.01},
    started="2031-01-01T00:00:00+0000",
    seed=7,
)
RESULT = CaseResult(
    scenario=3,
    case="100-cores-10-tasks",
    engine="gridrpc-native",
    cores=100,
    tasks=10,
    sleep_s=0.3,
    time_scale=0.01,
    bytes_in=0,
    bytes_shared=0,
    bytes_out=0,
    status="done",
    total_s=0.5,
    ideal_s=0.3,
    figures={"start_up": 0.1},
    folder=Path("runs", "100-cores-10-tasks", "gridrpc-native"),
)
SKIPPED = replace(
    RESULT, case="other", status="skipped", reason="time", total_s=None, ideal_s=None, folder=None
)


def _written(folder: Path, *results: CaseResult) -> RecordFile[CaseResult]:
    cases = FORM.open(folder, HEADER, fresh=False)
    for result in results:
        cases.add(result)
    return cases


def test_results_are_there_again(tmp_path: Path) -> None:
    _written(tmp_path, RESULT, SKIPPED).close()
    cases = FORM.open(tmp_path, replace(HEADER, seed=8), fresh=False)
    assert (cases.records, cases.header) == ([RESULT, SKIPPED], HEADER)
    cases.close()
    assert read_cases(tmp_path) == [
        replace(RESULT, folder=tmp_path / "runs" / "100-cores-10-tasks" / "gridrpc-native"),
        SKIPPED,
    ]


def test_the_latest_result_of_a_case_counts(tmp_path: Path) -> None:
    failed = replace(RESULT, status="failed", reason="the engine failed", total_s=None)
    again = replace(RESULT, round=1)
    _written(tmp_path, failed, SKIPPED, RESULT, again).close()
    assert [case.status for case in read_cases(tmp_path)] == ["done", "skipped", "done"]
    assert RESULT.overhead_s == pytest.approx(0.2)
    assert failed.overhead_s is None


def test_a_line_that_is_being_written_is_left_out_and_stays(tmp_path: Path) -> None:
    _written(tmp_path, RESULT).close()
    path = tmp_path / CASES
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"scenario": 3, "ca')
    assert len(read_cases(tmp_path)) == 1
    assert path.read_bytes() != whole  # only whoever continues may cut it off
    _written(tmp_path).close()
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("line", "text", "message"),
    [
        (
            1,
            '{"kind": "gridbench micro", "format": 1}',
            "is not the header of results of a scenario",
        ),
        (2, "tid sleep submit", "the file of cases is damaged: is not JSON"),
        (2, json.dumps({"scenario": 3}), "case is missing"),
        (3, '{"scenario": "three"}', "scenario is `'three'`, not a whole number"),
    ],
)
def test_a_damaged_or_foreign_line_is_named(
    tmp_path: Path, line: int, text: str, message: str
) -> None:
    _written(tmp_path, RESULT, SKIPPED).close()
    path = tmp_path / CASES
    lines = path.read_text().splitlines()
    lines[line - 1] = text
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match=message) as caught:
        read_cases(tmp_path)
    assert (caught.value.file, caught.value.line) == (path, line)


def test_a_folder_without_results_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no results of a scenario"):
        read_cases(tmp_path)


def test_other_options_are_not_mixed(tmp_path: Path) -> None:
    _written(tmp_path, RESULT).close()
    other = replace(HEADER, options={"scenario": 3, "time_scale": 1.0})
    with pytest.raises(InputError, match=r"time_scale was `0.01`, and now is `1.0`"):
        FORM.open(tmp_path, other, fresh=False)

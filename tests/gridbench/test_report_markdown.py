"""What results tell, as Markdown: `gridbench report --markdown`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gridbench.errors import InputError
from gridbench.result_kind import report_markdown
from gridbench.scenario.published import NINFG, SYMPHONY
from micro_results import made
from running import REPOSITORY, Run
from scenario_results import all_done, write_folder

LOG = REPOSITORY / "tests/gridbench/data/symphony_sample.log"


def rows(text: str) -> Iterator[list[str]]:
    """The cells of all rows of all tables."""
    for line in text.splitlines():
        if line.startswith("|"):
            yield [cell.strip() for cell in line.removeprefix("|").removesuffix("|").split(" |")]


def test_a_run_is_reported_with_its_figures(gridbench: Run, tmp_path: Path) -> None:
    done = gridbench("report", LOG, "--markdown", "tables.md")
    assert (done.returncode, done.stdout) == (0, "tables: tables.md\n")
    text = (tmp_path / "tables.md").read_text()
    reported = {row[0]: row[1:] for row in rows(text)}
    assert reported["Tasks succeeded"] == ["8"]
    # The last of its results came back then.
    assert reported["Total time"] == ["35.67 s"]
    assert text.startswith("symphony\\_sample: 8 of 1,200 tasks on 400 workers")


def test_json_says_where_the_tables_are(gridbench: Run) -> None:
    done = gridbench("report", LOG, "--markdown", "tables.md", "--json")
    assert json.loads(done.stdout) == {"tables": "tables.md"}


def test_a_dash_is_standard_output(gridbench: Run, tmp_path: Path) -> None:
    done = gridbench("report", LOG, "--markdown", "-")
    assert done.stdout == report_markdown([LOG])
    assert list(tmp_path.iterdir()) == []
    both = gridbench("report", LOG, "--markdown", "-", "--json")
    assert (both.returncode, both.stdout) == (2, "")


def test_scenarios_stand_beside_what_is_published(tmp_path: Path) -> None:
    for number in (6, 3):
        write_folder(tmp_path / f"scenario-{number}", number, all_done(number))
    text = report_markdown([tmp_path])
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## 3. Start-up cost",
        "## 6. Work split into n tasks",
    ]
    heads = [row for row in rows(text) if SYMPHONY in row]
    assert heads == [["", SYMPHONY, NINFG, "gridrpc-native"]] * 4
    assert ["100 tasks, no data", "5.639 s", "23.33 s", "1.500 s"] in list(rows(text))


def test_disturbed_cases_give_a_provisional_answer(tmp_path: Path) -> None:
    invalid = [replace(one, status="invalid", reason="disturbed: x") for one in all_done(6)]
    write_folder(tmp_path, 6, invalid)
    text = report_markdown([tmp_path])
    assert "- Provisional: " in text
    assert SYMPHONY not in text


def test_one_table_is_of_one_result(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "results.json").write_text(json.dumps(made().to_record()))
    sources = [tmp_path / "a", tmp_path / "b"]
    assert report_markdown(sources[:1]).startswith("gridrpc-python is ahead")
    with pytest.raises(InputError, match="cannot be in one report with others"):
        report_markdown(sources)


@pytest.mark.parametrize("other", [("--out", "x.html"), ("--fail-above", "5%"), ("--scenario", 6)])
def test_tables_are_all_that_is_written(
    gridbench: Run, tmp_path: Path, other: tuple[str, object]
) -> None:
    done = gridbench("report", LOG, "--markdown", "tables.md", *other)
    assert done.returncode == 2
    assert "--markdown writes tables and nothing else" in done.stderr
    assert list(tmp_path.iterdir()) == []

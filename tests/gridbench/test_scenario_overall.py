"""The page of several folders: those of one scenario stand together, if they can."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gridbench.jsonl_store import Header
from gridbench.result_kind import report_markdown, write_report
from gridbench.scenario.document import parts_of
from gridbench.scenario.results import CASES, FORM, CaseResult
from scenario_results import all_done, header_of

Write = Callable[..., Path]


def with_own_part(results: list[CaseResult], seconds: float) -> list[CaseResult]:
    return [replace(one, figures=one.figures | {"harness": seconds}) for one in results]


def folder_of(folder: Path, header: Header, results: list[CaseResult]) -> Path:
    file = FORM.open(folder, header, fresh=False)
    for one in results:
        file.add(one)
    file.close()
    return folder


def two_engines(place: Path, *, slower: float = 8.5e-6, **options: object) -> list[Path]:
    """Scenario 4 of an engine in each folder; `options` are those of the second."""
    ours, ray = all_done(4, "gridrpc-native"), all_done(4, "ray", slower=2.0)
    return [
        folder_of(place / "native", header_of(4), with_own_part(ours, 8e-6)),
        folder_of(place / "ray", header_of(4, **options), with_own_part(ray, slower)),
    ]


def text_of(folders: list[Path], out: Path) -> str:
    write_report(folders, out)
    return html.unescape(out.read_text(encoding="utf-8"))


def headings(page: str) -> list[str]:
    return re.findall(r"<h2>(.*?)</h2>", page)


def test_two_engines_of_a_scenario_have_one_section(tmp_path: Path) -> None:
    page = text_of(two_engines(tmp_path), tmp_path / "report.html")
    assert headings(page) == ["4. Delay by input data", "Engines side by side"]
    assert page.count("4. Delay by input data") == 2  # in the navigation, and above the section
    assert "Scenarios 4" not in page
    assert (
        "Scenario 4: The benchmark's own part of each task, with an engine that does nothing, was"
        " 8.000 µs beside gridrpc-native and 8.500 µs beside ray in the median." in page
    )
    assert page.count("Each case was measured once") == 1
    for name, link in (("gridrpc-native", "native"), ("ray", "ray")):
        row = rf'{name}</th><td><a href="{link}/report\.html">All of scenario 4</a>'
        assert re.search(row, page.replace("\n", ""))


def test_what_does_not_differ_has_no_engines(tmp_path: Path) -> None:
    page = text_of(two_engines(tmp_path, slower=8e-6), tmp_path / "report.html")
    assert "does nothing, was 8.000 µs in the median." in page


def test_engines_with_cases_measured_once_are_named(tmp_path: Path) -> None:
    ours = all_done(4)
    folders = [
        folder_of(tmp_path / "ours", header_of(4), [*ours, *(replace(o, round=1) for o in ours)]),
        folder_of(tmp_path / "ray", header_of(4), all_done(4, "ray")),
    ]
    page = text_of(folders, tmp_path / "report.html")
    assert "Scenario 4: Each case of ray was measured once" in page


@pytest.mark.parametrize("options", [{"start": "warm"}, {"time_scale": 0.5}])
def test_what_was_measured_in_another_way_stands_apart(
    options: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = text_of(two_engines(Path(), **options), Path("report.html"))
    assert headings(page)[:2] == [
        "4. Delay by input data (native)",
        "4. Delay by input data (ray)",
    ]
    assert "Scenarios 4 (native), 4 (ray): One host" in page


def test_the_same_engine_twice_is_no_repetition(tmp_path: Path) -> None:
    folders = [folder_of(tmp_path / name, header_of(3), all_done(3)) for name in ("old", "new")]
    assert [len(part.folders) for part in parts_of(folders)] == [1, 1]


def test_other_machines_are_not_put_together(tmp_path: Path) -> None:
    header = replace(header_of(3), machine={"host": "elsewhere"})
    folders = [
        folder_of(tmp_path / "here", header_of(3), all_done(3)),
        folder_of(tmp_path / "there", header, all_done(3, "ray")),
    ]
    assert [len(part.folders) for part in parts_of(folders)] == [1, 1]


def test_tables_have_one_section_too(tmp_path: Path) -> None:
    text = report_markdown(two_engines(tmp_path))
    assert text.count("## 4. Delay by input data") == 1
    assert "gridrpc-native:" in text
    assert "ray:" in text
    (tmp_path / "ray" / CASES).unlink()
    assert report_markdown([tmp_path / "native"]).count("own part of each task") == 1

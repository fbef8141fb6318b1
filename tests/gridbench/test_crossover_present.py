"""Presentation of the crossover: terminal, JSON, Markdown, the page, comparisons."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from browsing import drawn, opened
from crossover_results import (
    DISTURBED,
    EACH,
    ENGINES,
    MB,
    ONCE,
    READERS,
    SIZES,
    from_grid,
    header_of,
    measured,
    sharing_of,
    write_folder,
)
from golden import same_as_golden
from gridbench.datagrid.crossover.answer import answer_of
from gridbench.datagrid.crossover.document import (
    answer_values,
    costs,
    document_of,
    headline,
    notices,
    sized,
)
from gridbench.datagrid.crossover.plots import crossings, over_readers, over_size
from gridbench.datagrid.crossover.record import SharingRecord
from gridbench.errors import InputError
from gridbench.pages.document import markdown
from gridbench.pages.terminal import print_document
from gridbench.result_kind import write_report
from gridbench.results.table import compared, measures_of
from gridbench.statistics.crossing import Crossing
from running import Run

EVIL = "<script>document.title='broken'</script><b>bold</b>"


FOLDERS: dict[str, list[SharingRecord]] = {
    "all": measured(ENGINES, readers=(1, 4, 16), sizes=(MB, 16 * MB, 256 * MB)),
    "nothing": [],
    "failed": [sharing_of("ray", 1, MB, 0.0, status="failed", why="it ended")],
    "one side": measured(ENGINES, None),
    "one measurement of each": [sharing_of("ray", 1, MB, 1.0), from_grid(1, MB, 2.0, 1.0)],
    "one number of readers": measured(ENGINES, readers=(4,)),
    "one size": measured(ENGINES, sizes=(4 * MB,)),
    "disturbed": [replace(one, load=DISTURBED) for one in measured(ENGINES, repeats=1)],
}


def printed(found: Sequence[SharingRecord], width: int = 200) -> str:
    out = io.StringIO()
    print_document(Console(file=out, width=width), document_of(header_of(), found))
    return out.getvalue()


def said(found: Sequence[SharingRecord]) -> list[str]:
    return headline(answer_of(found), found)


def warned(found: Sequence[SharingRecord]) -> str:
    return " ".join(notices(answer_of(found), found))


@pytest.mark.parametrize("name", FOLDERS)
def test_a_crossover_is_written_as_before(name: str) -> None:
    text = markdown(document_of(header_of(), FOLDERS[name]))
    same_as_golden(f"{text}\nIn a terminal:\n\n{printed(FOLDERS[name])}", f"crossover/{name}.md")


def test_markdown_escapes_names() -> None:
    evil = [replace(one, title=EVIL) for one in measured(ENGINES)]
    assert EVIL not in markdown(document_of(header_of(), evil))


def test_what_has_to_be_known_is_reported() -> None:
    quiet = measured({"process-pool": EACH})
    assert warned(quiet) == ""
    noisy = [replace(one, load=DISTURBED) for one in quiet]
    assert "Other programs disturbed 150 of 150" in warned(noisy)
    (message, *_) = said(noisy)
    assert message == (
        f"Provisional: {said(quiet)[0].removesuffix('.')}; the machine was busy in 150 of 150"
        " measurements."
    )
    assert "ther programs disturbed 1 of 150" in warned([*quiet[:-1], noisy[-1]])
    inside = [replace(one, members=0, title="Embedded map") for one in quiet]
    assert "Embedded map is in the readers' own process" in warned(inside)
    failed = [
        sharing_of("ray", 2, n * MB, 0.0, status="failed", why=f"it ended {n}") for n in range(1, 9)
    ]
    assert "ray, 1 MB for 2 readers, was not measured: it ended 1." in warned(quiet + failed)
    assert "3 more were not made." in warned(quiet + failed)


def test_places_are_reported_in_words() -> None:
    assert sized(13.256 * MB) == "13.3 MB"
    assert sized(1024.0 * MB) == "1 GB"
    assert sized(512) == "512 B"
    assert Crossing("from", 4 * MB).describe(sized) == "from 4 MB"
    assert Crossing("never").describe(sized) == "never"
    assert Crossing("from", 4.0 * MB, 2.0 * MB, 8.0 * MB).spread(sized) == "2 MB to 8 MB"
    assert Crossing("from", 4.0 * MB, 0.0, 8.0 * MB).spread(sized) == "not certain"
    assert Crossing("always", low=0.0, high=0.0).spread(sized) == ""


def test_costs_are_reported_in_words() -> None:
    answer = answer_of(measured(ENGINES))
    assert costs(answer.compute["process-pool"]) == (
        "2.00 ms + 1.00 ms for each reader + data at 1.00 GB/s for each reader"
    )
    assert costs(answer.grids["hazelcast"]).startswith("52.0 ms + putting at 105 MB/s + reading at")


def test_names_steer_no_terminal() -> None:
    found = [replace(one, title="a\x1b[31mb") for one in measured({"process-pool": EACH})]
    assert "\x1b[31m" not in printed(found)


def test_json_has_null_where_nothing_is_known() -> None:
    found = measured(ENGINES)
    record = answer_values(answer_of(found), found)
    text = json.dumps(record, allow_nan=False)
    assert json.loads(text) == record
    pair = next(
        one
        for one in record["crossings"]
        if one["compute_grid"] == "process-pool" and not one["there_already"]
    )
    assert pair["data_grid"] == "hazelcast"
    assert pair["bytes_by_readers"]["1"]["kind"] == "never"
    assert pair["bytes_by_readers"]["1"]["at"] is None
    assert pair["bytes_by_readers"]["16"]["at"] == pytest.approx(13.3 * MB, rel=0.01)
    models = {(one["side"], one["engine"]): one for one in record["models"]}
    assert models["compute grid", "process-pool"]["reader"] == pytest.approx(1e-9, rel=1e-6)
    assert models["data grid", "hazelcast"]["held_out"][0]["typical"] < 0.1


def test_pictures_have_a_line_and_a_prediction_for_each_way() -> None:
    answer = answer_of(measured(ENGINES))
    sizes, readers = over_size(answer), over_readers(answer)
    assert [one.id for one in sizes] == [f"readers-{n}" for n in READERS]
    assert [one.id for one in readers] == [f"size-{size}" for size in SIZES]
    for curve in (*sizes, *readers):
        assert [bool(line.dash) for line in curve.lines] == [False, True] * 4
        assert [len(line.points) for line in curve.lines] == [5, 24] * 4
    model = sizes[-1].lines[3]
    first, last = model.points[0], model.points[-1]
    assert first.value.value == pytest.approx(EACH.line(16).at(MB), rel=0.01)
    assert last.value.value == pytest.approx(EACH.line(16).at(256 * MB), rel=0.01)
    found = crossings(answer)
    (measured_line, predicted) = [line for line in found.lines if line.points]
    assert measured_line.name == "process-pool or Hazelcast (put and read)"
    assert [point.place.x for point in measured_line.points] == [16]
    assert measured_line.points[0].value.value == pytest.approx(13.3, rel=0.01)
    assert predicted.points[0].value.value == pytest.approx(12.4, rel=0.01)


@pytest.mark.parametrize("name", FOLDERS)
def test_there_is_a_page_of_anything(driver, tmp_path: Path, name: str) -> None:
    write_folder(tmp_path, FOLDERS[name])
    write_report([tmp_path], tmp_path / "report.html")
    opened(driver, tmp_path / "report.html")
    assert driver.find_element("css selector", ".verdict").text == said(FOLDERS[name])[0]
    assert printed(FOLDERS[name])


def test_all_pictures_are_drawn_and_others_can_be_chosen(driver, tmp_path: Path) -> None:
    write_folder(tmp_path, measured(ENGINES))
    write_report([tmp_path], tmp_path / "report.html")
    opened(driver, tmp_path / "report.html")
    figures = driver.execute_script(
        "return [...document.querySelectorAll('[data-chart]')].map(figure => figure.dataset.name)"
    )
    assert figures == ["readers-16", f"size-{256 * MB}", "crossings"]
    for found in drawn(driver).values():
        assert found["width"] > 300
        assert found["marks"] > 0
    lines = "return document.querySelector('#summary [data-chart] .js-plotly-plot').data"
    before = [line["y"] for line in driver.execute_script(lines)]
    assert len(before) == 8
    driver.execute_script(
        "const chosen = document.querySelector('#summary select');"
        "chosen.value = 'readers-1'; chosen.dispatchEvent(new Event('change'));"
    )
    after = [line["y"] for line in driver.execute_script(lines)]
    assert after[0][-1] == pytest.approx(ONCE.line(1).at(256 * MB), rel=0.01)
    assert before[0][-1] == pytest.approx(ONCE.line(16).at(256 * MB), rel=0.01)
    assert driver.get_log("browser") == []


def test_hostile_names_are_shown_as_they_are(driver, tmp_path: Path) -> None:
    found = [replace(one, title=EVIL, why=EVIL) for one in measured(ENGINES, repeats=1)]
    found.append(sharing_of("ray", 1, MB, 0.0, status="failed", why=EVIL))
    write_folder(tmp_path, found, note=EVIL)
    write_report([tmp_path], tmp_path / "report.html")
    opened(driver, tmp_path / "report.html")
    assert driver.title == "gridbench data crossover: shared data or a data grid"
    assert driver.execute_script("return document.querySelectorAll('b').length") == 0


def test_two_results_are_compared(tmp_path: Path) -> None:
    before = write_folder(tmp_path / "a", measured(ENGINES, spread=0.001))
    slower = [
        replace(one, seconds=2 * one.seconds) if one.engine == "process-pool" else one
        for one in measured(ENGINES, spread=0.001)
    ]
    after = write_folder(tmp_path / "b", slower)
    found = compared(measures_of(before), measures_of(after))
    worse = {one.engine for one in found if one.verdict == "worse"}
    assert worse == {"process-pool"}
    assert len(found) == 4 * 25
    with pytest.raises(InputError, match="cannot be in one report with others"):
        write_report([before, after], tmp_path / "both.html")


def test_the_program_makes_a_page(tmp_path: Path, gridbench: Run) -> None:
    write_folder(tmp_path / "a", measured(ENGINES))
    made = gridbench("report", "a")
    assert made.returncode == 0, made.stderr
    assert "from 13.3 MB" in (tmp_path / "a" / "report.html").read_text()


def test_a_crossover_without_a_valid_case_cannot_be_compared(tmp_path: Path) -> None:
    noisy = [replace(one, load=DISTURBED) for one in measured(ENGINES, repeats=1)]
    folder = write_folder(tmp_path, noisy)
    with pytest.raises(InputError, match=r"counts, .*: of \d+ measurements, \d+ disturbed"):
        measures_of(folder)

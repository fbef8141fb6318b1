"""The report in a real browser: it draws, stays silent, asks for nothing, and can be saved."""

from __future__ import annotations

import csv
import io
import os
import time
from pathlib import Path

import numpy as np
import pytest
from browser import picture

import timelines
from browsing import drawn, opened, pixels
from gridbench.pages.render import page as page_in_html
from gridbench.report.charts import MOST_TASKS
from gridbench.report.document import document_of
from gridbench.report.run_analysis import study
from gridbench.report.source import Run

EVIL = "<script>document.title='broken'</script><b>bold</b>"
SECONDS_TO_DOWNLOAD = 30


def render(studies):
    return page_in_html(document_of(studies))


def page_of(folder: Path, *tables, nnodes: int = 4, ntasks: int | None = None) -> Path:
    path = folder / "report.html"
    runs = [
        Run(f"engine-{n}", Path(f"runs/{n}"), table, ntasks or table.num_rows, nnodes, True, {}, ())
        for n, table in enumerate(tables)
    ]
    path.write_text(render([study(run) for run in runs]), encoding="utf-8")
    return path


def saved(folder: Path, name: str) -> bytes:
    path = folder / name
    until = time.monotonic() + SECONDS_TO_DOWNLOAD
    while not (path.exists() and path.stat().st_size > 0):
        assert time.monotonic() < until, f"{name} was not saved: {os.listdir(folder)}"
        time.sleep(0.05)
    return path.read_bytes()


def rows_of(text: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text.decode())))


def test_two_runs_are_drawn(driver, tmp_path):
    opened(driver, page_of(tmp_path, timelines.made_run(40, 4), timelines.made_run(30, 4, seed=2)))
    pictures = drawn(driver)
    shared = {"totals", "running", "cost", "phases", "overhead"}
    assert set(pictures) == shared | {
        "stamps-1-submit",
        "gantt-1",
        "stamps-2-submit",
        "gantt-2",
    }
    for name, found in pictures.items():
        assert found["width"] > 400, name
        assert found["height"] > 150, name
        assert found["marks"] >= 2, name
    png = picture(driver)
    assert png.startswith(b"\x89PNG")
    assert len(np.unique(pixels(png))) > 20


def test_a_run_that_lacks_tasks_is_drawn(driver, tmp_path):
    opened(driver, page_of(tmp_path, timelines.made_run(40, 4), ntasks=50))
    pictures = drawn(driver)
    # What lost tasks would have been taken for is left out; all else is there.
    assert pictures["cost"]["marks"] == 0
    for name in ("running", "phases", "stamps-1-submit", "gantt-1"):
        assert pictures[name]["marks"] >= 2, name


def test_phases_have_their_colours_and_the_end_is_marked(driver, tmp_path):
    table = timelines.table_of(
        [
            {"submit": 0.0, "calc_in": 1.0, "calc_out": 3.0, "retrieve": 4.0},
            {"submit": 0.0, "calc_in": 6.0, "calc_out": 9.0, "retrieve": 10.0},
        ]
    )
    opened(driver, page_of(tmp_path, table, nnodes=1))
    fills = driver.execute_script(
        """return document.querySelector('[data-name="gantt-1"] .js-plotly-plot').data
           .filter(trace => trace.type === "bar")
           .map(trace => [trace.name, trace.marker.color, trace.base, trace.x])"""
    )
    assert [name for name, *_ in fills] == [
        "start-up and first input",
        "input",
        "processing",
        "output",
    ]
    spans = {name: (begin, length) for name, _, begin, length in fills}
    assert spans["input"] == ([4], [2])
    assert spans["processing"] == ([1, 6], [2, 3])
    assert spans["output"] == ([3, 9], [1, 1])
    colours = {name: [int(fill[i : i + 2], 16) for i in (1, 3, 5)] for name, fill, *_ in fills}
    for name, strongest in (("input", 1), ("processing", 0), ("output", 2)):
        assert int(np.argmax(colours[name])) == strongest
    text = driver.find_element("css selector", '[data-name="gantt-1"]').text
    assert "end of job, 10.00 s" in text


def test_stamps_can_be_sorted_by_retrieve(driver, tmp_path):
    opened(driver, page_of(tmp_path, timelines.made_run(40, 4)))
    of_retrieve = """return document.querySelector('[data-name^="stamps-1"] .js-plotly-plot').data
        .find(trace => trace.name === "retrieve").y"""
    before = driver.execute_script(of_retrieve)
    driver.find_element("css selector", 'option[value="stamps-1-retrieve"]').click()
    after = driver.execute_script(of_retrieve)
    assert before != after
    assert after == sorted(before)
    assert driver.get_log("browser") == []


def test_pictures_and_tables_can_be_saved(driver, downloads, tmp_path):
    table = timelines.made_run(40, 4)
    opened(driver, page_of(tmp_path, table))
    for name in ("gantt-1", "stamps-1-submit"):
        for button in driver.find_elements("css selector", f'[data-name="{name}"] .tools button'):
            button.click()
    assert b"<svg" in saved(downloads, "gridbench-report-gantt-1.svg")
    png = saved(downloads, "gridbench-report-gantt-1.png")
    assert len(np.unique(pixels(png))) > 5
    bars = rows_of(saved(downloads, "gridbench-report-gantt-1.csv"))
    workers = {int(row["of"]): row["on"] for row in bars if row["line"] == "processing"}
    hosts = zip(*(table[n].to_pylist() for n in ("tid", "host", "worker")), strict=True)
    assert workers == {task: f"{host}/{worker}" for task, host, worker in hosts}
    stamps = rows_of(saved(downloads, "gridbench-report-stamps-1-submit.csv"))
    tasks = [int(row["of"]) for row in stamps if row["line"] == "submit"]
    assert sorted(tasks) == sorted(table["tid"].to_pylist())
    ends = [float(row["time since t = 0 [s]"]) for row in stamps if row["line"] == "retrieve"]
    known = dict(zip(*(table[n].to_pylist() for n in ("tid", "retrieve")), strict=True))
    assert ends == pytest.approx([known[task] for task in tasks], abs=1e-6)
    assert driver.get_log("browser") == []


def test_ten_thousand_tasks_on_four_hundred_workers(driver, tmp_path):
    path = page_of(tmp_path, timelines.made_run(10_000, 400), nnodes=400)
    assert path.stat().st_size < 1.7e6
    # open_report gives up after a minute; the time itself is no business of a test.
    opened(driver, path)
    assert all(found["marks"] >= 1 for found in drawn(driver).values())
    assert driver.execute_script("return document.getElementsByTagName('*').length") < 15_000
    points = driver.execute_script(
        """return document.querySelector('[data-name="gantt-1"] .js-plotly-plot').data
           .find(trace => trace.name === "processing").x.length"""
    )
    assert points == MOST_TASKS


@pytest.mark.parametrize(
    ("rows", "pictures"),
    [
        ([], set()),
        ([{}], set()),
        ([{"status": "worker died"}] * 3, set()),
        (
            [{"submit": 0.1, "calc_in": 1.0, "calc_out": 2.0, "retrieve": 2.5}],
            {"running", "cost", "phases", "overhead", "stamps-1-submit", "gantt-1"},
        ),
    ],
    ids=["no task", "all NaN", "all failed", "one task"],
)
def test_little_to_draw(driver, tmp_path, rows, pictures):
    opened(driver, page_of(tmp_path, timelines.table_of(rows), ntasks=max(1, len(rows))))
    assert {name for name, found in drawn(driver).items() if found["height"]} == pictures
    empty = driver.find_elements("css selector", ".empty")
    assert len(empty) == 6 - len(pictures)


def test_names_from_logs_are_shown_not_run(driver, tmp_path):
    row = {"submit": 0.0, "calc_in": 1.0, "calc_out": 2.0, "retrieve": 3.0}
    table = timelines.table_of([row | {"worker": EVIL, "host": EVIL}, {"status": EVIL}])
    opened(driver, page_of(tmp_path, table))
    assert driver.title == "gridbench report: engine-0"
    assert driver.find_elements("css selector", "figure b, .notice b") == []
    assert EVIL in driver.find_element("css selector", ".notice").text
    # Plotly's own small markup would have made the name bold.
    tick = driver.find_element("css selector", '[data-name="gantt-1"] .yaxislayer-above text')
    assert tick.get_attribute("textContent").startswith("<script>")

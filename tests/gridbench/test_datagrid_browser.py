"""The page of data grids in a browser: drawn, silent, dark or light, narrow or wide."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from browser import picture

from browsing import drawn, opened, pixels
from datagrid_cases import EVIL, campaign, four, header_of, killed, made
from gridbench.datagrid.cases import repeats_of
from gridbench.datagrid.document import document_of
from gridbench.datagrid.record import DataGridCase, TaskTimeline, Windows
from gridbench.datagrid.tables import cases_table
from gridbench.formats import amount
from gridbench.pages.document import write_page

SECONDS_TO_DOWNLOAD = 30


@pytest.fixture
def emulate(driver):
    """Sets the width of the window and the reader's preference for light or dark."""

    def set_up(width: int = 1280, *, dark: bool = False) -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    yield set_up
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def page_of(folder: Path, cases: Sequence[DataGridCase]) -> Path:
    page = folder / "report.html"
    write_page(document_of(header_of(), cases), page)
    return page


def pictures_of(driver) -> list[tuple[str, str]]:
    """Kind and name of all pictures that are there."""
    return [
        tuple(one)
        for one in driver.execute_script(
            """return [...document.querySelectorAll("[data-chart]")]
               .map(figure => [figure.dataset.chart, figure.dataset.name ?? ""])"""
        )
    ]


def texts_in(driver, selector: str) -> list[str]:
    return driver.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map(found => found.textContent)",
        selector,
    )


def traces(driver, chart: str, name: str = "") -> list[dict]:
    """Names, values and colours that a picture was drawn from."""
    named = f'[data-name="{name}"]' if name else ""
    return driver.execute_script(
        f"""return document.querySelector('[data-chart="{chart}"]{named} .js-plotly-plot').data
            .map(t => ({{name: t.name, x: [...t.x], y: [...t.y], mode: t.mode, legend: t.showlegend,
                         colour: t.line?.color ?? t.marker?.color, dash: t.line?.dash}}))"""
    )


def test_all_pictures_are_drawn(driver, emulate, tmp_path):
    emulate()
    opened(driver, page_of(tmp_path, campaign(repeats=1)))
    places = ("over-objectsize-1", "over-nnodes-2", "over-mnodes-3")
    assert sorted(pictures_of(driver)) == sorted(
        [
            *(
                ("curve", f"{place}-{label}-{what}")
                for place in places
                for label in ("read", "update", "insert")
                for what in ("time", "rate")
            ),
            *(("curve", f"memory-{axis}") for axis in ("objectsize", "mnodes")),
            *(("curve", f"loop-{number}") for number in range(3)),
            *(("curve", name) for name in ("race-0", "latencies-0")),
            *(("figure", name) for name in ("recovery", "balance", "tasks-0", "throughput-0")),
        ]
    )
    for name, found in drawn(driver).items():
        assert found["width"] > 300, name
        assert found["height"] > 50, name
        assert found["marks"] >= 1, name
    assert driver.find_elements("css selector", ".empty") == []
    assert len(np.unique(pixels(picture(driver)))) > 20


def test_engines_have_their_colours_and_the_published_line_has_none(driver, emulate, tmp_path):
    emulate()
    opened(driver, page_of(tmp_path, campaign(["hazelcast", "ignite"], 1)))
    lines = {one["name"]: one for one in traces(driver, "curve", "over-objectsize-1-update-time")}
    assert list(lines) == [
        "Hazelcast",
        "Apache Ignite",
        "Hazelcast, fit",
        "Apache Ignite, fit",
        "Coherence, slides: 7.2 s/MB × size + 0.2 s",
    ]
    assert lines["Hazelcast"]["colour"] == lines["Hazelcast, fit"]["colour"]
    assert lines["Hazelcast"]["colour"] != lines["Apache Ignite"]["colour"]
    published = lines["Coherence, slides: 7.2 s/MB × size + 0.2 s"]
    assert published["dash"] == "dash"
    assert published["colour"] not in (lines[name]["colour"] for name in list(lines)[:2])
    assert published["y"][-1] == pytest.approx(72.2)
    # Points alone, as the fit goes through them, and is not in the legend.
    assert (lines["Hazelcast"]["mode"], lines["Hazelcast, fit"]["mode"]) == ("markers", "lines")
    assert (lines["Hazelcast"]["legend"], lines["Hazelcast, fit"]["legend"]) == (True, False)
    race = {one["name"]: one["colour"] for one in traces(driver, "curve", "race-0")}
    assert race["Hazelcast"] == lines["Hazelcast"]["colour"]


def test_the_table_has_what_the_pictures_show(driver, emulate, tmp_path):
    emulate()
    cases = [made(size=size, label="update") for size in (1, 100, 1024)]
    opened(driver, page_of(tmp_path, cases))
    groups = repeats_of(cases)
    (line, _, _) = traces(driver, "curve", "over-objectsize-1-update-time")
    assert line["x"] == [1, 100, 1024]
    assert line["y"] == pytest.approx([group.task_time().value for group in groups])
    rows = texts_in(driver, "table.cases tbody th")
    assert rows == [name.text for _, name, _ in cases_table(groups).lines()]
    shown = driver.execute_script(
        """return [...document.querySelectorAll("table.cases tbody tr")].map(row =>
             [...row.cells].slice(1).map(cell => cell.firstChild.textContent))"""
    )
    made_of = [[cell.text for cell in cells] for _, _, cells in cases_table(groups).lines()]
    assert shown == made_of
    assert [row[8] for row in shown] == [amount(y, "s") for y in line["y"]]


def test_another_case_can_be_chosen(driver, emulate, tmp_path):
    emulate()
    windows = [100] * 10 + [0] * 5 + [100] * 15
    opened(driver, page_of(tmp_path, [killed(windows), made("ignite", clients=3, tasks_each=2)]))
    assert texts_in(driver, "#case select:first-of-type option")[:2] == [
        "Apache Ignite, scenario 1, read, 1 KB, 3 clients, 3 members",
        "Hazelcast, read, 1 KB, 2 clients, 3 members, member 1 killed",
    ]
    (first,) = traces(driver, "figure", "tasks-0")
    assert len(first["y"]) == 6
    # Its throughput and its latencies follow.
    driver.execute_script(
        """const chosen = document.querySelector("#case select");
           chosen.selectedIndex = 1; chosen.dispatchEvent(new Event("change"))"""
    )
    until = time.monotonic() + 30
    while ("curve", "latencies-1") not in pictures_of(driver):
        assert time.monotonic() < until
        time.sleep(0.05)
    (second,) = traces(driver, "figure", "tasks-1")
    assert len(second["y"]) == 1
    assert second["colour"] != first["colour"]
    for name in ("tasks-1", "throughput-1"):
        assert texts_in(driver, f'[data-name="{name}"] .annotation-text') == ["member 1 killed"]
    (line,) = traces(driver, "figure", "recovery")
    assert (line["x"][10], line["y"][10], line["y"][20]) == (0, 0, 100)
    assert driver.get_log("browser") == []


@pytest.mark.parametrize("width", [360, 768])
def test_narrow_windows_need_no_scrolling_to_the_side(driver, emulate, tmp_path, width):
    emulate(width)
    opened(driver, page_of(tmp_path, campaign(repeats=1)))
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    for name, found in drawn(driver).items():
        assert found["marks"] >= 1, name
        assert found["width"] <= width, name


def test_dark_pages_have_dark_pictures(driver, emulate, tmp_path):
    emulate(dark=True)
    opened(driver, page_of(tmp_path, campaign(["hazelcast"], 1)))
    colours = driver.execute_script(
        """return [...document.querySelectorAll("[data-chart] > div > .plot-container .main-svg")]
           .map(svg => getComputedStyle(svg).backgroundColor)
           .filter(colour => colour !== "rgba(0, 0, 0, 0)")"""
    )
    assert len(colours) > 10
    for colour in colours:
        assert max(float(part) for part in colour[4:-1].split(",")) < 60


def test_what_a_picture_shows_can_be_saved(driver, emulate, downloads, tmp_path):
    emulate()
    opened(driver, page_of(tmp_path, [four()]))
    figure = driver.find_element("css selector", '[data-name="tasks-0"]')
    figure.find_elements("css selector", ".tools button")[-1].click()
    path = downloads / "gridbench-data-tasks-0.csv"
    until = time.monotonic() + SECONDS_TO_DOWNLOAD
    while not (path.exists() and path.stat().st_size):
        assert time.monotonic() < until, f"{path.name} was not saved"
        time.sleep(0.05)
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    assert [row["client"] for row in rows] == ["0", "0", "1", "1"]
    assert [float(row["base"]) for row in rows] == [0, 1, 0, 1.2]


def test_names_are_shown_not_run(driver, emulate, tmp_path):
    emulate()
    bad = []
    for size in (1, 100):
        case = made(EVIL, size=size, kill=(1,), tasks_each=12)
        tasks = replace(case.tasks, why=(EVIL,) * len(case.tasks.id))
        latencies = tuple(replace(one, operation=EVIL) for one in case.latencies)
        more = {"label": EVIL, "title": EVIL, "placed": EVIL, "errors": {EVIL: 1}}
        more["stated"] = {"settings": EVIL}
        bad.append(replace(case, tasks=tasks, latencies=latencies, **more))
    opened(driver, page_of(tmp_path, bad))
    assert driver.title == "gridbench data: data grids"
    assert driver.find_elements("css selector", "figure b, h3 b, td b, th b, p b, li b") == []
    assert any(text.startswith("<script>") for text in texts_in(driver, ".legendtext"))


def test_cases_with_nothing_to_draw(driver, emulate, tmp_path):
    emulate()
    bare = replace(four(), tasks=TaskTimeline(), latencies=(), windows=Windows(), members=())
    page = page_of(tmp_path, [bare, replace(made(), status="failed", why="no")])
    driver.get(page.as_uri())
    assert pictures_of(driver) == []
    assert "No case has tasks that could be shown." in texts_in(driver, "#case p")

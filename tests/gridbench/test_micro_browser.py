"""The page of the micro benchmarks in a browser: drawn, silent, dark or light, narrow or wide."""

from __future__ import annotations

import csv
import io
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from browser import picture

import micro_results
from browsing import drawn, opened, pixels
from gridbench.micro.document import document_of
from gridbench.micro.record import Results
from gridbench.pages.document import write_page

EVIL = "<script>document.title='broken'</script><b>bold</b>"
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


def page_of(folder: Path, results: Results) -> Path:
    path = folder / "report.html"
    write_page(document_of(results), path)
    return path


def texts_in(driver, selector: str) -> list[str]:
    return driver.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map(found => found.textContent)",
        selector,
    )


def brightness(driver, what: str) -> float:
    """0 (black) to 255 (white) of a colour that the page really uses."""
    colour = driver.execute_script(f"return {what}")
    inside = colour[colour.index("(") + 1 : -1].split(",")
    return float(np.mean([float(part) for part in inside[:3]]))


def test_all_pictures_are_drawn(driver, emulate, tmp_path):
    emulate()
    opened(driver, page_of(tmp_path, micro_results.made()))
    names = driver.execute_script(
        """return [...document.querySelectorAll("[data-chart]")]
           .map(figure => figure.dataset.chart + " " + (figure.dataset.name ?? ""))"""
    )
    assert sorted(names) == sorted(
        [
            "figure peer",
            "figure limit",
            "curve curve-argument",
            *(
                f"{kind}-{name}"
                for kind in ("figure bars", "curve percentiles")
                for name in ("null_call", "map_rate", "argument_10KB", "argument_100MB")
            ),
        ]
    )
    for name, found in drawn(driver).items():
        assert found["width"] > 300, name
        assert found["height"] > 50, name
        assert found["marks"] >= 1, name
    shown = texts_in(driver, '[data-name="bars-null_call"] text')
    for text in (
        "12.5 µs",
        "250 µs",
        "2.70 ms",
        "gridrpc-python",
        "ping-pong, Unix socket (limit)",
    ):
        assert text in [found.strip() for found in shown]
    png = picture(driver)
    assert len(np.unique(pixels(png))) > 20


def test_bars_are_in_order_and_gridrpc_stands_out(driver, emulate, tmp_path):
    emulate()
    opened(driver, page_of(tmp_path, micro_results.made()))
    bars = driver.execute_script(
        """return [...document.querySelectorAll(
             '[data-name="bars-null_call"] .barlayer .point > path')].map(path => {
             const box = path.getBoundingClientRect();
             return [box.top, box.width, getComputedStyle(path).fill];
           })"""
    )
    tops, widths, fills = zip(*bars, strict=True)
    assert list(tops) == sorted(tops)
    # gridrpc, the pool, Ray, and the limit, on one logarithmic axis.
    assert widths[0] < widths[1] < widths[2]
    assert widths[3] < widths[0]
    # Each engine has its colour, as in all pictures; a limit is hollow.
    assert len({*fills[:3]}) == 3
    assert fills[3] == "rgb(255, 255, 255)"
    hollow = driver.execute_script(
        """return document.querySelector('[data-name="peer"] .js-plotly-plot').data
           .map(trace => trace.marker.color)"""
    )
    # In the order of the page: null call and map are claimed, the two arrays are not.
    assert hollow[0][0] == hollow[0][1] != hollow[0][2] == hollow[0][3]


def test_dark_and_light_are_the_readers_choice(driver, emulate, tmp_path):
    page = page_of(tmp_path, micro_results.made())
    of_plot = """getComputedStyle(document.querySelector(".main-svg")).backgroundColor"""
    of_text = """getComputedStyle(document.querySelector(".main-svg .xtick text")).fill"""
    emulate()
    opened(driver, page)
    assert brightness(driver, "getComputedStyle(document.body).backgroundColor") > 200
    assert brightness(driver, of_plot) > 200
    assert brightness(driver, of_text) < 100
    # What is open already follows.
    emulate(dark=True)
    until = time.monotonic() + 30
    while brightness(driver, of_text) < 200:
        assert time.monotonic() < until
        time.sleep(0.05)
    assert brightness(driver, of_plot) < 60
    assert brightness(driver, "getComputedStyle(document.body).backgroundColor") < 60
    assert len(np.unique(pixels(picture(driver)))) > 20
    assert driver.get_log("browser") == []
    # On paper it is light, and afterwards dark again.
    driver.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert brightness(driver, of_text) < 100
    driver.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert brightness(driver, of_text) > 200


def test_a_page_that_is_printed_while_it_loads_has_all_pictures(driver, emulate, tmp_path):
    emulate()
    source = """document.addEventListener("DOMContentLoaded", () => {
      const empty = () => document.querySelectorAll("[data-chart]:empty").length;
      window.before = empty();
      window.dispatchEvent(new Event("beforeprint"));
      window.after = empty();
      window.dispatchEvent(new Event("afterprint"));
    })"""
    script = driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": source})
    try:
        opened(driver, page_of(tmp_path, micro_results.made()))
        before, after = driver.execute_script("return [window.before, window.after]")
    finally:
        driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
    assert before > after == 0


@pytest.mark.parametrize("width", [360, 768])
def test_narrow_windows_need_no_scrolling_to_the_side(driver, emulate, tmp_path, width):
    emulate(width)
    opened(driver, page_of(tmp_path, micro_results.made()))
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    for name, found in drawn(driver).items():
        assert found["marks"] >= 1, name
        assert found["width"] <= width, name


def test_ten_engines_stand_side_by_side(driver, emulate, tmp_path):
    emulate(1300)
    peers = ("dask", "hyperqueue", "ipyparallel", "loky", "mpi", "parsl", "process-pool", "ray",
             "some-engine", "other-engine")  # fmt: skip
    figures = [
        replace(
            micro_results.latency(),
            id=f"figure_{number}",
            title="from nothing to all at work, 100 workers, client with NumPy loaded",
            entries=(
                micro_results.entry("gridrpc-python", 1.0),
                # As long as a ratio gets.
                *(micro_results.entry(peer, 12_345.6) for peer in peers),
            ),
        )
        for number in range(3)
    ]
    opened(driver, page_of(tmp_path, micro_results.made(figures=tuple(figures), curves=())))
    assert len(driver.find_elements("css selector", ".dense thead th")) == 1 + len(peers)
    shown, whole = driver.execute_script(
        """const box = document.querySelector(".dense").parentElement;
           return [box.clientWidth, box.scrollWidth]"""
    )
    assert 900 < whole <= shown


def test_what_a_picture_shows_can_be_saved(driver, emulate, downloads, tmp_path):
    emulate()
    opened(driver, page_of(tmp_path, micro_results.made()))
    figure = driver.find_element("css selector", '[data-name="bars-map_rate"]')
    for button in figure.find_elements("css selector", ".tools button"):
        button.click()
    saved = {}
    for kind in ("csv", "svg", "png"):
        path = downloads / f"gridbench-micro-bars-map_rate.{kind}"
        until = time.monotonic() + SECONDS_TO_DOWNLOAD
        while not (path.exists() and path.stat().st_size):
            assert time.monotonic() < until, f"{path.name} was not saved"
            time.sleep(0.05)
        saved[kind] = path.read_bytes()
    rows = list(csv.DictReader(io.StringIO(saved["csv"].decode())))
    assert [row[""] for row in rows[:3]] == ["process-pool", "gridrpc-python", "ray"]
    assert [float(row["median"]) for row in rows[:3]] == [1_600_000, 800_000, 900]
    assert b"<svg" in saved["svg"]
    assert len(np.unique(pixels(saved["png"]))) > 5


def test_names_are_shown_not_run(driver, emulate, tmp_path):
    emulate()
    latency = micro_results.latency()
    bad = replace(
        latency,
        id=EVIL,
        title=EVIL,
        entries=(*latency.entries, micro_results.entry(EVIL, 100)),
        limits=(micro_results.entry(EVIL, 10),),
        ratios={"gridrpc" + EVIL: micro_results.ratio(0.1, "faster", 2)},
    )
    made = micro_results.made()
    line = replace(made.curves[0].lines[0], engine=EVIL)
    drawn_badly = replace(made.curves[0], title=EVIL, lines=(line,))
    opened(driver, page_of(tmp_path, replace(made, figures=(bad,), curves=(drawn_badly,))))
    assert driver.title == "gridbench micro: engines side by side"
    assert driver.find_elements("css selector", "figure b, h3 b, td b, th b") == []
    ticks = texts_in(driver, '[data-name^="bars"] .ytick text')
    assert any(text.startswith("<script>") for text in ticks)


def test_results_with_nothing_to_draw(driver, emulate, tmp_path):
    emulate()
    failed = replace(
        micro_results.latency(),
        entries=tuple(
            replace(entry, status="failed", why="no", median=None, percentiles=None)
            for entry in micro_results.latency().entries
        ),
        limits=(),
        best_peer=None,
        ratios={},
    )
    opened(driver, page_of(tmp_path, micro_results.made(figures=(failed,), curves=(), lead=())))
    assert {name for name, found in drawn(driver).items() if found["height"]} == set()
    # Both pictures of ratios, and the bars.
    assert len(driver.find_elements("css selector", ".empty")) == 3

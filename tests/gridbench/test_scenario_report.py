"""Answers, plots and pages of scenarios whose results are known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from browser import picture

from browsing import opened, pixels
from golden import same_as_golden
from gridbench.errors import InputError
from gridbench.jsonl_store import Header
from gridbench.pages.colours import engine_colours
from gridbench.pages.curves import Curve
from gridbench.pages.document import markdown, write_page
from gridbench.pages.render import page
from gridbench.result_kind import write_report
from gridbench.scenario.answers import answers
from gridbench.scenario.cases import cells_of
from gridbench.scenario.conclusions import notices
from gridbench.scenario.document import document_of, overall_document
from gridbench.scenario.figures import results_of_runs
from gridbench.scenario.plots import plots_of
from gridbench.scenario.published import NINFG, SYMPHONY, comparisons, published_blocks
from gridbench.scenario.results import CaseResult
from gridbench.statistics.claims import marked
from gridbench.tasklog import TaskLogHeader, TaskLogWriter
from scenario_results import all_done, header_of, results_of, write_folder


def render(header: Header, results: list[CaseResult]) -> str:
    return page(document_of(header, results, runs=True))


def plot_of(scenario: int, results: list[CaseResult], name: str) -> Curve:
    return next(one for one in plots_of(scenario, cells_of(results)) if one.id == name)


def said(scenario: int, results: list[CaseResult]) -> str:
    ((_, sentences),) = answers(scenario, cells_of(results))
    return " ".join(sentences)


def marks(driver) -> list[int]:  # type: ignore[no-untyped-def]
    """How many points each picture shows."""
    return driver.execute_script(  # type: ignore[no-any-return]
        """
        return [...document.querySelectorAll("[data-chart]")].map(figure =>
          [...figure.querySelectorAll(".scatterlayer .points path")]
            .filter(path => path.getBBox().width > 0).length)
        """
    )


def test_the_answers_of_all_scenarios() -> None:
    """Starting 400 workers takes 0.5 s + 400 x 10 ms, and 400 x 100 MB at 100 MB/s take 400 s; a
    task costs 1 ms."""
    lines = []
    for scenario in range(1, 7):
        ((_, sentences),) = answers(scenario, cells_of(all_done(scenario)))
        lines += [f"## Scenario {scenario}", "", *(f"- {one}" for one in sentences), ""]
    same_as_golden("\n".join(lines), "scenario/answers.md")


def test_a_document() -> None:
    header = header_of(3, time_scale=0.01, stddev=5.0)
    results = [
        replace(one, load={"others": 0.0, "busy": 1.0})
        for engine, slower in (("gridrpc-native", 1.0), ("process-pool", 2.0))
        for one in results_of(3, engine, slower=slower)
    ]
    same_as_golden(markdown(document_of(header, results)), "scenario/document.md")


def test_too_few_cases_for_a_question_are_not_said_not_to_count() -> None:
    (one, *_) = [result for result in all_done(1) if result.bytes_shared]
    assert said(1, [one]) == "Too few valid cases (1) to answer this scenario's question."
    other = replace(one, cores=one.cores + 1, case="another")
    assert said(1, [one, other]).startswith("Too few valid cases (2)")
    for folder_of in ({}, {"from": "logs and single runs"}):
        header = header_of(1)
        shown = render(replace(header, options=header.options | folder_of), [one])
        assert "Too few valid cases (1)" in shown
        assert "No valid case" not in shown
        assert "1 result " in shown
        assert "to measure them" not in shown


def test_only_what_counts_is_spoken_of() -> None:
    results = [replace(result, status="invalid") for result in all_done(3)]
    again = "Run the same command again to measure them."
    assert said(3, results) == f"No valid case. {again}"
    busy = [replace(result, reason="overloaded machine: by 95 %") for result in results]
    assert said(3, busy) == f"No valid case (overloaded machine). {again}"
    ((_, once),) = answers(3, cells_of(results), again=False)
    assert once == ["No valid case."]
    # Of cases that were just disturbed the answer is provisional.
    ((_, quiet),) = answers(3, cells_of(all_done(3)))
    noisy = [replace(result, reason="disturbed: 2 of 2") for result in results]
    ((_, text),) = answers(3, cells_of(noisy))
    assert text == marked(quiet, "the machine was busy in 5 of 5 cases")
    assert plots_of(3, cells_of(results))  # they are drawn, hollow
    shown = render(header_of(3), results)
    assert "so that they do not count: 5 of 5 measured cases" in shown


def test_repetitions_give_intervals() -> None:
    one = all_done(3)[0]
    totals = (31.2, 30.9, 33.0)
    cells = cells_of([replace(one, round=n, total_s=total) for n, total in enumerate(totals)])
    (cell,) = cells
    assert cell.total().value == 31.2
    assert (cell.total().low, cell.total().high) == pytest.approx((30.9, 33.0), abs=1e-5)
    assert cell.efficiency().value == pytest.approx(30 / 31.2)
    # An invalid repetition does not count beside valid ones.
    (cell,) = cells_of([one, replace(one, round=1, status="invalid", total_s=99.0)])
    assert cell.counts
    assert cell.total().high < 99


def test_uncertain_clocks_show_as_error_bars() -> None:
    one = all_done(1)[-1]
    unsure = replace(one, figures=one.figures | {"clock_margin": 0.25})
    (cell,) = cells_of([unsure])
    start = cell.figure("last_start", clocks=1)
    assert start is not None
    assert (start.high - start.low) == pytest.approx(0.5)
    span = cell.figure("return_span")
    assert span is not None
    assert span.high - span.low < 1e-5  # both its ends are of the client's clock


def test_error_bars_of_clocks_keep_to_what_can_be() -> None:
    one = all_done(1)[0]
    (cell,) = cells_of([replace(one, figures=one.figures | {"clock_margin": 40.0})])
    start = cell.figure("last_start", clocks=1)
    assert start is not None
    assert (start.low, start.high) == (0.0, one.total_s)
    # Between workers it is what their clocks have not in common that counts.
    known = one.figures | {"clock_margin": 40.0, "clock_between": 0.002}
    (cell,) = cells_of([replace(one, figures=known)])
    span = cell.figure("start_span", clocks=2)
    assert span is not None
    assert (span.low, span.high) == (
        pytest.approx(span.value - 0.004),
        pytest.approx(span.value + 0.004),
    )


def test_the_links_limit_is_drawn() -> None:
    results = [replace(result, transport="links", nodes=4, link_rate=1e9) for result in all_done(1)]
    limit = next(line for line in plot_of(1, results, "shared-rate-0").lines if line.dash)
    assert limit.points[0].value.value == pytest.approx(1e9 / 2**20)
    text = " ".join(notices(header_of(1), results, cells_of(results)))
    assert "4 places, each behind a link of 1 Gbit/s" in text
    assert "One host" not in text


def test_a_rate_needs_data_that_has_added_something() -> None:
    plot = plot_of(1, all_done(1), "shared-rate-0")
    rates = {line.name: [point.place.text for point in line.points] for line in plot.lines}
    # 10 KB at 100 MB/s are 0.1 ms beside 510 ms; 400 x 100 KB are 0.4 s beside 4.5 s.
    assert rates["1 core"] == ["100MB"]
    assert rates["400 cores"] == ["1MB", "10MB", "100MB"]
    assert "added less than 30 %" in plot.about


def test_texts_are_escaped_and_reasons_listed() -> None:
    shown = render(header_of(4, stddev=5.0), results_of(4))
    assert "with a standard deviation of 5 s (not scaled)" in shown
    assert "&lt;b&gt;it broke&lt;/b&gt;" in shown
    assert "<b>it broke" not in shown
    assert "time: too long" in shown


@pytest.mark.parametrize("scenario", [1, 2, 3, 4, 5, 6])
def test_all_pictures_are_drawn(driver, tmp_path: Path, scenario: int) -> None:  # type: ignore[no-untyped-def]
    engines = ("gridrpc-native", "process-pool")
    results = [one for engine in engines for one in results_of(scenario, engine)]
    folder = write_folder(tmp_path / "out", scenario, results)
    write_report([folder], folder / "report.html")
    opened(driver, folder / "report.html")
    titles = [one.title for one in plots_of(scenario, cells_of(results))]
    names = driver.execute_script(
        "return [...document.querySelectorAll('[data-chart]')].map(f => f.ariaLabel)"
    )
    assert names == titles
    assert len(titles) == {1: 3, 2: 2, 3: 1, 4: 3, 5: 3, 6: 2}[scenario]
    # Engines are in one plot, with common axes, each in its colour.
    drawn = driver.execute_script(
        """return [...document.querySelectorAll(".js-plotly-plot")].map(
             plot => plot.data.map(line => [line.name.split(",")[0], line.line.color]))"""
    )
    for lines in drawn:
        for engine, colour in engine_colours(engines).items():
            assert {shown for name, shown in lines if name == engine} == {colour}
    assert min(marks(driver)) > 0
    assert len(set(pixels(picture(driver)))) > 50


def test_published_figures_stand_beside_ours_and_start_up_apart() -> None:
    start, beside, whole = comparisons(6, cells_of(all_done(6)))
    # 1.5 s until the last of 100 workers computes, and 1 ms for each task.
    assert start.rows["100 tasks, no data"] == {
        SYMPHONY: 5.639319,
        NINFG: 23.330,
        "gridrpc-native": pytest.approx(1.5),
    }
    assert beside.rows["100 tasks, no data"] == {
        SYMPHONY: pytest.approx(6.652442 - 5.639319 - 1),
        NINFG: pytest.approx(24.703 - 23.330 - 1),
        "gridrpc-native": pytest.approx(0.1),
    }
    assert whole.rows["1,000 tasks, 1MB each"] == {
        SYMPHONY: 16.28837,
        NINFG: 109.387,
        "gridrpc-native": pytest.approx(1.5 + 1.0 + 1.0 + 10.0),
    }
    # Of 10 s of work, and of other sizes, nothing is published.
    assert start.compared(["gridrpc-native"]).keys() == {
        f"{n:,} task{'s' if n > 1 else ''}, {data}"
        for n in (1, 10, 25, 50, 100, 200, 400, 1000)
        for data in ("no data", "1MB each")
    }
    short = [replace(one, sleep_s=one.sleep_s / 100, time_scale=0.01) for one in all_done(6)]
    assert [one.title for one in comparisons(6, cells_of(short))] == [start.title, beside.title]


def test_other_scenarios_have_what_is_published_of_them() -> None:
    start, after = comparisons(1, cells_of(all_done(1)))
    assert start.rows["10MB shared"][NINFG] == 23.1
    # 100 x 10 MB at 100 MB/s.
    assert after.rows["10MB shared"] == {SYMPHONY: 9.4, NINFG: 9.5, "gridrpc-native": 10.0}
    (start,) = comparisons(3, cells_of(all_done(3)))
    ours = {"gridrpc-native": pytest.approx(1.5)}
    assert start.rows["10 cores"] == {SYMPHONY: 5.577182, NINFG: 6.185} | ours
    assert start.rows["100 cores"][NINFG] == pytest.approx(19.1695)
    warm = {n: [replace(one, start="warm") for one in all_done(n)] for n in (2, 4, 5)}
    (first,) = comparisons(2, cells_of(warm[2]))
    assert first.rows["1MB each"].keys() == {NINFG, "gridrpc-native"}
    assert len(comparisons(4, cells_of(warm[4]))) == 3
    (span,) = comparisons(5, cells_of(warm[5]))
    assert span.rows["1MB each"] == {SYMPHONY: 1.09, NINFG: 2.47, "gridrpc-native": 1.01}
    # Before their workers are there, first tasks wait for more than what is published.
    assert comparisons(2, cells_of(all_done(2))) == comparisons(5, cells_of(all_done(5))) == []
    assert "Add --start warm" in str(published_blocks(5, cells_of(all_done(5))))
    invalid = [replace(one, status="invalid") for one in all_done(6)]
    assert "No case counts" in str(published_blocks(6, cells_of(invalid)))


def test_published_figures_are_on_the_page(driver, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    results = [*all_done(6), *all_done(6, "emulated-slurm-jobs", slower=3.0)]
    folder = write_folder(tmp_path / "scenario-6", 6, results)
    write_report([folder], folder / "report.html")
    write_page(overall_document([folder], tmp_path), tmp_path / "report.html")
    for place, at in ((folder / "report.html", "#published"), (tmp_path / "report.html", "main")):
        opened(driver, place)
        texts = driver.execute_script(
            """
            document.querySelectorAll("details").forEach(one => { one.open = true; });
            const tables = [...document.querySelectorAll(arguments[0] + " table")];
            return tables.map(one => [...one.rows].map(row => [...row.cells].map(c => c.innerText)))
            """,
            at,
        )
        start, beside, whole = [one for one in texts if SYMPHONY in one[0]]
        assert start[0] == ["", SYMPHONY, NINFG, "gridrpc-native", "emulated-slurm-jobs"]
        assert start[1] == ["1 task, no data", "479.1 ms", "3.028 s", "1.500 s", "4.500 s"]
        assert len(start) == len(beside) == len(whole) == 1 + 16
        width = driver.execute_script("return document.documentElement.scrollWidth")
        assert width <= driver.execute_script("return window.innerWidth")
    assert len(set(pixels(picture(driver)))) > 50


def test_one_page_for_all(driver, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    folders = [
        write_folder(
            tmp_path / f"scenario-{n}", n, [*results_of(n), *results_of(n, "ray", slower=2.0)]
        )
        for n in (3, 1)
    ]
    write_page(overall_document(folders, tmp_path), tmp_path / "report.html")
    opened(driver, tmp_path / "report.html")
    headings = driver.execute_script(
        "return [...document.querySelectorAll('h2')].map(found => found.textContent)"
    )
    assert headings == [
        "1. Cores against shared data",
        "3. Start-up cost",
        "Engines side by side",
    ]
    cells = driver.execute_script(
        "return [...document.querySelectorAll('#engines td')].map(found => found.textContent)"
    )
    assert cells[0] == cells[3] == "–"
    assert cells[1].startswith("0.5 (")
    assert cells[2].startswith("2 (")
    links = driver.execute_script(
        "return [...document.querySelectorAll('section a')].map(a => a.getAttribute('href'))"
    )
    assert links == ["scenario-1/report.html", "scenario-3/report.html"]
    assert min(marks(driver)) > 0


def write_log(path: Path, size_kb: float, delay: float) -> Path:
    """60 tasks of 1 s on 20 workers of four hosts, the clock of one of which is 0.5 s ahead."""
    with TaskLogWriter(path, TaskLogHeader(60, 20, "input.1", size_kb, 0, 0)) as log:
        for number in range(60):
            block, worker = divmod(number, 20)
            calc_in = 0.3 + 0.002 * worker + delay + block * (1.001 + delay)
            ahead = 0.5 if worker % 4 == 1 else 0.0
            host = f"node{worker % 4}"
            stamps = (number * 2e-5, calc_in + ahead, calc_in + 1 + ahead, calc_in + 1.0005)
            log.row(number + 1, 1.0, *stamps, host)
    return path


def test_old_logs_are_cases_like_new_ones(tmp_path: Path) -> None:
    places = [
        write_log(tmp_path / f"{size:g}-{number}.log", size, delay + number * 1e-3)
        for size, delay in ((0.0, 0.0), (1024.0, 0.5))
        for number in range(2)
    ]
    header, results = results_of_runs(places, 4)
    assert [(one.bytes_in, one.round) for one in results] == [
        (0, 0),
        (0, 1),
        (2**20, 0),
        (2**20, 1),
    ]
    assert {(one.cores, one.tasks, one.engine, one.sleep_s) for one in results} == {
        (20, 60, "log", 1.0)
    }
    assert {one.status for one in results} == {"done"}
    shown = render(header, results)
    assert "60 tasks on 20 cores cost" in shown
    # Three of four hosts agree that a result takes 0.5 ms to return: so does that of the fourth.
    assert results[0].figures["clock_margin"] == pytest.approx(0.0005, abs=1e-6)
    # Stamps are on the client's clock, as near as is known.
    assert results[0].figures["last_start"] == pytest.approx(0.338, abs=2e-3)
    with pytest.raises(InputError, match="cannot read the task log"):
        results_of_runs([tmp_path / "none.log"], 4)


def test_a_log_that_lacks_a_task_has_no_result(tmp_path: Path) -> None:
    whole = write_log(tmp_path / "whole.log", 0.0, 0.0)
    lines = whole.read_text(encoding="utf-8").splitlines()
    lacking = tmp_path / "lacking.log"
    lacking.write_text("\n".join([*lines[:30], *lines[31:], ""]), encoding="utf-8")
    header, (result,) = results_of_runs([lacking], 6)
    assert (result.status, result.total_s, result.figures) == ("failed", None, {})
    assert result.reason == "incomplete: 59 of 60 tasks are in lacking.log"
    assert result.reason in render(header, [result])

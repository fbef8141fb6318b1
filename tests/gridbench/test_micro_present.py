"""How results are shown: amounts and words, the terminal, the Markdown, and the page as a file."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

import micro_results
from benchmarks.pages.performance import PAGE, PICTURE, TABLES, performance_files
from golden import same_as_golden
from gridbench.command_line import replace_missing_signs
from gridbench.formats import amount, bound, digits, round_amount
from gridbench.micro import charts
from gridbench.micro.document import document_of
from gridbench.micro.record import Completeness, FigureEntry, MicroFigure, Ratio, Results
from gridbench.micro.sentences import (
    behind,
    claims_something,
    compared_engine,
    gaps,
    headline,
    undecided,
    unproven,
    when,
)
from gridbench.micro.tables import against_each, best_first, engines_best_first, families
from gridbench.micro.wording import (
    advantage,
    against_peer,
    compared_values,
    measured,
    peer_interval,
    to_reach,
)
from gridbench.micro.workloads import POOL
from gridbench.pages.chart import Chart
from gridbench.pages.document import markdown as rendered
from gridbench.pages.document import write_page
from gridbench.pages.render import page as page_of
from gridbench.pages.terminal import print_document
from running import Run

EVIL = "<script>alert(1)</script> | [bold]*x*[/bold]\nnext"


def printed(results: Results, width: int = 100) -> str:
    out = io.StringIO()
    print_document(Console(file=out, width=width), document_of(results))
    return out.getvalue()


def markdown(results: Results) -> str:
    return rendered(document_of(results))


def render(results: Results) -> str:
    return page_of(document_of(results))


def cells(results: Results) -> dict[str, list[str]]:
    """Of the table that compares with each engine, by figure."""
    table = against_each(results)
    return {name.text: [cell.text for cell in row] for _, name, row in table.lines()}


def test_the_document_is_as_it_was_reviewed() -> None:
    same_as_golden(markdown(micro_results.made()), "micro/document.md")
    same_as_golden(printed(micro_results.made()), "micro/terminal.txt")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (12.345, "us", "12.3 µs"),
        (999.4, "us", "999 µs"),
        (999.6, "us", "1.00 ms"),
        (0.0321, "ms", "32.1 µs"),
        (0.25, "us", "250 ns"),
        (1234.5, "s", "1,230 s"),
        (0.0, "s", "0 s"),
        (4707, "MB", "4.71 GB"),
        (0.5, "MB", "500 KB"),
        (1e8, "bytes", "100 MB"),
        (866, "calls/s", "866 /s"),
        (943.2, "Mbit/s", "943 Mbit/s"),
        (100_000, "Mbit/s", "100 Gbit/s"),
        (8814, "tasks/s", "8.81 k/s"),
        (1_599_999, "calls/s", "1.60 M/s"),
        (1.0567, "x", "1.06×"),
        (1.0567, "", "1.06"),
        (-0.02, "s", "-20.0 ms"),
        (3, "copies", "3.00 copies"),
        (None, "s", "–"),
        (float("inf"), "", "–"),
    ],
)
def test_amounts_have_three_digits_and_a_fitting_unit(
    value: float | None, unit: str, text: str
) -> None:
    assert amount(value, unit) == text


def test_round_amounts_and_digits() -> None:
    assert round_amount(10_000, "bytes") == "10 KB"
    assert round_amount(0.1, "ms") == "100 µs"
    assert round_amount(1, "x") == "1×"
    assert round_amount(1_000_000, "") == "1,000,000"
    assert digits(0.00012345) == "0.000123"


@pytest.mark.parametrize(
    ("value", "text"),
    [(1 / 8, "1/8"), (0.05, "1/20"), (0.01, "1/100"), (0.7, "0.7"), (0.2, "0.2"), (1.5, "1.5"),
     (150, "150"), (3e6, "3,000,000"), (1.02, "1.02")],
)  # fmt: skip
def test_bounds_are_shown_as_they_were_written(value: float, text: str) -> None:
    assert bound(value) == text


def test_best_comes_first_whatever_better_means() -> None:
    names = [entry.engine for entry in best_first(micro_results.latency())]
    assert names == ["gridrpc-python", "process-pool", "ray", "dask", "hyperqueue"]
    names = [entry.engine for entry in best_first(micro_results.rate())]
    assert names == ["process-pool", "gridrpc-python", "ray"]
    both = (micro_results.latency(), micro_results.rate())
    # Ranks 0 and 1 against 1 and 0: equal, so by name; those without any value last.
    assert engines_best_first(both)[:3] == ["gridrpc-python", "process-pool", "ray"]
    assert engines_best_first(both)[3:] == ["dask", "hyperqueue"]


def test_every_figure_and_curve_is_in_one_family() -> None:
    unknown = replace(micro_results.rate(), id="quantum", workload="new things")
    drawn = replace(micro_results.curve(), id="quantum")
    results = micro_results.made()
    results = replace(results, figures=(*results.figures, unknown), curves=(*results.curves, drawn))
    groups = families(results)
    shown = [figure.id for group in groups for figure in group.figures]
    assert sorted(shown) == sorted(figure.id for figure in results.figures)
    curves = [found.id for group in groups for found in group.curves]
    assert sorted(curves) == ["argument", "quantum"]
    assert "New things" in [group.title for group in groups]
    # Sizes in order, not as they came.
    assert shown.index("argument_10KB") < shown.index("argument_100MB")


@pytest.mark.parametrize(
    ("better", "unit", "claim", "value", "text", "interval"),
    [
        ("less", "us", "faster", 0.05, "20.0× faster", "18.2–22.2"),
        ("less", "us", "slower", 4, "4.00× slower", "3.60–4.40"),
        ("more", "calls/s", "faster", 4, "4.00× faster", "3.60–4.40"),
        ("more", "calls/s", "slower", 0.05, "20.0× slower", "18.2–22.2"),
        ("less", "MB", "faster", 0.5, "2.00× less", "1.82–2.22"),
        ("less", "MB", "slower", 2, "2.00× more", "1.80–2.20"),
        ("more", "calls", "faster", 2, "2.00× more", "1.80–2.20"),
        ("less", "", "faster", 0.5, "2.00× lower", "1.82–2.22"),
        ("less", "us", "no difference", 1.04, "no difference", "0.936–1.14"),
    ],
)
def test_ratios_in_words(  # noqa: PLR0917
    better, unit, claim, value, text, interval
) -> None:
    ratio = micro_results.ratio(value, claim)
    figure = replace(
        micro_results.latency(), better=better, unit=unit, ratios={"gridrpc-python": ratio}
    )
    assert against_peer(figure, "gridrpc-python") == text
    assert peer_interval(figure, "gridrpc-python") == interval
    assert against_peer(figure, "process-pool") == "best peer"
    assert against_peer(figure, "dask") == "–"
    found = advantage(figure, ratio)
    assert found is not None
    good, low, high = found
    assert low is not None
    assert high is not None
    assert low < good < high
    if claim != "no difference":
        assert (good > 1) == (claim == "faster")


def test_a_ratio_of_nothing_divides_by_nothing() -> None:
    figure = replace(micro_results.latency(), ratios={"gridrpc-python": Ratio(to_peer=0.0)})
    assert against_peer(figure, "gridrpc-python") == "–"
    assert advantage(figure, Ratio(to_peer=0.0)) is None
    results = micro_results.made(figures=(figure,))
    assert "null call" in printed(results)
    assert "null call" in render(results)


def test_what_is_to_be_reached_names_both_values() -> None:
    results = micro_results.made()
    first, second, third, fourth = results.lead
    assert to_reach(results, first) == "≤ 1/8 × best peer: process-pool"
    assert measured(results, first) == "0.0500×"
    assert compared_values(results, first) == ("12.5 µs", "process-pool 250 µs")
    # The other value is in another figure.
    assert compared_values(results, second) == ("800 k/s", "process-pool 250 µs")
    assert to_reach(results, third) == "≥ 3,000,000"
    assert measured(results, third) == "–"
    assert compared_values(results, third) == ()
    assert to_reach(results, fourth) == "≤ 20 µs"
    assert measured(results, fourth) == "12.5 µs"


@pytest.mark.parametrize(
    ("value", "bound", "sense", "against", "text"),
    [
        (0.4321, 0.5, "<=", POOL, "0.432×"),
        (1.0213, 1.02, "<=", POOL, "1.021×"),
        (1.02, 1.02, "<=", POOL, "1.02×"),
        (1.01996, 1.02, "<=", POOL, "1.02×"),
        (0.9999996, 1.0, ">=", POOL, "0.9999996×"),
        (1 / 6 - 1e-4, 1 / 6, "<=", POOL, "0.1666×"),
        (20.004, 20, "<=", "", "20.004 µs"),
        (999.99, 1000, ">=", "", "0.99999 ms"),
    ],
)
def test_a_bound_and_what_was_measured_differ_visibly(
    value: float, bound: float, sense: Any, against: str, text: str
) -> None:
    results = micro_results.made()
    lead = replace(
        results.lead[3], value=value, bound=bound, sense=sense, against=against, reached=True
    )
    assert measured(results, lead) == text


def test_a_run_that_was_ended_early_says_so() -> None:
    extent = Completeness(points=310, planned=1204, round=1, rounds=5)
    reported = "This run was ended early, in round 1 of 5: 310 of 1,204 points are there."
    done = "The run is complete: it has all 1,204 points of 5 rounds."
    for results, early in (
        (micro_results.made(extent=extent), True),
        (micro_results.made(extent=replace(extent, points=1204, round=5)), False),
        (micro_results.made(), False),
    ):
        for text in (printed(results, 400), markdown(results), render(results)):
            assert (reported in text) == early
        for text in (markdown(results), render(results)):
            assert (done in text) == (results.extent is not None and not early)


def test_where_gridrpc_is_not_ahead_is_said() -> None:
    results = micro_results.made()
    assert behind(results) == [
        "Null calls per second by map: gridrpc-python 800 k/s, process-pool 1.60 M/s (2.00× slower)"
    ]
    assert len(undecided(results)) == 2
    assert headline(results)[0].startswith(
        "gridrpc-python is ahead of the best peer in 1 of 4 figures and behind in 1; the median"
        " advantage is "
    )
    assert headline(results)[1] == ("Of 3 targets that were measured 2 are reached, 1 is missed.")
    assert [(gap.engine, gap.why) for gap in gaps(results.figures)] == [
        ("dask", "no first task in 180 s"),
        ("hyperqueue", "reports once a second"),
    ]


def test_nothing_is_claimed_from_disturbed_or_single_runs() -> None:
    results = micro_results.made()
    for changed in ({"disturbed_runs": 4}, {"runs": 1, "disturbed_runs": 0}):
        figures = tuple(
            replace(one, entries=tuple(replace(entry, **changed) for entry in one.entries))
            for one in results.figures
        )
        reported = headline(replace(results, figures=figures))
        assert reported[0].startswith("Provisional: gridrpc-python is ahead of the best peer in ")
        assert ("the machine was busy in" in reported[0]) is ("runs" not in changed)
        # Single runs are what the user has asked for.
        was = replace(results, figures=figures)
        assert claims_something(was) is ("runs" in changed)
    assert not headline(results)[0].startswith("Provisional")


def traces_of(chart: Chart) -> Any:
    assert chart.data is not None
    return chart.data["traces"]


def test_a_large_factor_is_never_called_no_difference() -> None:
    figure = micro_results.latency()
    (engine,) = (name for name in figure.ratios if name == "gridrpc-python")
    shown = replace(figure, ratios={engine: Ratio(to_peer=1 / 584, low=1 / 600, high=1 / 570)})
    results = micro_results.made(figures=(shown,), curves=(), lead=())
    assert against_peer(shown, engine) == "584× faster, provisional"
    assert peer_interval(shown, engine) == "570–600"
    assert undecided(results) == []
    assert unproven(results)[0].endswith("(584× faster, provisional)")
    (trace,) = traces_of(charts.against_best_peer(results))
    assert trace["marker"]["opacity"] == [0.45]
    assert "584× faster, provisional" in printed(results, 400)
    # An interval that holds 1, or a factor within the noise, is none.
    for ratio in (Ratio(to_peer=0.5, low=0.2, high=1.1), Ratio(to_peer=1 / 1.01)):
        same = replace(figure, noise=1.05, ratios={engine: ratio})
        assert against_peer(same, engine) == "no difference"


def test_another_engine_of_gridrpc_is_compared_if_the_main_one_was_not_measured() -> None:
    made = micro_results.made()
    figures = tuple(
        replace(
            one,
            entries=tuple(
                replace(e, engine=e.engine.replace("gridrpc-python", "gridrpc-native"))
                for e in one.entries
            ),
            ratios={
                name.replace("gridrpc-python", "gridrpc-native"): ratio
                for name, ratio in one.ratios.items()
            },
        )
        for one in made.figures
    )
    assert compared_engine(made) == "gridrpc-python"
    other = replace(made, figures=figures)
    assert compared_engine(other) == "gridrpc-native"
    assert headline(other)[0] == headline(made)[0].replace("gridrpc-python", "gridrpc-native")
    assert against_each(other) == against_each(made)
    for text in (markdown(other), render(other)):
        assert "gridrpc-native against each engine" in text


def test_the_part_of_the_benchmark_itself_is_reported_by_the_fastest_call() -> None:
    made = micro_results.made()
    reported = "For an empty call its share is below 12.5 µs, the total for the fastest engine"
    for text in (markdown(made), render(made)):
        assert reported in text
    calls = micro_results.latency()
    # Calls from C are made by another program.
    faster = replace(calls, entries=(micro_results.entry("gridrpc-c", 2.0), *calls.entries))
    assert reported in markdown(micro_results.made(figures=(faster,)))
    only = replace(calls, entries=(micro_results.entry("gridrpc-c", 2.0),), ratios={})
    for figures in ((micro_results.rate(),), (only,)):
        assert "its share is below" not in markdown(micro_results.made(figures=figures))


def test_targets_are_shown_only_where_they_were_measured() -> None:
    made = micro_results.made()
    known = [lead for lead in made.lead if lead.reached is not None]
    assert 0 < len(known) < len(made.lead)
    for text in (printed(made), markdown(made)):
        assert "not measured" not in text[text.index("Targets") :]
    unknown = tuple(replace(lead, value=None, reached=None) for lead in made.lead)
    for results in (replace(made, lead=()), replace(made, lead=unknown)):
        assert not any("target" in sentence for sentence in headline(results))
        for text in (printed(results), markdown(results), render(results)):
            assert "Targets" not in text
    without_a_peer = replace(made.lead[0], value=None, reached=None, why="no peer was measured")
    reported = markdown(replace(made, lead=(without_a_peer,)))
    assert "no peer was measured | null call" in reported


def test_nothing_is_claimed_where_there_was_no_peer() -> None:
    alone = replace(
        micro_results.latency(),
        entries=(micro_results.entry("gridrpc-python", 12.5),),
        best_peer=None,
        ratios={"gridrpc-python": Ratio(to_limit=1.25)},
    )
    results = micro_results.made(figures=(alone,), curves=(), lead=())
    assert behind(results) == undecided(results) == []
    assert headline(results) == [
        "Nothing can be claimed: in no figure an engine of gridrpc was measured beside a peer."
    ]
    for text in (printed(results), markdown(results), render(results)):
        assert "1.25×" in text
    for text in (printed(results), markdown(results)):
        assert "best peer:" not in text
        assert "No difference" not in text


def test_against_each_engine() -> None:
    made = micro_results.made()
    assert against_each(made).head == ["", "dask", "hyperqueue", "process-pool", "ray"]
    assert cells(made)["A call that does nothing"] == ["failed", "cannot", "20.0×", "216×"]
    assert cells(made)["Null calls per second by map"] == ["–", "–", "0.500×", "889×"]
    noisy = replace(micro_results.arrays("1MB", 1e6, 1.0, 1.04), noise=1.05)
    assert cells(micro_results.made(figures=(noisy,))) == {"An array as argument, 1MB": ["(1.04×)"]}
    # Another case of an engine is no engine.
    beside = micro_results.entry("process-pool, inherited", 1.0)
    figures = (replace(noisy, entries=(*noisy.entries, beside)),)
    assert against_each(micro_results.made(figures=figures)).head == ["", "ray"]


def test_times_are_in_utc() -> None:
    assert when(micro_results.made()) == "2031-05-04 08:30 to 09:15 UTC"
    assert when(micro_results.made(ended="")) == "2031-05-04 08:30 UTC"
    assert when(micro_results.made(started="yesterday")) == "yesterday to 2031-05-04 09:15 UTC"


@pytest.mark.parametrize("width", [80, 100, 140])
def test_the_terminal_gets_no_table_too_wide(width: int) -> None:
    lines = printed(micro_results.made(), width).splitlines()
    assert max(len(line) for line in lines if line.startswith(" ")) <= width


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_without_all_signs_gets_others(encoding: str) -> None:
    out = io.BytesIO()
    results = with_evil_names()
    results = replace(
        results, figures=(*results.figures, replace(results.figures[0], id="ω", title="ω 漢"))
    )
    with io.TextIOWrapper(out, encoding=encoding, write_through=True) as file:
        replace_missing_signs(file)
        print_document(Console(file=file, width=100), document_of(results))
        text = out.getvalue().decode(encoding)
    assert ("250 us*" if encoding == "ascii" else "250 µs*") in text
    assert ("20.0x faster" if encoding == "ascii" else "20.0× faster") in text
    assert "?" in text


def with_evil_names() -> Results:
    bad = MicroFigure(
        id="evil",
        workload=EVIL,
        title=EVIL,
        unit=EVIL,
        better="less",
        entries=(
            micro_results.entry(EVIL, 5),
            micro_results.entry("gridrpc" + EVIL, 2, note=EVIL),
            FigureEntry(engine="dask", status="failed", why=EVIL),
        ),
        limits=(micro_results.entry(EVIL, 1),),
        best_peer=EVIL,
        ratios={"gridrpc" + EVIL: micro_results.ratio(0.4, "faster", 2)},
    )
    made = micro_results.made()
    lead = replace(made.lead[0], what=EVIL, why=EVIL, against=EVIL)
    return replace(
        made,
        machine={EVIL: EVIL},
        versions={EVIL: EVIL},
        options={EVIL: EVIL},
        started=EVIL,
        figures=(bad, *made.figures),
        curves=(replace(made.curves[0], id=EVIL, title=EVIL),),
        lead=(lead,),
    )


def test_texts_from_outside_are_shown_as_they_are() -> None:
    results = with_evil_names()
    assert "[bold]*x*[/bold]" in " ".join(printed(results, 400).split())
    page = render(results)
    assert page.count("<script") == 3  # plotly, the data, and ours
    assert "<script>alert" not in page
    text = markdown(results)
    assert "<script>" not in text.replace("\\<", "")


def test_markdown_tables_are_whole() -> None:
    for results in (micro_results.made(), with_evil_names()):
        text = markdown(results)
        width = 0
        for line in text.splitlines():
            if not line.startswith("|"):
                width = 0
                continue
            cells = len(re.findall(r"(?<!\\)\|", line)) - 1
            assert width in (0, cells), line
            width = cells


def test_the_page_of_the_documentation_opens_with_the_key_figures() -> None:
    files = performance_files(micro_results.made())
    assert set(files) == {PAGE, TABLES, PICTURE}
    page = files[PAGE]
    for heading in ("# Performance", "## Where a peer is ahead", "## How to repeat it"):
        assert f"\n{heading}\n" in f"\n{page}"
    assert "[micro.json](benchmarks/micro.json)" in page
    headings = [line for line in page.splitlines() if line.startswith("## ")]
    assert headings[0] == "## Key figures"
    assert (
        "| [A call that does nothing](benchmarks/micro.md#null-calls) | 12.5 µs<br>(11.2–15.0)"
        " | process-pool 250 µs\\*<br>(225–300) | 20.0× faster<br>(18.2–22.2) |"
    ) in page
    assert "2.00× slower" in page
    assert "A processor, 2 cores" in page
    assert not re.search(r"\b(nan|None|inf)\b", "".join(files.values()))


def test_no_figure_is_lost_between_the_page_and_its_tables() -> None:
    for results in (micro_results.made(), with_evil_names()):
        files = performance_files(results)
        shown = {*files[PAGE].splitlines(), *files[TABLES].splitlines()}
        assert not set(markdown(results).splitlines()) - shown


def test_the_picture_marks_who_is_ahead() -> None:
    """gridrpc is 20 times as fast in one figure, and half as fast in the other."""
    picture = performance_files(micro_results.made())[PICTURE]
    lines = ElementTree.fromstring(picture)
    texts = [one.text for one in lines.iter("{http://www.w3.org/2000/svg}text")]
    assert "A call that does nothing: 12.5 µs, process-pool 250 µs</text>" in picture
    assert {"20.0×", "0.500×"} <= set(texts)
    marks = [float(one.get("x1", "")) for one in lines.iter() if one.get("class") == "axis"]
    assert len(set(marks)) == 1


def test_the_page_says_the_same_and_asks_for_nothing() -> None:
    page = render(micro_results.made())
    assert "default-src 'none'" in page
    for said in (
        "0.0500×",
        "20.0× faster (18.2–22.2)",
        "250 µs*",
        "less is better; equals differ by 1.08×; without a value: dask (failed), hyperqueue",
        "1.06× in the median of the figures and 1.08× at most",
        "2.00× slower",
    ):
        assert said in page, said
    assert "no first task in 180 s" in page


def test_axes_are_logarithmic_where_ranges_need_it() -> None:
    def axis(figure: MicroFigure) -> Any:
        data = charts.bars(figure).data
        assert data is not None
        return data["x"]

    assert axis(micro_results.latency())["type"] == "log"
    near = replace(
        micro_results.latency(),
        entries=(micro_results.entry("ray", 3.0), micro_results.entry("dask", 7.0)),
        limits=(),
    )
    assert axis(near)["type"] == "linear"
    assert axis(near)["range"][0] == 0
    assert axis(near)["range"][1] >= 7
    assert len(axis(near)["tickvals"]) == len(axis(near)["ticktext"]) <= 6
    # What is 0 or less has no logarithm.
    zero = replace(near, entries=(micro_results.entry("ray", 0.0), *near.entries))
    assert axis(zero)["type"] == "linear"
    line = replace(micro_results.curve().lines[1], x=(0.0, 1e4), y=(0.0, 5.0))
    drawn = charts.curve(replace(micro_results.curve(), lines=(line,))).data
    assert drawn is not None
    assert not drawn["x"]["log"]
    assert drawn["lines"][0]["x"] == [0.0, 1e4]


def test_without_any_figure_all_three_say_so(tmp_path: Path) -> None:
    empty = micro_results.made(figures=(), curves=(), lead=())
    assert printed(empty).strip() == "Nothing was measured yet that makes a figure."
    assert "Nothing was measured yet that makes a figure." in markdown(empty)
    assert "Nothing was measured yet that makes a figure." in render(empty)
    nothing = replace(
        micro_results.latency(),
        entries=(FigureEntry(engine="ray", status="missing"),),
        limits=(),
        best_peer=None,
        ratios={},
    )
    alone = micro_results.made(figures=(nothing,), curves=(), lead=())
    assert "not run" in printed(alone)
    assert "not run" in markdown(alone)
    write_page(document_of(alone), tmp_path / "report.html")
    assert "not run" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_report_command_takes_results_of_micro(gridbench: Run, tmp_path: Path) -> None:
    folder = tmp_path / "micro"
    folder.mkdir()
    file = folder / "results.json"
    file.write_text(json.dumps(micro_results.made().to_record()), encoding="utf-8")
    done = gridbench("report", "micro")
    assert (done.returncode, done.stdout) == (0, "report: micro/report.html\n")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Engines side by side" in page
    done = gridbench("report", "micro/results.json", "--out", "other.html")
    assert done.returncode == 0
    assert (tmp_path / "other.html").exists()
    (tmp_path / "old.log").touch()
    done = gridbench("report", "micro", "old.log", "--out", "third.html")
    assert done.returncode == 2
    assert "cannot be in one report with others" in done.stderr
    file.write_text(file.read_text(encoding="utf-8")[:-20], encoding="utf-8")
    done = gridbench("report", "micro")
    assert done.returncode == 2
    assert done.stderr.startswith("gridbench: error: micro/results.json:1: is cut off\nhint: ")

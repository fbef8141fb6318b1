"""The document about synchronised rounds: conclusions, tables, charts, page; and comparisons."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from browsing import drawn, opened
from golden import same_as_golden
from gridbench.errors import InputError
from gridbench.pages.chart import downsample
from gridbench.pages.document import markdown
from gridbench.pages.render import page
from gridbench.pages.terminal import print_document
from gridbench.result_kind import RUNS, Measure, kind_of, module_of, write_report
from gridbench.results.table import compared, measures_of
from gridbench.sync.cases import cases_of
from gridbench.sync.conclusions import headline, notices, own_part, scaling_sentences
from gridbench.sync.document import document_of
from gridbench.sync.plots import over_parameters, over_time, over_workers
from gridbench.sync.record import HostUse, Phase, Round
from gridbench.sync.result_kind import SYNC
from gridbench.sync.round_plot import round_charts, shown_rounds
from gridbench.sync.tables import task_tables
from running import Run
from sync_rounds import (
    DISTURBED,
    EVIL,
    four,
    header_of,
    round_of,
    sample_of,
    sweep,
    task_of,
    write_folder,
)

ESCAPED = "&lt;script&gt;document.title=&#39;broken&#39;&lt;/script&gt;&lt;b&gt;bold&lt;/b&gt;"


def seconds(*times: float, **more: object) -> Round:
    """Tasks of one host that begin together and take so long."""
    return round_of([task_of(number, 0.0, time) for number, time in enumerate(times)], **more)


def doing(workers: int, operations: int, **more: object) -> Round:
    """A round of tasks of a second that do so many operations in all."""
    each = [Phase(name="mkdir", seconds=1.0, operations=operations // workers)]
    tasks = [task_of(number, 0.0, 1.0, phases=each) for number in range(workers)]
    return round_of(tasks, **more)


def failing(*reasons: str, **more: object) -> Round:
    return round_of(
        [task_of(n, 0.0, 1.0, status="failed", exit=1, why=why) for n, why in enumerate(reasons)],
        **more,
    )


def in_markdown(rounds: Sequence[Round]) -> str:
    return markdown(document_of(header_of(), rounds))


def in_html(rounds: Sequence[Round]) -> str:
    return page(document_of(header_of(), rounds))


def in_terminal(rounds: Sequence[Round], width: int = 200) -> str:
    out = io.StringIO()
    print_document(Console(file=out, width=width), document_of(header_of(), rounds))
    return out.getvalue()


def evil() -> list[Round]:
    """Rounds in which all that comes from outside is hostile."""
    found = []
    for parameter in (EVIL, "=cmd|x\n`y`"):
        for count in (2, 6):
            tasks = [
                task_of(
                    number,
                    0.0,
                    9.0 if number == 5 else 1.0,
                    host=f"{EVIL}{number % 2}",
                    output=f"output/{EVIL}/{number}",
                    phases=[replace(four().tasks[0].phases[0], name=EVIL)],
                )
                for number in range(count)
            ]
            tasks[0] = replace(tasks[0], status="failed", exit=-9, why=EVIL)
            look = replace(sample_of(1.0, 1.0), disk=EVIL, watched={EVIL: 0.5})
            uses = (HostUse(host=f"{EVIL}0", cores=2, memory=2**33, whole=look, during=(look,)),)
            found.append(round_of(tasks, parameter=parameter, hosts=uses, at=EVIL))
    return found


# ---- Conclusions and tables


def examples() -> Mapping[str, Sequence[Round]]:
    """Rounds that lead to different conclusions."""
    scattered = [replace(task, late=0.002) for task in four().tasks[:1]]
    scattered += [replace(task, clock_error=0.01) for task in four().tasks[1:]]
    bad = [seconds(1.0, 1.0, load=DISTURBED), seconds(2.0, 2.0, status="failed", repeat=1)]
    nothing = [task_of(n, None, None, status="failed", exit=2, why="no folder") for n in range(2)]
    of_parameters = {(4, "wal"): 80, (4, "off"): 4, (8, "wal"): 8, (8, "off"): 16}
    lost = task_of(3, None, None, status="lost")
    failed = failing("no space", "no space", "no such file")
    return {
        "Nothing": [],
        "Rounds of different sizes": [seconds(1.0, 1.0), four()],
        "Less with the most workers": [doing(2, 100), doing(4, 5_000), doing(8, 2_000)],
        "Most with the most workers": [doing(2, 100), doing(4, 5_000)],
        "The same parameter": [doing(n, r, parameter=p) for (n, p), r in of_parameters.items()],
        "Nothing counts": bad,
        "Some count": [*bad, seconds(3.0, 3.0, repeat=2)],
        "No task began": [round_of(nothing)],
        "No task of one round began": [round_of(nothing), seconds(1.0, 1.0, repeat=1)],
        "Reasons of failures": [replace(failed, tasks=(*failed.tasks, task_of(4, 0, 1), lost))],
        "Late orders and uncertain clocks": [round_of(scattered, load={"judgement": "not known"})],
        "Stragglers": [seconds(*[1.0] * 9, 2.0, repeat=n) for n in range(3)],
        "Both hold points": [seconds(1.0, 1.0), seconds(2.0, 2.0, start="exec")],
    }


def test_conclusions_are_as_reviewed() -> None:
    lines = []
    for name, rounds in examples().items():
        cases = cases_of(rounds)
        lines += [f"## {name}", "", *headline(cases), *(f"- {line}" for line in notices(cases)), ""]
    same_as_golden("\n".join(lines), "sync/conclusions.md")


def test_the_markdown_is_as_reviewed() -> None:
    same_as_golden(in_markdown(sweep((2, 14), ("4k", "64k"), 2, samples=5)), "sync/sweep.md")


def test_scaling_is_of_the_rounds_that_count() -> None:
    rates = {1: 1_000, 2: 2_000, 4: 4_000, 8: 4_000}
    rounds = [doing(count, rate, parameter="wal") for count, rate in rates.items()]
    slower = [replace(one, load=DISTURBED, repeat=1) for one in rounds[:2]]
    (reported,) = scaling_sentences([*rounds, *slower])
    assert reported.startswith("mkdir, wal: More than 4 workers add nothing")
    assert reported.replace('"', "&#34;") in in_html(rounds)
    (both, _) = scaling_sentences([*rounds, *(replace(one, start="exec") for one in rounds)])
    assert both.startswith("mkdir, wal, held at entry: ")
    assert scaling_sentences([four()]) == []


def test_a_case_has_its_most_frequent_bottlenecks() -> None:
    busy = HostUse(host="node0", cores=2, memory=2**33, during=(sample_of(1.0, 1.0, share=1.0),))
    busy = replace(busy, during=(replace(busy.during[0], disk_queue=4.0),))
    rounds = [seconds(1.0, repeat=n, hosts=(busy,) if n else ()) for n in range(3)]
    (case,) = cases_of(rounds)
    assert [(what, times) for what, times, _ in case.bottlenecks] == [("disk saturated", 2)]
    assert case.limited_by == ["disk saturated"]
    (case,) = cases_of([*rounds[:2], replace(rounds[0], repeat=2)])
    assert case.limited_by == []
    assert "disk saturated" in in_terminal(rounds)


def test_the_part_of_the_benchmark_itself_is_bounded_by_the_shortest_task() -> None:
    # The last of the four tasks takes from 3 to 8 ms.
    assert "below 5.00 ms" in own_part(cases_of([four()]))
    for text in (in_markdown([four()]), in_html([four()])):
        assert "It is below 5.00 ms" in text
    shorter = round_of([task_of(0, 0.0, 0.002), task_of(1, 0.0, 0.001, status="failed")])
    assert "below 2.00 ms" in own_part(cases_of([shorter]))
    assert own_part(cases_of([round_of([task_of(0, None, None, status="lost")])])) == ""
    assert own_part([]) == ""


def test_stragglers_and_failures_have_tables() -> None:
    found = task_tables(cases_of(examples()["Stragglers"]), None)
    assert (found.late, found.failed) == (3, 0)
    _, first, cells = next(found.stragglers.lines())
    assert [first.text, *(cell.text for cell in cells[:4])] == [
        "worker 9", "node0", "10 workers, round 1", "2.00 s", "2.00×"
    ]  # fmt: skip


def test_a_task_of_many_phases_has_the_first_ones_shown() -> None:
    phases = [Phase(name=f"phase {n}", seconds=1.0, bytes=1000 + n) for n in range(900)]
    rounds = [
        round_of([task_of(n, 0.0, 1.0, phases=phases) for n in range(count)]) for count in (1, 2)
    ]
    text = in_terminal(rounds)
    assert "phase 5" in text
    assert "phase 6" not in text
    assert "and 894 phases more" in text
    assert len([one for one in over_workers(cases_of(rounds)) if "rate" in one.id]) == 8
    assert len(in_html(rounds)) < 6_000_000


def test_the_table_in_the_terminal() -> None:
    text = in_terminal([replace(four(), parameter="[red]4k[/red]"), seconds(1.0, parameter="8k")])
    assert "[red]4k[/red]" in text
    for part in ("3.00 ms", "12.0 ms", "41.7 %", "mkdir 50.0 k/s", "write 1.00 GB/s"):
        assert part in text
    assert "\x1b" not in in_terminal([replace(four(), parameter="\x1b[2J")])
    # Without parameters and phases there are no columns for them.
    bare = in_terminal([seconds(1.0, 1.0)])
    assert "parameter" not in bare
    assert "rate" not in bare.partition("With")[0]
    assert in_terminal([]) == "No round was made yet.\n"


@pytest.mark.parametrize(
    ("width", "absent", "ranges"), [(100, ["rounds"], False), (140, [], False), (170, [], True)]
)
def test_a_terminal_without_room_shows_less(width: int, absent: list[str], ranges: bool) -> None:
    rounds = [replace(one, parameter="4k") for one in (four(), replace(four(), repeat=1))]
    table = in_terminal(rounds, width).partition("With 4")[0]
    assert not any(name in table for name in ("not ok", "stragglers"))  # there are none
    assert ("rounds" in table) == ("rounds" not in absent)
    assert ("2.30–3.70" in table) == ranges
    # No number is broken, and no line is longer than the terminal.
    assert re.search(r"3\.00 ms +12\.0 ms +41\.7 %", table)
    assert "mkdir 50.0 k/s" in table
    assert max(map(len, table.splitlines())) <= width


def test_markdown_escapes_what_comes_from_outside() -> None:
    text = in_markdown([replace(four(), parameter="a|b<i>*")])
    row = next(line for line in text.splitlines() if line.startswith("| 4 |"))
    assert "| a\\|b\\<i\\>\\* |" in row
    assert "| mkdir 50.0 k/s<br>write 1.00 GB/s |" in row
    head = next(line for line in text.splitlines() if line.startswith("| workers |"))
    assert len(re.findall(r"(?<!\\)\|", row)) == head.count("|")
    for one in evil():
        assert "<script>" not in in_markdown([one])


# ---- The page


def test_the_page_escapes_what_comes_from_outside(tmp_path: Path) -> None:
    header = replace(header_of(task=EVIL, x=EVIL), machine={"host": EVIL}, versions={EVIL: EVIL})
    text = page(document_of(header, evil(), tmp_path))
    assert "<script>document.title" not in text
    assert "<b>bold</b>" not in text
    assert text.count(ESCAPED) > 20


def test_links_lead_to_what_tasks_printed_and_nowhere_else() -> None:
    outputs = ["output/a b/1?#", "../../etc/passwd", "/etc/passwd", "javascript:alert(1)", ""]
    one = round_of(
        [
            task_of(number, 0.0, 1.0, status="failed", output=output)
            for number, output in enumerate(outputs)
        ]
    )

    def links(files: Path | None) -> list[str]:
        rows = task_tables(cases_of([one]), files).failures.lines()
        return [cells[-1].link for _, _, cells in rows]

    inside = ["./../runs/output/a%20b/1%3F%23", "./../runs/javascript%3Aalert%281%29"]
    assert links(Path("../runs")) == [inside[0], "", "", inside[1], ""]
    assert not any(links(None))


def test_the_page_finds_outputs_from_where_it_is(tmp_path: Path) -> None:
    one = round_of([task_of(0, 0.0, 1.0, status="failed", output="output/0")])
    folder = write_folder(tmp_path / "results", [one])
    for out, link in (
        (folder / "report.html", "./output/0"),
        (tmp_path / "elsewhere.html", "./results/output/0"),
    ):
        write_report([folder], out)
        assert f'href="{link}"' in out.read_text()


@pytest.mark.parametrize(
    "rounds",
    [
        [],
        [round_of([task_of(0, None, None, status="lost")])],
        [failing("no space", "no space", "no space")],
        [round_of([])],
        [seconds(0.0, 0.0)],
        [four()],
        sweep((2, 4), ("off", "wal"), 1, samples=1),
    ],
    ids=["none", "lost", "all failed", "no tasks", "instant", "four", "words"],
)
def test_there_is_a_page_of_anything(driver, tmp_path: Path, rounds: list[Round]) -> None:
    folder = write_folder(tmp_path, rounds)
    write_report([folder], tmp_path / "report.html")
    opened(driver, tmp_path / "report.html")
    assert in_terminal(rounds)
    assert in_markdown(rounds)


def test_all_charts_are_drawn(driver, tmp_path: Path) -> None:
    folder = write_folder(tmp_path, sweep(samples=10))
    write_report([folder], tmp_path / "report.html")
    opened(driver, tmp_path / "report.html")
    names = driver.execute_script(
        """return [...document.querySelectorAll("[data-chart]")]
           .map(figure => figure.dataset.chart + " " + (figure.dataset.name ?? ""))"""
    )
    over = ["rate-0", "rate-1", "times"]
    assert sorted(names) == sorted(
        [
            *(f"curve workers-{name}" for name in (*over, "span", "skew", "simultaneity")),
            *(f"curve parameter-{name}" for name in over),
            *(f"figure {name}" for name in ("running", "share", "delays", "round-0")),
        ]
    )
    for name, found in drawn(driver).items():
        assert found["width"] > 300, name
        assert found["marks"] >= 1, name


def test_another_round_can_be_chosen(driver, tmp_path: Path) -> None:
    folder = write_folder(tmp_path, sweep((2, 14), ("4k",), 1, samples=4))
    write_report([folder], tmp_path / "report.html")
    opened(driver, tmp_path / "report.html")
    bars = "return document.querySelectorAll('#round .barlayer .point').length"
    choice = "return document.querySelector('#round select').selectedOptions[0].textContent"
    assert driver.execute_script(choice) == "14 workers, 4k, round 1"
    assert driver.execute_script(bars) == 14
    driver.execute_script(
        """const chosen = document.querySelector("#round select");
           chosen.value = "round-1";
           chosen.dispatchEvent(new Event("change"));"""
    )
    assert driver.execute_script(choice) == "2 workers, 4k, round 1"
    assert driver.execute_script(bars) == 2
    assert driver.get_log("browser") == []


def test_hostile_names_are_shown_as_they_are(driver, tmp_path: Path) -> None:
    folder = write_folder(tmp_path, evil(), task=EVIL)
    write_report([folder], tmp_path / "report.html")
    opened(driver, tmp_path / "report.html")
    assert driver.title == "gridbench sync: synchronised rounds"
    bold = "return [...document.querySelectorAll('b, svg [style*=bold]')].length"
    assert driver.execute_script(bold) == 0
    assert EVIL in driver.execute_script("return document.body.textContent")


# ---- Charts


def data_of(rounds: Sequence[Round], name: str) -> Mapping[str, Any]:
    chart = next(one for one in over_time(cases_of(rounds)) if one.name == name)
    assert chart.data is not None
    return chart.data


def test_a_page_of_many_rounds_is_of_a_few_megabytes() -> None:
    rounds = sweep((56,), [f"{n}k" for n in range(1, 101)], 5, samples=20)
    data = in_html(rounds).partition('id="report-data">')[2].partition("</script>")[0]
    assert len(rounds) == 500
    assert len(data) < 2_500_000
    assert len(shown_rounds(cases_of(rounds))) == 40


def test_rounds_that_are_shown_are_of_all_cases_that_find_room() -> None:
    rounds = sweep((2, 4), ("1k", "2k"), 1, samples=0)
    shown = shown_rounds(cases_of(rounds))
    assert shown[0].workers == 4
    assert len(shown) == 4
    many = sweep((3_000,), [f"{n}k" for n in range(1, 9)], 1, samples=0)
    picked = shown_rounds(cases_of(many))
    assert len(picked) == 4
    data = round_charts(picked)[0][1].data
    assert data is not None
    assert data["y"]["title"] == "worker (400 of 3,000 drawn)"
    # Stragglers are among those that are drawn.
    assert "straggler" in [trace["name"] for trace in data["traces"]]


def test_counters_that_show_nothing_have_no_panel() -> None:
    quiet = replace(
        sample_of(1.0, 1.0, busy=0.0, share=0.0),
        waiting=0.0, disk_read=0.0, disk_written=0.0, dirty=0, pressure={}, watched={},
    )  # fmt: skip
    use = HostUse(host="node0", cores=2, memory=2**33, during=(quiet,))
    ((_, chart),) = round_charts([replace(four(), hosts=(use,))])
    assert chart.data is not None
    lines = [trace["name"] for trace in chart.data["traces"] if trace.get("yaxis")]
    assert lines == ["in, node0", "out, node0", "loopback, node0"]
    (title,) = chart.data["layout"]["annotations"]
    assert title["text"].startswith("Network traffic [MB/s]: in (solid)")
    ((_, bare),) = round_charts([four()])
    assert bare.data is not None
    assert bare.data["layout"]["annotations"] == []


def test_curves_have_their_places_by_size_and_words_side_by_side() -> None:
    cases = cases_of(sweep((2, 4), ("1m", "4k", "64k"), 1, samples=0))
    rate = over_parameters(cases)[0].data()
    assert rate["x"]["texts"] == ["4k", "64k", "1m"]
    assert rate["x"]["ticks"] == [4096.0, 65536.0, 2.0**20]
    assert rate["x"]["log"]
    words = over_parameters(cases_of(sweep((2,), ("wal", "off"), 1, samples=0)))[0].data()
    assert words["x"]["ticks"] == [0.0, 1.0]
    assert not words["x"]["log"]
    workers = {one.id: one for one in over_workers(cases)}
    share = workers["workers-simultaneity"].data()
    assert share["y"]["range"] == [0, 104]
    assert [line["name"] for line in share["lines"]] == ["4k", "64k", "1m"]
    # One number of workers, or one parameter, is no curve.
    assert over_workers(cases_of([four()])) == over_parameters(cases_of([four()])) == []


def test_marks_of_cases_that_do_not_count_are_hollow() -> None:
    rounds = [seconds(1.0, load=DISTURBED), seconds(1.0, 1.0), seconds(1.0, 1.0, 1.0)]
    (line,) = over_workers(cases_of(rounds))[0].data()["lines"]
    assert line["hollow"] == [True, False, False]
    assert line["hover"][0][-1] == "does not count"


def test_tasks_running_in_time_and_as_shares() -> None:
    running = data_of([four()], "running")
    assert running["x"]["title"].endswith("[ms]")
    assert running["traces"][0]["x"] == [0, 1, 2, 3, 8, 10, 11, 12]
    shares = data_of([four()], "share")["traces"][0]
    assert shares["x"][3:5] == [25.0, pytest.approx(66.667, abs=1e-3)]
    assert shares["y"] == [25, 50, 75, 100, 75, 50, 25, 0]


def test_when_tasks_began_is_of_all_rounds_that_count() -> None:
    rounds = [four(), replace(four(), repeat=1), replace(four(), repeat=2, load=DISTURBED)]
    (line,) = data_of(rounds, "delays")["traces"]
    assert line["x"] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert line["y"] == [12.5, 25, 37.5, 50, 62.5, 75, 87.5, 100]


def test_evenly_picked_items_have_the_first_and_the_last() -> None:
    assert downsample(range(100), 4) == [0, 33, 66, 99]
    assert downsample(range(3), 4) == [0, 1, 2]


# ---- As results


def test_a_folder_of_results_is_of_this_kind(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "results", [four()])
    assert kind_of([folder]) is SYNC
    assert kind_of([tmp_path]) is module_of(RUNS)


def test_measures_are_of_the_rounds_that_count(tmp_path: Path) -> None:
    rounds = [replace(four(), repeat=0), replace(four(), repeat=1, load=DISTURBED)]
    folder = write_folder(tmp_path, [*rounds, seconds(1.0, 1.0, load=DISTURBED)])
    found = measures_of(folder)
    assert {case for case, _ in found} == {"4 workers"}
    assert found["4 workers", "start skew"] == Measure((pytest.approx(0.003),))  # type: ignore[arg-type]
    assert found["4 workers", "mkdir, operations"].better == "more"
    assert found["4 workers", "write, bandwidth"].values == pytest.approx((1e9,))


def test_results_without_a_round_that_counts_are_reported_with_why(tmp_path: Path) -> None:
    rounds = [seconds(1.0, 1.0, load=DISTURBED, repeat=n) for n in range(2)]
    folder = write_folder(tmp_path, [*rounds, seconds(1.0, 1.0, status="failed", repeat=2)])
    reported = "of 3 rounds, 2 disturbed by other programs, 1 failed"
    with pytest.raises(InputError, match=f"has no round that counts, .*: {reported}"):
        measures_of(folder)


def test_two_results_are_compared(tmp_path: Path) -> None:
    before = write_folder(tmp_path / "a", [seconds(1.0, 1.0, repeat=n) for n in range(3)])
    after = write_folder(tmp_path / "b", [seconds(1.5, 1.5, repeat=n) for n in range(3)])
    found = compared(measures_of(before), measures_of(after))
    reported = {one.what: (one.engine, one.verdict, one.ratio) for one in found}
    assert reported["median task time"] == ("2 workers", "worse", 1.5)
    assert reported["share of it in which all ran"] == ("2 workers", "no difference", 1.0)
    with pytest.raises(InputError, match="cannot be in one report with others"):
        write_report([before, after], tmp_path / "both.html")


def test_the_program_makes_a_page_and_compares(tmp_path: Path, gridbench: Run) -> None:
    for name, time in (("a", 1.0), ("b", 1.5)):
        write_folder(tmp_path / name, [seconds(time, time, repeat=n) for n in range(3)])
    made = gridbench("report", "a")
    assert made.returncode == 0, made.stderr
    assert "With 2 workers on 1 host" in (tmp_path / "a" / "report.html").read_text()
    worse = gridbench("report", "a", "b", "--fail-above", "5%", "--out", "compare.html")
    assert worse.returncode == 1, worse.stderr
    assert "2 workers: median task time" in worse.stdout
    assert "2 workers: median task time" in (tmp_path / "compare.html").read_text()

"""What is said and drawn of synchronised rounds: terminal, Markdown, the page, and comparisons."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from browsing import drawn, opened
from gridbench.errors import InputError
from gridbench.pages.downsample import evenly
from gridbench.result_kind import Measure, kind_of
from gridbench.results.compare import compared
from gridbench.results.table import measures_of
from gridbench.sync.bottlenecks import Bottleneck
from gridbench.sync.cases import cases_of
from gridbench.sync.present import print_table, write_report
from gridbench.sync.present.details import details, panels, shown_rounds
from gridbench.sync.present.limiting import limited_by
from gridbench.sync.present.markdown import markdown
from gridbench.sync.present.notes import headline, knee_sentences, notices, own_part
from gridbench.sync.present.page import render
from gridbench.sync.present.pictures import (
    delays,
    over_parameters,
    over_workers,
    running,
    share_running,
)
from gridbench.sync.present.trouble import trouble_of
from gridbench.sync.record import HostUse, Phase, Round
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


def saturated(one: Round) -> Sequence[Bottleneck]:
    """From four workers on, a server is."""
    if one.workers < 4:
        return ()
    return (Bottleneck("server saturated", f"gfmd used {one.workers} % too much."),)


def nothing(_: Round) -> Sequence[Bottleneck]:
    return ()


def seconds(*times: float, **more: object) -> Round:
    """Tasks of one host that begin together and take so long."""
    return round_of([task_of(number, 0.0, time) for number, time in enumerate(times)], **more)


def printed(rounds: Sequence[Round], width: int = 200) -> str:
    out = io.StringIO()
    print_table(Console(file=out, width=width), rounds, limits=saturated)
    return out.getvalue()


def said(rounds: Sequence[Round]) -> str:
    return " ".join(headline(cases_of(rounds), saturated))


def warned(rounds: Sequence[Round]) -> str:
    return " ".join(notices(cases_of(rounds)))


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


def test_the_headline_tells_how_simultaneous_the_largest_rounds_were() -> None:
    text = said([seconds(1.0, 1.0), four()])
    assert (
        "With 4 workers on 2 hosts the tasks began within 3.00 ms of each other, and the clocks are"
        " certain to ±700 µs. From the first start to the last end it took 12.0 ms, and for 41.7 %"
        " of that time all of them were under way." in text
    )
    assert "The rate of mkdir is 50,000 operations/s with 4 workers." in text
    assert "The rate of write is 1.00 GB/s with 4 workers." in text
    assert "All 6 tasks ended well." in text
    assert "Bottleneck with 4 workers: server saturated, in 1 of 1 round." in text


def doing(workers: int, operations: int, **more: object) -> Round:
    """A round of tasks of a second that do so many operations in all."""
    each = [Phase(name="mkdir", seconds=1.0, operations=operations // workers)]
    tasks = [task_of(number, 0.0, 1.0, phases=each) for number in range(workers)]
    return round_of(tasks, **more)


def test_the_highest_rate_is_told_beside_that_of_the_most_workers() -> None:
    rounds = [doing(2, 100), doing(4, 5_000), doing(8, 2_000)]
    assert (
        "The highest rate of mkdir is 5,000 operations/s, with 4 workers; with 8 workers it is"
        " 2,000 operations/s." in said(rounds)
    )
    assert (
        "The highest rate of mkdir is 5,000 operations/s, with 4 workers; the lowest is 100"
        " operations/s, with 2 workers." in said(rounds[:2])
    )
    # That of the most workers is of the same parameter, if there is one.
    named = [
        doing(workers, rate, parameter=parameter)
        for workers, parameter, rate in (
            (4, "wal", 80),
            (4, "off", 4),
            (8, "wal", 8),
            (8, "off", 16),
        )
    ]
    assert (
        "is 80.0 operations/s, with 4 workers and the parameter wal; with 8 workers and the"
        " parameter wal it is 8.00 operations/s." in said(named)
    )


def test_from_how_many_workers_on_more_add_nothing_is_told() -> None:
    rates = {1: 1_000, 2: 2_000, 4: 4_000, 8: 4_000}
    rounds = [doing(count, rate, parameter="wal") for count, rate in rates.items()]
    slower = [replace(one, load=DISTURBED, repeat=1) for one in rounds[:2]]
    (told,) = knee_sentences([*rounds, *slower])
    assert told.startswith("mkdir, wal: From 4 workers on, more of them add nothing")
    assert told.replace('"', "&#34;") in render(header_of(), rounds)
    (both, _) = knee_sentences([*rounds, *(replace(one, start="exec") for one in rounds)])
    assert both.startswith("mkdir, wal, held at entry: ")
    assert knee_sentences([four()]) == []


def test_nothing_is_claimed_of_rounds_that_were_disturbed_or_failed() -> None:
    bad = [seconds(1.0, 1.0, load=DISTURBED), seconds(2.0, 2.0, status="failed", repeat=1)]
    assert said(bad).startswith("Provisional: With 2 workers")
    why = "; the machine was busy in 1 of 2 rounds and tasks failed in 1 of 2 rounds."
    assert why in said(bad)
    text = printed(bad)
    assert re.search(r"^ *2\* ", text, re.MULTILINE)
    assert "* No round of this case counts" in text
    some = [*bad, seconds(3.0, 3.0, repeat=2)]
    assert re.search(r"^ *2 +1 of 3 +6 ", printed(some), re.MULTILINE)
    told = warned(some)
    assert "Other programs disturbed 1 of 3 rounds" in told
    assert "In 1 of 3 rounds a task did not end well." in told
    assert "Provisional" not in said(some)


def test_where_tasks_failed_and_nothing_counts_the_reason_comes_first() -> None:
    tasks = [task_of(n, None, None, status="failed", exit=2, why="no folder") for n in range(2)]
    first, second, *_ = headline(cases_of([round_of(tasks)]), nothing)
    assert first == "Of 2 tasks, 2 did not end well: 2 failed; the reason: no folder."
    assert second == (
        "Provisional: With 2 workers no task both began and ended; tasks failed in 1 of 1 round."
    )
    # Elsewhere it does not hide what was measured.
    some = headline(cases_of([round_of(tasks), seconds(1.0, 1.0, repeat=1)]), nothing)
    assert some[0].startswith("With 2 workers")
    assert first.replace("Of 2", "Of 4") in some


def test_the_most_frequent_reason_of_failures_is_told() -> None:
    reasons = ["no space", "no space", "no such file"]
    tasks = [
        task_of(n, 0.0, 1.0, status="failed", exit=1, why=why) for n, why in enumerate(reasons)
    ]
    tasks += [task_of(3, 0.0, 1.0), task_of(4, None, None, status="lost")]
    assert (
        "Of 5 tasks, 4 did not end well: 3 failed, 1 lost; the reason for 2 of them: no space."
        in said([round_of(tasks)])
    )


def test_what_a_reader_has_to_know_is_told() -> None:
    late = [replace(task, late=0.002) for task in four().tasks[:1]]
    unsure = [replace(task, clock_error=0.01) for task in four().tasks[1:]]
    told = warned([round_of([*late, *unsure], load={"judgement": "not known"})])
    assert "the start skew is not larger than what is not known of the hosts' clocks" in told
    assert "after the agreed instant to 1 task, by up to 2.00 ms" in told
    assert "Of 1 round it is not known whether other programs disturbed it" in told
    assert "Each case is of a single round" in told
    assert warned([seconds(1.0, 1.0, repeat=n) for n in range(2)]) == ""


def test_the_part_of_the_benchmark_itself_is_bounded_by_the_shortest_task() -> None:
    # The last of the four tasks takes from 3 to 8 ms.
    told = "That is below 5.00 ms, as the shortest task took no longer in all."
    assert own_part(cases_of([four()])).endswith(told)
    for text in (markdown([four()]), render(header_of(), [four()])):
        assert told in text
    shorter = round_of([task_of(0, 0.0, 0.002), task_of(1, 0.0, 0.001, status="failed")])
    assert "below 2.00 ms" in own_part(cases_of([shorter]))
    assert own_part(cases_of([round_of([task_of(0, None, None, status="lost")])])) == ""
    assert own_part([]) == ""


def test_stragglers_are_told_with_those_who_are_it_again_and_again() -> None:
    rounds = [seconds(*[1.0] * 9, 2.0, repeat=n) for n in range(3)]
    text = said(rounds)
    assert "3 tasks in 3 of 3 rounds were stragglers" in text
    assert "in most of their rounds: worker 9 on node0 in 3 of 3" in text
    found = trouble_of(cases_of(rounds), None)
    assert (found.late, found.failed) == (3, 0)
    _, first, cells = next(found.stragglers.lines())
    assert [first.text, *(cell.text for cell in cells[:4])] == [
        "worker 9",
        "node0",
        "10 workers, round 1",
        "2.00 s",
        "2.00×",
    ]


def test_a_task_of_many_phases_has_the_first_ones_shown() -> None:
    phases = [Phase(name=f"phase {n}", seconds=1.0, bytes=1000 + n) for n in range(900)]
    rounds = [
        round_of([task_of(n, 0.0, 1.0, phases=phases) for n in range(count)]) for count in (1, 2)
    ]
    text = printed(rounds)
    assert "phase 5" in text
    assert "phase 6" not in text
    assert "and 894 phases more" in text
    assert len([one for one in over_workers(cases_of(rounds)) if "rate" in one.id]) == 8
    assert len(render(header_of(), rounds)) < 6_000_000


def test_limits_are_looked_for_once() -> None:
    seen = []

    def looked(one: Round) -> Sequence[Bottleneck]:
        seen.append(one.repeat)
        return saturated(one)

    render(header_of(), [replace(four(), repeat=n) for n in range(3)], limits=looked)
    assert seen == [0, 1, 2]


def test_limits_are_counted_and_told_once() -> None:
    rounds = [four(), replace(four(), repeat=1), seconds(1.0)]
    assert limited_by(rounds, saturated) == [("server saturated", 2, "gfmd used 4 % too much.")]
    assert limited_by(rounds, nothing) == []


def test_the_table_in_the_terminal() -> None:
    text = printed([replace(four(), parameter="[red]4k[/red]"), seconds(1.0, parameter="8k")])
    assert "[red]4k[/red]" in text
    for part in ("3.00 ms", "12.0 ms", "41.7 %", "mkdir 50.0 k/s", "write 1.00 GB/s"):
        assert part in text
    assert "server saturated" in text
    assert "\x1b" not in printed([replace(four(), parameter="\x1b[2J")])
    # Without parameters and phases there are no columns for them.
    bare = printed([seconds(1.0, 1.0)])
    assert "parameter" not in bare
    assert "rate" not in bare.partition("With")[0]
    assert printed([]) == "No round was made yet.\n"


@pytest.mark.parametrize(
    ("width", "absent", "ranges"),
    [(100, ["rounds", "limited by"], False), (140, [], False), (170, [], True)],
)
def test_a_terminal_without_room_shows_less(width: int, absent: list[str], ranges: bool) -> None:
    rounds = [replace(one, parameter="4k") for one in (four(), replace(four(), repeat=1))]
    table = printed(rounds, width).partition("With 4")[0]
    assert not any(name in table for name in ("not ok", "stragglers"))  # there are none
    for name in ("rounds", "limited by"):
        assert (name in table) == (name not in absent)
    assert ("2.30–3.70" in table) == ranges
    # No number is broken, and no line is longer than the terminal.
    assert re.search(r"3\.00 ms +12\.0 ms +41\.7 %", table)
    assert "mkdir 50.0 k/s" in table
    assert max(map(len, table.splitlines())) <= width


def test_both_ways_to_start_stand_beside_each_other() -> None:
    text = printed([seconds(1.0, 1.0), seconds(2.0, 2.0, start="exec")])
    assert re.search(r"^ *2 +entry ", text, re.MULTILINE)
    assert re.search(r"^ *2 +exec ", text, re.MULTILINE)
    for way in ("held at entry", "held before exec"):
        assert f"With 2 workers on 1 host, {way}, the tasks began" in text


def test_the_table_in_markdown() -> None:
    text = markdown([replace(four(), parameter="a|b<i>*")], limits=saturated)
    row = next(line for line in text.splitlines() if line.startswith("| 4 |"))
    assert "| a\\|b\\<i\\>\\* |" in row
    assert "| mkdir 50.0 k/s<br>write 1.00 GB/s |" in row
    head = next(line for line in text.splitlines() if line.startswith("| workers |"))
    assert len(re.findall(r"(?<!\\)\|", row)) == head.count("|")
    for one in evil():
        assert "<script>" not in markdown([one])


def test_all_that_comes_from_outside_is_escaped(tmp_path: Path) -> None:
    header = replace(header_of(task=EVIL, x=EVIL), machine={"host": EVIL}, versions={EVIL: EVIL})
    limits = lambda _: (Bottleneck(EVIL, EVIL),)  # noqa: E731
    page = render(header, evil(), limits=limits, files=tmp_path)
    assert "<script>document.title" not in page
    assert "<b>bold</b>" not in page
    assert page.count(ESCAPED) > 20


def test_links_lead_to_what_tasks_printed_and_nowhere_else() -> None:
    outputs = ["output/a b/1?#", "../../etc/passwd", "/etc/passwd", "javascript:alert(1)", ""]
    one = round_of(
        [
            task_of(number, 0.0, 1.0, status="failed", output=output)
            for number, output in enumerate(outputs)
        ]
    )
    found = trouble_of(cases_of([one]), Path("../runs"))
    links = [cells[-1].link for _, _, cells in found.failures.lines()]
    assert links == [
        "./../runs/output/a%20b/1%3F%23",
        "",
        "",
        "./../runs/javascript%3Aalert%281%29",
        "",
    ]
    assert not any(
        cells[-1].link for _, _, cells in trouble_of(cases_of([one]), None).failures.lines()
    )


def test_the_page_finds_outputs_from_where_it_is(tmp_path: Path) -> None:
    one = round_of([task_of(0, 0.0, 1.0, status="failed", output="output/0")])
    folder = write_folder(tmp_path / "results", [one])
    write_report(folder, folder / "report.html")
    assert 'href="./output/0"' in (folder / "report.html").read_text()
    write_report(folder, tmp_path / "elsewhere.html")
    assert 'href="./results/output/0"' in (tmp_path / "elsewhere.html").read_text()


@pytest.mark.parametrize(
    "rounds",
    [
        [],
        [seconds(1.0)],
        [round_of([task_of(0, None, None, status="lost")])],
        [round_of([task_of(n, 0.0, 0.1, status="failed", exit=1) for n in range(3)])],
        [round_of([])],
        [seconds(0.0, 0.0)],
        [four()],
        sweep((2, 4), ("off", "wal"), 1, samples=1),
    ],
    ids=["none", "one task", "lost", "all failed", "no tasks", "instant", "four", "words"],
)
def test_there_is_a_page_of_anything(driver, tmp_path: Path, rounds: list[Round]) -> None:
    folder = write_folder(tmp_path, rounds)
    write_report(folder, tmp_path / "report.html", limits=saturated)
    opened(driver, tmp_path / "report.html")
    assert printed(rounds)
    assert markdown(rounds)


def test_all_pictures_are_drawn(driver, tmp_path: Path) -> None:
    folder = write_folder(tmp_path, sweep(samples=10))
    write_report(folder, tmp_path / "report.html", limits=saturated)
    opened(driver, tmp_path / "report.html")
    names = driver.execute_script(
        """return [...document.querySelectorAll("[data-chart]")]
           .map(figure => figure.dataset.chart + " " + (figure.dataset.name ?? ""))"""
    )
    over = ["rate-0", "rate-1", "times"]
    counters = ["processors", "busy", "disks", "network", "dirty", "pressure", "watched"]
    assert sorted(names) == sorted(
        [
            *(f"curve workers-{name}" for name in (*over, "span", "skew", "simultaneity")),
            *(f"curve parameter-{name}" for name in over),
            *("running ", "share ", "delays ", "gantt "),
            *(f"counters {name}" for name in counters),
        ]
    )
    for name, found in drawn(driver).items():
        assert found["width"] > 300, name
        assert found["marks"] >= 1, name


def test_another_round_can_be_chosen(driver, tmp_path: Path) -> None:
    folder = write_folder(tmp_path, sweep((2, 14), ("4k",), 1, samples=4))
    write_report(folder, tmp_path / "report.html")
    opened(driver, tmp_path / "report.html")
    bars = """return document.querySelectorAll('[data-chart="gantt"] .barlayer .point').length"""
    choice = "return document.getElementById('chosen').selectedOptions[0].textContent"
    assert driver.execute_script(choice) == "14 workers, 4k, round 1"
    assert driver.execute_script(bars) == 14
    rows = "return document.querySelectorAll('#hosts tbody tr').length"
    assert driver.execute_script(rows) == 8
    driver.execute_script(
        """const chosen = document.getElementById("chosen");
           chosen.value = "1";
           chosen.dispatchEvent(new Event("change"));"""
    )
    assert driver.execute_script(choice) == "2 workers, 4k, round 1"
    assert driver.execute_script(bars) == 2
    assert driver.execute_script(rows) == 2
    assert driver.get_log("browser") == []


def test_hostile_names_are_shown_as_they_are(driver, tmp_path: Path) -> None:
    folder = write_folder(tmp_path, evil(), task=EVIL)
    write_report(folder, tmp_path / "report.html", limits=saturated)
    opened(driver, tmp_path / "report.html")
    assert driver.title == "gridbench sync: synchronised rounds"
    bold = "return [...document.querySelectorAll('b, svg [style*=bold]')].length"
    assert driver.execute_script(bold) == 0
    assert EVIL in driver.execute_script("return document.querySelector('h1').textContent")


def test_a_page_of_many_rounds_is_of_a_few_megabytes() -> None:
    rounds = sweep((56,), [f"{n}k" for n in range(1, 101)], 5, samples=20)
    page = render(header_of(), rounds, limits=saturated)
    data = page.partition('id="report-data">')[2].partition("</script>")[0]
    assert len(rounds) == 500
    assert len(data) < 2_500_000
    # A table of each case is there, and the rest that is not the data or Plotly.
    assert len(shown_rounds(cases_of(rounds))) == 40


def test_rounds_that_are_shown_are_of_all_cases_that_find_room() -> None:
    rounds = sweep((2, 4), ("1k", "2k"), 1, samples=0)
    shown = shown_rounds(cases_of(rounds))
    assert shown[0].workers == 4
    assert len(shown) == 4
    many = sweep((3_000,), [f"{n}k" for n in range(1, 9)], 1, samples=0)
    picked = shown_rounds(cases_of(many))
    assert len(picked) == 4
    (first, *_) = details(picked)
    assert len(first["tasks"]["worker"]) <= 400
    assert first["tasks"]["all"] == 3_000
    # Who is late is among those that are drawn.
    assert 5 in first["tasks"]["worker"]


def test_counters_that_show_nothing_have_no_picture() -> None:
    quiet = replace(
        sample_of(1.0, 1.0, busy=0.0, share=0.0),
        waiting=0.0,
        disk_read=0.0,
        disk_written=0.0,
        dirty=0,
        pressure={},
        watched={},
    )
    use = HostUse(host="node0", cores=2, memory=2**33, during=(quiet,))
    one = replace(four(), hosts=(use,))
    assert [panel.name for panel in panels([one])] == ["network"]
    (detail,) = details([one])
    assert [line["what"] for line in detail["counters"]["network"]["lines"]] == [
        "in",
        "out",
        "loopback",
    ]
    assert detail["counters"]["network"]["y"] == "all interfaces [MB/s]"
    assert panels([four()]) == []


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
    cases = cases_of([four()])
    found = running(cases)
    assert found is not None
    assert found["unit"] == "ms"
    assert found["lines"][0]["x"] == [0, 1, 2, 3, 8, 10, 11, 12]
    shares = share_running(cases)
    assert shares is not None
    assert shares["lines"][0]["x"][3:5] == [25.0, pytest.approx(66.667, abs=1e-3)]
    assert shares["lines"][0]["y"] == [25, 50, 75, 100, 75, 50, 25, 0]


def test_when_tasks_began_is_of_all_rounds_that_count() -> None:
    rounds = [four(), replace(four(), repeat=1), replace(four(), repeat=2, load=DISTURBED)]
    found = delays(cases_of(rounds))
    assert found is not None
    (line,) = found["lines"]
    assert line["x"] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert line["y"] == [12.5, 25, 37.5, 50, 62.5, 75, 87.5, 100]


def test_evenly_picked_items_have_the_first_and_the_last() -> None:
    assert evenly(range(100), 4) == [0, 33, 66, 99]
    assert evenly(range(3), 4) == [0, 1, 2]


def test_a_folder_of_results_is_of_this_kind(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "results", [four()])
    assert kind_of([folder]).__name__ == "gridbench.sync.result_kind"
    assert kind_of([tmp_path]).__name__ == "gridbench.report.result_kind"


def test_measures_are_of_the_rounds_that_count(tmp_path: Path) -> None:
    rounds = [replace(four(), repeat=0), replace(four(), repeat=1, load=DISTURBED)]
    folder = write_folder(tmp_path, [*rounds, seconds(1.0, 1.0, load=DISTURBED)])
    found = measures_of(folder)
    assert {case for case, _ in found} == {"4 workers"}
    assert found["4 workers", "start skew"] == Measure((pytest.approx(0.003),))  # type: ignore[arg-type]
    assert found["4 workers", "mkdir, operations"].better == "more"
    assert found["4 workers", "write, bandwidth"].values == pytest.approx((1e9,))


def test_results_without_a_round_that_counts_are_told_with_why(tmp_path: Path) -> None:
    rounds = [seconds(1.0, 1.0, load=DISTURBED, repeat=n) for n in range(2)]
    folder = write_folder(tmp_path, [*rounds, seconds(1.0, 1.0, status="failed", repeat=2)])
    told = "of 3 rounds, 1 failed, 2 disturbed by other programs"
    with pytest.raises(InputError, match=f"has no round that counts, .*: {told}"):
        measures_of(folder)


def test_two_results_are_compared(tmp_path: Path) -> None:
    before = write_folder(tmp_path / "a", [seconds(1.0, 1.0, repeat=n) for n in range(3)])
    after = write_folder(tmp_path / "b", [seconds(1.5, 1.5, repeat=n) for n in range(3)])
    kind = kind_of([before])
    found = compared(measures_of(before), measures_of(after))
    told = {one.what: (one.engine, one.verdict, one.ratio) for one in found}
    assert told["median task time"] == ("2 workers", "worse", 1.5)
    assert told["share of it in which all ran"] == ("2 workers", "no difference", 1.0)
    with pytest.raises(InputError, match="cannot be in one report with others"):
        kind.write_report([before, after], tmp_path / "both.html")


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

"""Documents about data grids: sentences, tables, charts, and comparisons."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from datagrid_cases import (
    DISTURBED,
    EVIL,
    campaign,
    four,
    header_of,
    killed,
    made,
    tasks_of,
    windows_of,
    write_folder,
)
from golden import same_as_golden
from gridbench.datagrid.cases import repeats_of, sweeps_of
from gridbench.datagrid.conclusions import clients_part, headline, notices, races
from gridbench.datagrid.document import document_of
from gridbench.datagrid.plots import (
    balance,
    case_tails,
    over,
    recoveries,
    shown_cases,
    task_chart,
    throughput_chart,
)
from gridbench.datagrid.record import DataGridCase, MemberUse, OperationCounts, WarmUp
from gridbench.datagrid.result_kind import DATA_GRIDS
from gridbench.datagrid.tables import (
    cases_table,
    fits_table,
    kills_table,
    relative_table,
    runs_table,
    times_table,
    trouble_table,
)
from gridbench.errors import InputError
from gridbench.formats import amount
from gridbench.pages.document import markdown
from gridbench.pages.render import page
from gridbench.pages.table import Table
from gridbench.pages.terminal import print_document
from gridbench.published.figures import data_grid_slides
from gridbench.result_kind import Measure, kind_of, write_report
from gridbench.results.table import compared, measures_of
from running import Run

ESCAPED = "&lt;script&gt;document.title=&#39;broken&#39;&lt;/script&gt;&lt;b&gt;bold&lt;/b&gt;"


def printed(cases: Sequence[DataGridCase], width: int = 200) -> str:
    out = io.StringIO()
    print_document(Console(file=out, width=width), document_of(header_of(), cases))
    return out.getvalue()


def written(*cases: DataGridCase) -> str:
    """The Markdown of cases."""
    return markdown(document_of(header_of(), cases))


def render(*cases: DataGridCase) -> str:
    """The page of cases."""
    return page(document_of(header_of(), cases))


def said(*cases: DataGridCase) -> str:
    return " ".join(headline(repeats_of(cases)))


def warned(*cases: DataGridCase) -> str:
    return " ".join(notices(repeats_of(cases)))


def texts(table: Table) -> list[list[str]]:
    return [
        [name.text, *(" ".join(filter(None, [cell.text, cell.note])) for cell in cells)]
        for _, name, cells in table.lines()
    ]


def twice(engine: str, title: str, *seconds: float) -> list[DataGridCase]:
    """Repeats of 40 reads that take so long."""
    return [
        replace(four(), engine=engine, title=title, seconds=time, repeat=repeat)
        for repeat, time in enumerate(seconds)
    ]


def evil() -> list[DataGridCase]:
    """Cases in which all that comes from outside is hostile."""
    case = made(EVIL, tasks_each=3)
    tasks = replace(case.tasks, why=(EVIL,) * len(case.tasks.id))
    hostile = replace(
        case,
        title=EVIL,
        version=EVIL,
        stated={"version": EVIL, "settings": EVIL},
        label=EVIL,
        placed=EVIL,
        tasks=tasks,
        errors={EVIL: 2},
        scaled={EVIL: EVIL},
        latencies=tuple(replace(one, operation=EVIL) for one in case.latencies),
    )
    sizes = [
        replace(hostile, parameters=case.parameters | {"ObjectSize": size}) for size in (1, 100)
    ]
    lost = replace(killed([100] * 30), engine=EVIL, title=EVIL, label=EVIL, errors={EVIL: 3})
    failed = replace(hostile, repeat=1, status="failed", why=EVIL)
    return [*sizes, lost, failed]


def all_kinds() -> list[DataGridCase]:
    """Sizes, clients, loops, a kill, and all that can go wrong."""
    cases = [made(label="update", size=size) for size in (1, 100, 1024)]
    cases += [made(scenario=2, clients=clients) for clients in (1, 100)]
    cases += [made("ignite", scenario=2, clients=100, slow=1.5)]
    cases += [made(scenario=None, loop=loop) for loop in ("closed", "open")]
    cases += [made(scenario=None, label="update", tasks_each=12, kill=(1,))]
    checked = cases[-1].checked
    assert checked is not None
    cases[-1] = replace(cases[-1], checked=replace(checked, missing=3, found=checked.found - 3))
    failed = replace(made("coherence"), status="failed", why="no member\njoined")
    falls = replace(four(), windows=windows_of(0.1, (3,) * 8 + (2,) * 12, (0,) * 20))
    unknown = replace(four(), repeat=1, load={"judgement": "not known"})
    return [*cases, failed, replace(made(size=10), load=DISTURBED), falls, unknown]


def test_the_document() -> None:
    same_as_golden(written(*all_kinds()), "datagrid/document.md")
    assert "<b>" not in written(*evil())


def test_the_fastest_is_named_if_it_is_certain() -> None:
    fast, slow = twice("a", "Fast", 1.0, 1.1), twice("b", "Slow", 2.0, 2.2)
    assert said(*fast, *slow).startswith(
        "Fast is the fastest in reads with objects of 1 KB, 2 clients on 3 members: 38.2"
        " operations/s (36.4 to 40.0), 10.0 ms at the median and 200 ms at p99. Others: Slow 19.1"
        " /s."
    )
    near = twice("b", "Slow", 1.05, 1.2)
    assert "Which of the first two is faster is not certain." in said(*fast, *near)
    # One run each tells nothing of how they scatter.
    assert "is the fastest" not in said(fast[0], slow[0])
    assert said(four()).startswith("Hazelcast does 20.0 operations/s, 10.0 ms at the median")


def test_what_does_not_count_is_not_the_fastest() -> None:
    fast, slow = twice("a", "Fast", 1.0, 1.1), twice("b", "Slow", 2.0, 2.2)
    disturbed = [replace(case, load=DISTURBED) for case in fast]
    assert said(*disturbed, *slow).startswith("Slow does 19.1 operations/s")
    alone = said(*disturbed)
    assert alone.startswith("Provisional: Fast ")
    assert "; the machine was busy in 2 of 2 runs." in alone


def test_the_race_is_of_the_case_that_most_have() -> None:
    groups = repeats_of(
        [made("hazelcast", clients=100), made("hazelcast", clients=10), made("ignite", clients=10)]
    )
    (race,) = races(groups)
    assert {group.case.title for group in race} == {"Hazelcast", "Apache Ignite"}
    assert race[0].case.parameters["NNodes"] == 10


def test_whether_the_data_are_right_is_reported() -> None:
    assert "All values, objects and updates were correct in the case." in said(four())
    checked = four().checked
    assert checked is not None
    wrong = replace(four(), checked=replace(checked, missing=2, found=998))
    assert "Of 1 case, the data were WRONG in 1 (Hazelcast)." in said(wrong)
    assert "Hazelcast, read, 1 KB, 2 clients, 3 members: 2 of 1,000 objects lost." in warned(wrong)
    assert "The data were not checked." in said(replace(four(), checked=None))
    members = tuple(replace(one, killed_at=1.0) for one in wrong.members[:2])
    both = replace(wrong, kill=(0, 1), members=members + wrong.members[2:])
    assert "the data incomplete, as was to be expected, in 1." in said(both)


def test_the_slides_stand_beside_ours() -> None:
    slides = data_grid_slides()
    assert (slides.update_per_mb.value, slides.update_constant.value) == (7.2, 0.2)
    assert slides.unloaded.value == 0.7
    assert slides.update_time(1) == pytest.approx(7.4)
    # Only of updates do the slides tell the line.
    assert len(fits_table(sweeps_of(repeats_of([made(), made(size=100)]), "ObjectSize")).rows) == 1


def test_pictures_over_sizes_have_the_published_line() -> None:
    groups = repeats_of(campaign(["hazelcast"], 1))
    curves = {one.id: one for one in over(sweeps_of(groups, "ObjectSize"), "size")}
    assert list(curves) == [
        f"size-{label}-{what}"
        for label in ("read", "update", "insert")
        for what in ("time", "rate")
    ]
    lines = {line.name: line for line in curves["size-update-time"].lines}
    assert list(lines) == [
        "Hazelcast",
        "Hazelcast, fit",
        "Coherence, slides: 7.2 s/MB × size + 0.2 s",
    ]
    published = lines["Coherence, slides: 7.2 s/MB × size + 0.2 s"].points
    assert published[0].value.value == pytest.approx(7.2 / 1024 + 0.2)
    assert published[-1].value.value == pytest.approx(72.2)
    assert not lines["Hazelcast"].joined
    # What is no measurement is not in the table.
    table = curves["size-update-time"].chart().table
    assert table is not None
    assert {row[0] for row in table.rows} == {"Hazelcast"}
    assert len(table.rows) == 4
    (line, slides) = over(sweeps_of(groups, "NNodes"), "clients")[0].lines
    assert line.joined
    assert {point.value.value for point in slides.points} == {0.7}


def test_times_are_those_of_as_many_operations_as_the_slides_have() -> None:
    half = [
        replace(made(scenario=None, size=size), parameters=made(size=size).parameters)
        for size in (1, 100)
    ]
    (sweep,) = sweeps_of(repeats_of(half), "ObjectSize")
    assert sweep.operations == 100
    fewer = [
        replace(case, parameters=case.parameters | {"NRepeats": 50}, repeat=0) for case in half
    ]
    (curve, _) = over(sweeps_of(repeats_of(fewer), "ObjectSize"), "size")
    (other, _) = over([sweep], "size")
    for one, twice_as_long in zip(other.lines[0].points, curve.lines[0].points, strict=True):
        assert twice_as_long.value.value == pytest.approx(2 * one.value.value)
    assert "Some tasks have another number of operations" in curve.about
    assert "another number" not in other.about


def test_a_constant_below_nothing_is_reported_with_its_sign() -> None:
    cases = [
        replace(case, tasks=replace(case.tasks, began=(0.0,) * 10, ended=(time,) * 10))
        for size, time in ((1024, 0.9), (2048, 1.9))
        for case in [made(size=size, label="update", tasks_each=1)]
    ]
    assert "100 updates take 1.00 s/MB × size - 100 ms (Hazelcast);" in said(*cases)


def test_without_members_none_are_reported() -> None:
    alone = replace(four(), members=())
    assert "3 members" not in said(alone)
    assert texts(cases_table(repeats_of([alone])))[0][4] == "–"


def test_contention_and_data_nodes_are_reported() -> None:
    cases = campaign(["hazelcast"], 1)
    assert re.search(
        r"On 1 member, a task of reads takes [78]\.\d+× \(Hazelcast\) as long as on 8 members\.",
        said(*cases),
    )
    groups = repeats_of(cases)
    table = relative_table(sweeps_of(groups, "NNodes"))
    assert table.head == ["engine", "operation", "1 client", "10 clients", "100 clients"]
    # Reading by one client failed: what comes next is compared with.
    read, update, _ = texts(table)
    assert (read[2], read[3]) == ("–", "1.00× throughput 1.00×")
    assert update[2] == "1.00× throughput 1.00×"
    times = times_table(sweeps_of(groups, "MNodes"))
    assert times.head == ["engine", "a task", "1 member", "4 members", "8 members"]
    assert texts(times)[0][:2] == ["Hazelcast", "read × 1,000"]


def test_a_kill_is_reported_with_what_was_lost() -> None:
    windows = [100] * 10 + [0] * 5 + [100] * 15
    case = killed(windows, errors={"gone": 4, "late": 1})
    assert (
        "With member 1 killed, 90 % of the throughput is there again: Hazelcast after 500 ms"
        in (said(case))
    )
    (row,) = texts(kills_table(repeats_of([case])))
    assert row[1:] == [
        "read, member 1 killed", "1.00 k/s", "0 /s", "100 %", "500 ms", "500 ms", "5", "0", "gone",
    ]  # fmt: skip
    never = killed([100] * 10 + [10] * 20)
    assert "Hazelcast not before the end of the run, with nothing lost" in said(never)
    assert texts(kills_table(repeats_of([never])))[0][6] == "not before the end"
    assert kills_table(repeats_of([four()])).rows == []


def test_the_table_of_cases() -> None:
    (row,) = texts(cases_table(repeats_of([four()])))
    assert row == [
        "Hazelcast", "read", "1 KB", "2", "3", "1", "20.0 /s", "20.5 KB/s", "600 ms 500–700 ms",
        "2.35 s 0.500–4.20 s", "10.0 ms", "200 ms", "right",
    ]  # fmt: skip
    groups = repeats_of(
        [replace(four(), load=DISTURBED), replace(made(), status="failed", why="no")]
    )
    table = cases_table(groups)
    assert list(table.styles) == ["uncounted", "uncounted"]
    assert [row[0] for row in texts(table)] == ["Hazelcast*", "Hazelcast*"]
    assert texts(table)[0][-1] == "failed"
    assert [row[2:] for row in texts(trouble_table(groups))] == [
        ["failed", "no"],
        ["invalid", "other programs disturbed it"],
    ]


def test_the_part_of_the_clients_is_bounded_by_the_shortest_latency_of_each_data_grid() -> None:
    shortest = min(
        found.latencies["read", "service"].p50
        for group in repeats_of([four()])
        for found in group.figures
    )
    quick = replace(
        four(),
        engine="quick",
        latencies=tuple(
            replace(one, values=tuple(value // 4 for value in one.values))
            for one in four().latencies
        ),
    )
    cases = [four(), quick, replace(four(), repeat=1)]
    each = f"{four().engine} {amount(shortest, 's')}, quick {amount(shortest / 4, 's')}."
    reported = clients_part(repeats_of(cases))
    assert reported.endswith(f"the shortest median latency that each data grid has: {each}")
    assert "client programs are in all latencies" in written(*cases)
    assert "client programs are in all latencies" in render(*cases)
    # What counts from when an operation should have begun has waiting in it.
    intended = tuple(replace(one, counted="intended") for one in four().latencies)
    assert clients_part(repeats_of([replace(four(), latencies=intended)])) == ""
    assert clients_part([]) == ""


def test_nothing_measured_is_reported_so() -> None:
    assert headline([]) == ["No case was measured yet."]
    assert notices([]) == []
    assert written() == "No case was measured yet.\n"
    text = render()
    assert "No case came to its end yet." in text
    failed = replace(four(), status="failed", why="Java is missing")
    assert said(failed) == "No case came to its end: Java is missing."
    assert "Java is missing" in render(failed)


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_the_terminal_has_room(width: int) -> None:
    text = printed(campaign(["hazelcast"], 1), width)
    table = text[: text.index("* No repeat of")].splitlines()
    assert max(map(len, table)) <= width
    assert "Hazelcast" in text
    assert "23.1 k/s" in text
    # Words stay readable.
    assert "\n Ha" not in text.replace("\n Hazelcast", "")


def test_names_steer_no_terminal() -> None:
    text = printed([replace(four(), title="a\x1b[31mb", version="\x1b")])
    assert "\x1b" not in text
    assert "a?[31mb" in text


def test_recovery_is_drawn_as_a_share_of_the_level_before() -> None:
    found = recoveries(repeats_of([killed([100] * 10 + [50] * 5 + [100] * 15)]))
    assert found is not None
    assert found.data is not None
    (line,) = found.data["traces"]
    assert (line["x"][10], line["y"][9], line["y"][10]) == (0.0, 100.0, 50.0)
    assert recoveries(repeats_of([four()])) is None


def test_balance_is_of_the_case_with_the_most_members() -> None:
    found = balance(repeats_of([made(members=1), made(members=4), made("ignite", members=3)]))
    assert found is not None
    assert found.data is not None
    ours, theirs = found.data["traces"]
    assert (ours["name"], len(ours["x"]), len(theirs["x"])) == ("Hazelcast", 4, 3)
    assert sum(ours["x"]) == pytest.approx(400, abs=0.1)
    unknown = replace(four(), members=(MemberUse(index=0, host="a", joined_in=1, memory=5),))
    assert balance(repeats_of([unknown])) is None


def test_charts_of_a_case_are_bounded() -> None:
    places = range(9_000)
    times = tuple(float(place) for place in places)
    clients = tuple(place % 150 for place in places)
    tasks = tasks_of(tuple(places), clients, times, times, (1,) * 9_000, ("",) * 9_000)
    wide = replace(four(), tasks=tasks)
    large = task_chart(wide, "tasks", 2).data
    assert large is not None
    assert len(large["traces"][0]["x"]) == 4_000
    assert len(set(large["traces"][0]["y"])) == 100
    several = [made(size=n, clients=1, tasks_each=1) for n in range(1, 60)]
    several += [made(label="update", scenario=None, kill=(1,), tasks_each=12)]
    shown = shown_cases(repeats_of(several))
    assert len(shown) == 40
    assert any(group.case.kill for group in shown)


def test_charts_of_a_case() -> None:
    case = replace(killed([100] * 30, at=1.25), conflicts=3, errors={"gone": 2})
    case = replace(case, tasks=replace(case.tasks, why=("the member is gone",)))
    tasks, rate = task_chart(case, "tasks", 1).data, throughput_chart(case, "rate")
    assert tasks is not None
    assert rate is not None
    assert rate.data is not None
    assert [one["name"] for one in tasks["traces"]] == ["task", "an operation failed"]
    assert tasks["layout"]["annotations"][0]["text"] == "member 1 killed"
    assert tasks["layout"]["shapes"][0]["x0"] == 1.25
    assert rate.data["traces"][0]["y"][0] == 1000
    (row,) = texts(runs_table([("run", group) for group in repeats_of([case])]))
    assert row[4:] == [
        "3,000", "3.00 s", "1", "9.00 s", "3.00 s", "5.00 s, steady", "0.50", "100 ms", "3",
        "right", "–", "2 × gone",
    ]  # fmt: skip
    assert throughput_chart(replace(case, windows=windows_of(0.1, (), ())), "rate") is None


def test_tails_have_ticks_for_quantiles() -> None:
    (group,) = repeats_of([four()])
    found = case_tails(group, "latencies")
    assert found is not None
    assert found.data is not None
    assert found.data["x"]["texts"] == ["", "50 %", "90 %", ""]
    assert found.data["lines"][0]["x"][-1] == 40
    assert found.data["lines"][0]["y"][-1] == pytest.approx(0.2)
    (without,) = repeats_of([replace(four(), latencies=())])
    assert case_tails(without, "latencies") is None


def test_sections_are_there_if_there_are_data_for_them() -> None:
    text = render(*campaign(["hazelcast"], 1))
    ids = re.findall(r'<section id="([\w-]+)"', text)
    assert ids == [
        "summary",
        "over-objectsize-1",
        "over-nnodes-2",
        "over-mnodes-3",
        "latency",
        "loops",
        "kills",
        "memory",
        "correctness",
        "case",
        "method",
    ]
    assert [place for place in re.findall(r'<a href="#([\w-]+)"', text) if place not in ids] == []
    small = render(replace(four(), members=(), loading=None))
    ids = re.findall(r'<section id="([\w-]+)"', small)
    assert ids == ["summary", "latency", "correctness", "case", "method"]


def test_the_page_tells_how_products_were_set_up_and_what_was_scaled() -> None:
    text = render(*campaign(["hazelcast"], 1))
    assert "Partitioned map of Hazelcast." in text
    assert "Partitioned map of Apache Ignite." not in text
    assert re.search(r"scenario 1</th><td>MNodes</td><td>3</td><td>8</td>", text.replace("\n", ""))
    # Without a word about the engine, its version is that of the case.
    bare = render(four())
    assert "not stated" in bare


def test_every_text_from_outside_is_escaped() -> None:
    text = render(*evil())
    body = text[text.index("<body>") :]
    assert "<b>bold" not in body
    assert ESCAPED in body


def test_cases_without_an_operation_can_be_shown() -> None:
    """A mix without a success."""
    empty = replace(four(), latencies=(), counts=OperationCounts(), label="ycsb-e", seconds=1.0)
    assert "does 0 operations/s, in operations of YCSB E" in said(empty)
    assert render(empty)


def test_cases_that_are_too_short_to_judge_are_marked() -> None:
    short = replace(four(), windows=windows_of(0.1, (2,) * 9, (0,) * 9))
    long = replace(short, engine="ignite", title="Apache Ignite", windows=four().windows)
    reported = "† 1 case was too short to judge whether throughput was steady"
    out = printed([short, long])
    assert "Hazelcast†" in out
    assert "Apache Ignite†" not in out
    assert f"{reported}: all clients worked for less than 1.00 s." in out
    text = render(short, long)
    assert reported in text
    assert text.count("Hazelcast†") >= 1
    assert reported in written(short)
    assert "†" not in printed([long])
    # A star says more, and a member that is killed is looked at in another way.
    assert "†" not in printed([replace(short, load=DISTURBED), killed([100] * 8, at=0.4)])
    sizes = [replace(short, parameters=short.parameters | {"ObjectSize": n}) for n in (1, 100)]
    table = times_table(sweeps_of(repeats_of(sizes), "ObjectSize"))
    assert [cell.text[-1] for cell in table.rows[0][2:] if not isinstance(cell, str)] == ["†", "†"]


def test_measures_for_comparisons(tmp_path: Path) -> None:
    folder = write_folder(
        tmp_path / "out", [four(), replace(made(size=100), load=DISTURBED), killed([100] * 30)]
    )
    kind = kind_of([folder])
    assert kind is DATA_GRIDS
    found = measures_of(folder)
    case = "read, 1 KB, 2 clients, 3 members"
    assert found["hazelcast", f"{case}: throughput"] == Measure((20.0,), "operations/s", "more")
    assert found["hazelcast", f"{case}: median task time"].values == (pytest.approx(0.6),)
    assert found["hazelcast", f"{case}: read, p99"].values == (pytest.approx(0.2),)
    assert found["hazelcast", f"{case}, member 1 killed: recovery after a kill"].values == (0.0,)
    # A disturbed case says nothing.
    assert not any("100 KB" in what for _, what in found)


def test_results_without_a_valid_run_say_what_is_missing(gridbench: Run, tmp_path: Path) -> None:
    risen = replace(four(), repeat=1, windows=windows_of(0.1, (2,) * 10 + (9,) * 10, (0,) * 20))
    cold = replace(four(), repeat=2, warm_up=WarmUp(seconds=1.0, steady=False, operations=9))
    cases = [replace(four(), load=DISTURBED), risen, cold, replace(four(), repeat=3, warm_up=None)]
    cases += [replace(four(), repeat=4, status="failed", why="no room")]
    folder = write_folder(tmp_path / "before", cases)
    with pytest.raises(InputError) as caught:
        measures_of(folder)
    assert caught.value.what == (
        "has no case that counts, and so nothing to compare: of 5 cases, 2 not steady,"
        " 1 disturbed by other programs, 1 without warm-up, 1 failed"
    )
    assert "--rounds" in caught.value.remedy
    with pytest.raises(InputError, match="it holds none"):
        measures_of(write_folder(tmp_path / "empty", []))
    write_folder(tmp_path / "after", [four()])
    done = gridbench("report", "before", "after")
    assert done.returncode == 2
    said = " ".join(done.stderr.split())
    assert "before" in said
    assert "of 5 cases, 2 not steady" in said
    assert "in common" not in said


def test_two_results_are_compared(gridbench: Run, tmp_path: Path) -> None:
    before = write_folder(tmp_path / "before", twice("hazelcast", "Hazelcast", 2.0, 2.1, 2.2))
    after = write_folder(tmp_path / "after", twice("hazelcast", "Hazelcast", 1.0, 1.1, 1.2))
    found = compared(measures_of(before), measures_of(after))
    reported = {one.what.rpartition(": ")[2]: (one.engine, one.verdict) for one in found}
    assert reported["throughput"] == ("hazelcast", "better")
    assert reported["median task time"] == ("hazelcast", "no difference")
    done = gridbench("report", "before", "after", "--fail-above", "5%", "--out", "compare.html")
    assert done.returncode == 0, done.stderr
    worse = gridbench("report", "after", "before", "--fail-above", "5%", "--out", "compare.html")
    assert worse.returncode == 1, worse.stderr
    assert "read, 1 KB, 2 clients, 3 members: throughput" in worse.stdout
    assert "members: throughput" in (tmp_path / "compare.html").read_text()


def test_the_program_writes_the_page(gridbench: Run, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "out", [four()])
    done = gridbench("report", str(folder))
    assert done.returncode == 0, done.stderr
    text = next(tmp_path.rglob("*.html")).read_text(encoding="utf-8")
    assert "gridbench data: data grids" in text
    with pytest.raises(InputError, match="cannot be in one report"):
        write_report([folder, folder], tmp_path / "both.html")


def test_the_page_is_not_written_where_it_cannot_be(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "out", [four()])
    with pytest.raises(InputError, match="cannot be written"):
        write_report([folder], tmp_path / "none" / "page.html")

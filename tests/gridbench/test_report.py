"""The report as a file: what it says, what it escapes, what it refuses."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import timelines
from golden import same_as_golden
from gridbench.analysis.columns import seconds
from gridbench.errors import InputError
from gridbench.formats import duration, shortened, size
from gridbench.pages.document import markdown
from gridbench.pages.render import page as page_in_html
from gridbench.report.charts import FEWEST_TASKS, MOST_TASKS, most_tasks, shown_tasks
from gridbench.report.document import document_of
from gridbench.report.prose import interrupted, notices, sentences
from gridbench.report.run_analysis import study
from gridbench.report.source import Run, load_runs
from gridbench.result_kind import write_report
from gridbench.tasklog import TaskLogHeader, TaskLogWriter

SAMPLE = Path(__file__).parent / "data" / "symphony_sample.log"


def render(studies):
    return page_in_html(document_of(studies))


def log_of(path: Path, table, nnodes: int) -> Path:
    with TaskLogWriter(path, TaskLogHeader(table.num_rows, nnodes, "input.1", 0, 0, 0)) as log:
        for row in table.to_pylist():
            stamps = (row[name] for name in ("slept", "submit", "calc_in", "calc_out", "retrieve"))
            log.row(row["tid"], *stamps, row["host"])
    return path


def run_of(table, *, ntasks=None, nnodes=2, cold=True, record=None) -> Run:
    count = table.num_rows if ntasks is None else ntasks
    return Run("engine", Path("runs/engine"), table, count, nnodes, cold, record or {}, ())


def data_in(page: str):
    found = re.search(r'id="report-data">(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])


def stamps_of(found):
    """By name, in the order of submit times."""
    chart = data_in(render([found]))["charts"]["stamps-1-submit"]
    return {trace["name"]: trace["y"] for trace in chart["traces"]}


def test_published_sample(tmp_path):
    out = tmp_path / "report.html"
    write_report([SAMPLE], out)
    page = out.read_text(encoding="utf-8")
    assert "8 of 1,200 tasks are recorded" in page
    assert "calc-out to retrieve (6 tasks)" in page
    charts = data_in(page)["charts"]
    # Two tasks ran one after the other on no host: eight tasks, eight workers of five hosts.
    workers = charts["gantt-1"]["y"]["ticktext"]
    assert len(workers) == 8
    assert workers[0] == "grid107 #1"
    assert charts["gantt-1"]["layout"]["shapes"][0]["x0"] == pytest.approx(35.665958)
    assert max(charts["running"]["traces"][0]["y"]) == 8
    assert list(tmp_path.iterdir()) == [out]


def test_all_of_a_page_has_stamps_on_the_clients_clock():
    logged, truth = timelines.skewed_run(offset=5.0)
    nothing = {"machine": {"host": "elsewhere"}}
    found = study(run_of(logged, nnodes=100, record=nothing))
    right = study(run_of(truth, nnodes=100, record=nothing))
    exactly = 0.005
    # The summary, concurrency, costs, and overheads.
    for name in ("total", "first_calc_in", "last_worker_calc_in"):
        assert getattr(found.summary, name) == pytest.approx(
            getattr(right.summary, name), abs=exactly
        )
    assert found.summary.dispatch.p99 == pytest.approx(right.summary.dispatch.p99, abs=2 * exactly)
    assert found.summary.most_running == right.summary.most_running
    assert found.concurrency.mean(found.end) == pytest.approx(
        right.concurrency.mean(right.end), rel=1e-3
    )
    assert found.cost is not None
    assert right.cost is not None
    for part, value in right.cost.parts().items():
        assert found.cost.parts()[part] == pytest.approx(value, abs=2 * exactly), part
    assert found.handling.percentile(99) == pytest.approx(
        right.handling.percentile(99), abs=2 * exactly
    )
    # Lanes, the Gantt chart and the stamps of the page.
    assert len(found.lanes.names) == len(right.lanes.names)
    assert np.abs(found.input_begin - right.input_begin).max() < 2 * exactly
    drawn = stamps_of(found)
    order = np.argsort(truth["submit"], kind="stable")
    for name, column in (("calc-in", "calc_in"), ("calc-out", "calc_out")):
        assert drawn[name] == pytest.approx(truth[column].to_numpy()[order], abs=exactly)
    # The report shows the log as it was, and what was done about it.
    (negative, moved) = notices(found)
    assert negative.startswith("Negative intervals: calc-out to retrieve")
    assert moved.startswith("Clocks differ: that of node")
    assert "stamps of 20 hosts of 20 were moved" in moved
    assert "All times and pictures on this page" in moved


def test_lost_tasks_are_not_taken_for_dispatch():
    whole = timelines.made_run(200, 10)
    lost = whole.filter(pa.array([number % 7 != 3 for number in range(200)]))
    found = study(run_of(lost, ntasks=200, nnodes=10))
    assert found.cost is None
    assert found.handling.count == 0
    assert math.isnan(found.phases.means()["dispatch"])
    assert found.phases.means()["output"] == pytest.approx(float(found.phases.output.mean()))
    assert found.round_trip.count == lost.num_rows
    message = " ".join(sentences(found))
    assert "171 of 200 tasks" in message
    assert "free worker" not in message
    (notice,) = notices(found)
    assert "Dispatch and the cost of going remote are not known" in notice
    assert render([found])
    # Of an interrupted run nothing that ended is lost.
    stopped = study(run_of(lost, ntasks=200, nnodes=10, record={"status": "interrupted"}))
    assert stopped.cost is not None
    assert stopped.handling.count > 0


def test_stamps_of_some_minutes_are_not_taken_for_whole_milliseconds():
    random = np.random.default_rng(5)
    times = np.sort(60 + np.round(random.uniform(0, 100, 60), 6))
    rows = [
        {"submit": 60.0, "calc_in": t, "calc_out": t + 1e-3, "retrieve": t + 2e-3} for t in times
    ]
    assert study(run_of(timelines.table_of(rows))).resolution() == 0.0
    coarse = [{name: round(value, 3) for name, value in row.items()} for row in rows]
    assert study(run_of(timelines.table_of(coarse))).resolution() == 1e-3


def test_on_one_machine_nothing_is_moved():
    logged, _ = timelines.skewed_run(offset=5.0, hosts=1)
    here = run_of(logged, nnodes=100, record={"machine": {"host": "node0"}})
    assert study(here).run.table is logged


def test_runs_side_by_side_have_a_column_each_and_names_apart(tmp_path):
    (tmp_path / "other").mkdir()
    first = log_of(tmp_path / "run.log", timelines.made_run(20, 4), 4)
    second = log_of(tmp_path / "other" / "run.log", timelines.made_run(30, 5, seed=2), 5)
    runs = load_runs([first, second])
    assert [run.name for run in runs] == ["1: run (run.log)", "2: run (run.log)"]
    out = tmp_path / "report.html"
    write_report([first, second], out)
    page = out.read_text(encoding="utf-8")
    assert "2 runs compared" in page
    assert page.count('data-name="gantt-') == 2
    assert page.count('data-name="running"') == 1


def test_folders_of_several_engines(tmp_path):
    for number, engine in enumerate(("native", "pool")):
        folder = tmp_path / engine
        folder.mkdir()
        pq.write_table(timelines.made_run(20, 4, seed=number), folder / "timeline.parquet")
        record = {
            "status": "complete" if number else "interrupted",
            "invalid_because": [] if number else ["the run was interrupted"],
            "engine": {"name": f"{engine}-engine", "version": "3.2.1", "configuration": {}},
            "start": "warm" if number else "cold",
            "setup": {"NTasks": 20, "NNodes": 4, "InputFile": "input.1"},
            "machine": {"host": "somewhere"},
            "summary": {"total": 1.0},
        }
        (folder / "run.json").write_text(json.dumps(record))
    out = tmp_path / "report.html"
    write_report([tmp_path], out)
    page = out.read_text(encoding="utf-8")
    charts = data_in(page)["charts"]
    assert [trace["name"] for trace in charts["running"]["traces"]] == [
        "native-engine",
        "pool-engine",
    ]
    first = [charts[f"gantt-{n}"]["traces"][0]["name"] for n in (1, 2)]
    assert first == ["start-up and first input", "input"]
    assert "native-engine 3.2.1 · 20 tasks on 4 workers · cold start · times from input.1" in page
    assert "summary.total" not in page
    assert page.count("The run does not count: the run was interrupted") == 1
    write_report([tmp_path / "pool"], out)
    assert "does not count" not in out.read_text(encoding="utf-8")


def test_text_from_logs_cannot_become_markup():
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    table = timelines.table_of(
        [
            {"submit": 0.0, "calc_in": 1.0, "calc_out": 2.0, "retrieve": 3.0, "host": evil},
            {"status": evil},
        ]
    )
    run = run_of(table, record={evil: {"engine": evil}})
    page = render([study(Run(evil, Path(evil), table, 2, 1, True, run.record, (evil,)))])
    assert "<script>alert" not in page
    assert "<img" not in re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert data_in(page)["charts"]["phases"]["y"]["ticktext"] == [shortened(evil, 40)]


@pytest.mark.parametrize(
    "table",
    [
        timelines.table_of([]),
        timelines.table_of([{}]),
        timelines.table_of([{"status": "worker died"}] * 3),
        timelines.table_of([{"submit": 1.0, "calc_in": 2.0, "calc_out": 2.0, "retrieve": 2.0}]),
        timelines.table_of([{"submit": 0.0, "sleep": 0.0}]),
    ],
    ids=["no task", "all NaN", "all failed", "one task", "submit only"],
)
@pytest.mark.parametrize("cold", [True, False])
def test_little_to_report(table, cold):
    found = study(run_of(table, ntasks=max(1, table.num_rows), cold=cold))
    page = render([found])
    assert ("gantt-1" in data_in(page)["charts"]) == np.isfinite(found.input_begin).any()
    assert sentences(found)
    assert "nan" not in " ".join(sentences(found))


def test_notices():
    row = {"submit": 0.0, "calc_in": 1.0, "calc_out": 2.0, "retrieve": 1.5}
    table = timelines.table_of([row, {"status": "worker 3 was killed by signal 9"}])
    said = " ".join(notice for notice in notices(study(run_of(table, ntasks=5, record={"x": 1}))))
    assert "1 task of 5 failed: worker 3 was killed by signal 9 (1)" in said
    assert "2 of 5 tasks are recorded" in said
    assert "calc-out to retrieve (1 task)" in said
    whole = [
        {"submit": 0.12345, "calc_in": 1.1, "calc_out": 2.2, "retrieve": 3.3, "worker": f"w{n}"}
        for n in range(4)
    ]
    assert notices(study(run_of(timelines.table_of(whole), nnodes=4))) == []


def test_coarse_clock_is_said():
    row = {"submit": 0.0, "calc_in": 1.0, "calc_out": 2.0, "retrieve": 3.0}
    found = notices(study(run_of(timelines.table_of([row] * 3))))
    assert any("multiples of 1.000 s" in notice for notice in found)


def test_nothing_is_said_of_what_clocks_are_not_known_to():
    rows = [
        {
            "submit": float(n),
            "calc_in": n + 300e-6,
            "calc_out": n + 0.5,
            "retrieve": n + 0.5 + back,
            "sleep": 0.4,
            "clock_error": 50e-6,
        }
        for n, back in enumerate([-20e-6, 10e-6, 20e-6])
    ]
    done = study(run_of(timelines.table_of(rows), nnodes=1, cold=False))
    assert notices(done) == []
    assert "known to within 50.00 µs" in " ".join(sentences(done))
    page = render([done])
    assert '<th scope="row">output</th><td>below 50.00 µs</td>' in page
    # By 20 µs the host's clock must be ahead, as the first result was there when it was.
    assert '<th scope="row">dispatch</th><td>280.0 µs</td>' in page
    # Beyond that, it is.
    rows[0]["retrieve"] -= 100e-6
    done = study(run_of(timelines.table_of(rows), nnodes=1, cold=False))
    assert "calc-out to retrieve (1 task)" in notices(done)[0]


def test_runs_from_before_clocks_were_recorded(tmp_path):
    row = {"submit": 0.0, "queued": 0.5, "calc_in": 1.0, "calc_out": 2.0, "retrieve": 3.0}
    table = timelines.table_of([row]).drop_columns("clock_error")
    record = json.dumps({"setup": {"NTasks": 1, "NNodes": 1}, "status": "complete"})
    for name in ("whole", "cut off"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(record)
    pq.write_table(table, tmp_path / "whole" / "timeline.parquet")
    (values,) = (list(one.values()) for one in table.to_pylist())
    line = json.dumps(values)
    (tmp_path / "cut off" / "timeline.journal.jsonl").write_text(f"{line}\n{line[:9]}")
    runs = load_runs([tmp_path / "whole", tmp_path / "cut off"])
    for run in runs:
        assert run.table.num_rows == 1
        assert run.table.drop_columns("clock_error").equals(table)
        assert math.isnan(run.table["clock_error"][0].as_py())
    assert "known to within" not in render([study(run) for run in runs])


@pytest.mark.parametrize(
    ("record", "expected"),
    [({}, False), ({"status": "complete"}, False), ({"status": "interrupted"}, True)],
)
def test_interrupted(record, expected):
    assert interrupted(run_of(timelines.table_of([]), record=record)) is expected


def test_what_the_last_result_waited_for_is_on_the_page():
    whole = study(run_of(timelines.made_run(20, 2)))
    page = render([whole])
    assert "<h3>What the last result waited for" in page
    assert "start-up: its worker to start" in page
    path = data_in(page)["charts"]["gantt-1"]["traces"][-1]
    assert path["name"] == "critical path"
    assert path["text"][0].startswith("critical path: start-up, ")
    assert (path["x"][0], path["x"][-1]) == (0.0, pytest.approx(whole.end))
    # Of a run that lost tasks nobody knows what it waited for.
    part = study(run_of(timelines.made_run(20, 2), ntasks=21))
    assert "<h3>What the last result waited for" not in render([part])


def test_page_carries_a_bounded_part_of_a_huge_run():
    rows = timelines.table_of(
        [{"submit": 0.0, "calc_in": 1.0, "calc_out": 2.0, "retrieve": 3.0, "worker": "w"}]
    )
    table = timelines.pa.concat_tables([rows] * (MOST_TASKS + 10))
    found = study(run_of(table))
    assert len(stamps_of(found)["submit"]) == MOST_TASKS
    assert f"{MOST_TASKS:,} of {MOST_TASKS + 10:,} tasks are shown" in render([found])


def test_the_page_of_a_hundred_thousand_tasks_stays_small_and_says_what_it_carries():
    found = study(run_of(timelines.made_run(100_000, 1000), nnodes=1000))
    page = render([found])
    assert len(page.encode()) <= 1.7e6
    assert f"are of {MOST_TASKS:,} of the 100,000 tasks" in page
    rows = shown_tasks(found, MOST_TASKS)
    assert len(rows) == len(set(rows.tolist())) == MOST_TASKS
    assert (np.diff(rows) > 0).all()
    length = seconds(found.run.table, "retrieve") - seconds(found.run.table, "submit")
    assert int(np.argmax(length)) in rows
    assert found.path[-1].row in rows
    # The sample is of the beginning, the middle and the end.
    counts = np.histogram(rows, bins=10, range=(0, 100_000))[0]
    assert counts.min() >= MOST_TASKS // 2 // 10 * 0.8


def test_a_page_of_few_tasks_shows_all():
    found = study(run_of(timelines.made_run(50, 4), nnodes=4))
    assert shown_tasks(found, 50).tolist() == list(range(50))
    assert "even sample" not in render([found])
    assert len(shown_tasks(found, 49)) == 49


def test_runs_on_one_page_share_what_it_carries():
    found = [study(run_of(timelines.made_run(600, 4), nnodes=4))] * 5
    charts = data_in(render(found))["charts"]
    shown = [len(charts[f"stamps-{n}-submit"]["traces"][0]["y"]) for n in range(1, 6)]
    assert shown == [MOST_TASKS // 5] * 5
    assert most_tasks(found * 100) == FEWEST_TASKS


def test_the_old_report_stays_if_the_new_one_fails(tmp_path):
    out = tmp_path / "report.html"
    out.write_text("old")
    with pytest.raises(InputError):
        write_report([tmp_path / "none.log"], out)
    assert out.read_text() == "old"
    with pytest.raises(InputError, match="cannot be written"):
        write_report([SAMPLE], tmp_path / "no folder" / "report.html")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (4.5e-7, "0.450 µs"),
        (0.0009999, "999.9 µs"),
        (0.99999, "1.000 s"),
        (-0.003, "-3.000 ms"),
        (1234.56, "1,235 s"),
        (float("nan"), "–"),
    ],
)
def test_duration(seconds, text):
    assert duration(seconds) == text


def test_size():
    assert [size(count) for count in (0, 1024, 100 * 2**20)] == ["0 B", "1 KB", "100 MB"]


SLEEPS = {"machine": {}, "task": "sleep"}
COMPUTES = {"machine": {}, "task": "spin"}
CALLS = {"machine": {}, "task": "folder/farm:work"}
TRACE = {"machine": {}, "task": ""}


@pytest.mark.parametrize(
    ("records", "name"),
    [
        ([SLEEPS], "sleep"),
        ([COMPUTES], "computing"),
        ([CALLS], "function"),
        ([TRACE], "computing"),
        ([SLEEPS, CALLS], "computing"),
    ],
)
def test_the_own_time_of_tasks_is_named_by_what_they_do(records, name):
    page = render([study(run_of(timelines.made_run(20, 2), record=one)) for one in records])
    assert f"Everything but the {name} itself" in page
    assert f'<th scope="row">{name}</th>' in page
    assert f"beyond its {name} on a worker" in page
    if SLEEPS not in records:
        assert "sleep" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)


def test_what_rounding_leaves_of_a_task_is_no_time():
    row = {"submit": 0.0, "calc_in": 0.3, "calc_out": 0.3 + 6.5523, "retrieve": 7.0}
    for rounding, extra in ((4e-10, 0.0), (-4e-10, 0.0), (-1e-6, 1e-6)):
        table = timelines.table_of([row | {"sleep": 6.5523 + rounding}])
        found = study(run_of(table, nnodes=1, record=TRACE))
        assert found.cost is not None
        assert found.cost.extra == pytest.approx(extra, abs=1e-12)
        assert (found.cost.extra == 0) == (found.phases.means()["extra"] == 0) == (extra == 0)
        assert sum(found.cost.parts().values()) == pytest.approx(found.cost.total, abs=1e-12)


def test_tasks_that_did_nothing_have_no_efficiency():
    row = {"sleep": 1.0, "slept": 0.0, "submit": 0.0, "calc_in": 1e-5, "calc_out": 1e-5}
    found = study(run_of(timelines.table_of([row | {"retrieve": 2e-5}] * 4), nnodes=2))
    message = " ".join(sentences(found))
    assert "Its tasks were to take 2.000 s, which they did not." in message
    page = render([found])
    assert "The tasks did not take the 2.000 s that they were to take." in page
    assert "efficiency of" not in page
    whole = study(run_of(timelines.made_run(20, 2)))
    assert "an efficiency of" in sentences(whole)[0]
    assert "did not take" not in render([whole])


def test_runs_as_a_document():
    def run(name: str, nnodes: int) -> Run:
        record = {"engine": {"name": name}, "machine": {"host": "a", "cores": 4}}
        table = timelines.made_run(40, nnodes, seed=1)
        return Run(name, Path(name), table, 40, nnodes, True, record, ())

    studies = [study(run("loky", 4)), study(run("process-pool", 4))]
    same_as_golden(markdown(document_of(studies)), "report/runs.md")
    same_as_golden(markdown(document_of(studies[:1])), "report/run.md")

"""The one-page recommendation from stored results: what it says, and what it does not."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from golden import same_as_golden
from gridbench.compare.record import FORM, Execution
from gridbench.errors import InputError
from gridbench.formats import between
from gridbench.jsonl_store import Header
from gridbench.model.model import PipelineModel
from gridbench.model.saved import save_models
from gridbench.pages.document import StaticChart, markdown
from gridbench.pages.render import page
from gridbench.printing import Printing
from gridbench.recommend.decision import PlannedWork, Recommendation, recommendations
from gridbench.recommend.document import (
    document_of,
    findings,
    headline,
    sentences,
    sources_table,
    trends_table,
)
from gridbench.recommend.evidence import read_evidence
from gridbench.recommend.options import planned_work, run_recommend, write_pdf
from gridbench.scenario.grids import GridChoice, cases_of
from gridbench.scenario.results import FORM as SCENARIO_FORM
from running import Run
from scenario_results import header_of, result_of


def scenario(
    folder: Path,
    slower: dict[str, float],
    *,
    host: str = "node1",
    date: str = "2031-01-01T08:00:00+0000",
    rounds: int = 3,
    busy: bool = False,
) -> Path:
    """Results of scenario 4 of engines that take so many times as long as the formula."""
    header = replace(header_of(4), machine={"host": host, "cores": 8}, started=date)
    file = SCENARIO_FORM.open(folder, header, fresh=False)
    for case in cases_of(4, GridChoice())[:3]:
        for engine, factor in slower.items():
            for number in range(rounds):
                noise = 1 + 0.002 * number
                made = result_of(case, engine, slower=factor * noise)
                assert made.total_s is not None
                made = replace(made, round=number, total_s=made.total_s * factor * noise)
                if busy:
                    made = replace(made, status="invalid", reason="disturbed: by others")
                file.add(made)
    file.close()
    return folder


def comparison(folder: Path, wall: float, *, date: str, host: str = "node1") -> Path:
    """Results of `gridbench compare` of two commands."""
    names = ("old", "new")
    commands = [{"name": name, "line": name, "parameters": {}} for name in names]
    header = Header(
        machine={"host": host, "cores": 8}, versions={"python": "3"}, started=date, seed=1,
        options={"commands": commands},
    )  # fmt: skip
    file = FORM.open(folder, header, fresh=False)
    for number in range(6):
        for name, factor in zip(names, (2.0, 1.0), strict=True):
            file.add(
                Execution(
                    phase="compare", round=number, place=0, command=name, at=date,
                    wall=wall * factor * (1 + 0.001 * number), memory=1 << 20,
                    load={"judgement": "undisturbed"},
                )
            )  # fmt: skip
    file.close()
    return folder


def advice(folder: Path, model: PipelineModel, engine: str = "gridrpc-native") -> Path:
    """The folder of `gridbench advise` with a model."""
    folder.mkdir()
    place = replace(model.fit.place, host="node1", engine=engine)
    save_models([replace(model, fit=replace(model.fit, place=place))], folder / "model.json")
    return folder


def recommended(
    sources: Sequence[Path], work: PlannedWork | None = None, cores: int | None = None
) -> Recommendation:
    (found,) = recommendations(read_evidence(sources), work, cores)
    return found


def test_the_engine_is_the_one_that_is_faster_in_all(tmp_path: Path) -> None:
    folder = scenario(tmp_path / "a", {"gridrpc-native": 1.0, "dask": 1.5, "ray": 3.0})
    found = recommended([folder])
    assert [one.name for one in found.ranked] == ["gridrpc-native", "dask", "ray"]
    assert found.ranked[0].fastest == found.ranked[0].workloads == 3
    assert found.ranked[1].ratio == pytest.approx(1.6, rel=0.2)
    assert found.ranked[1].proven == 3
    assert headline([found]).startswith("gridrpc-native is fastest in 3 of 3 workloads, and 1.")
    assert not found.provisional


def test_disturbed_runs_give_a_provisional_answer(tmp_path: Path) -> None:
    folder = scenario(tmp_path / "a", {"gridrpc-native": 1.0, "dask": 1.5}, busy=True)
    found = recommended([folder])
    assert headline([found]).startswith("Provisional: gridrpc-native is fastest in 3 of 3")
    assert found.ranked[1].proven == 0
    assert "an undisturbed comparison of engines" in found.missing[0][0]
    assert "--wait-for-quiet" in found.missing[0][1]
    # An undisturbed comparison takes precedence, also over a later one.
    sure = scenario(tmp_path / "b", {"gridrpc-native": 2.0, "dask": 1.0}, date="2030-01-01T00:00")
    both = recommended([folder, sure])
    assert (both.ranked[0].name, both.claims) == ("dask", True)


def test_nothing_is_claimed_that_was_not_measured(tmp_path: Path) -> None:
    folder = scenario(tmp_path / "a", {"dask": 1.0})
    found = recommended([folder])
    assert headline([found]) == "No engine can be recommended, as only dask was measured."
    assert found.core_hours is None
    assert dict(sentences(found))["Task size"] == "Not known: there is no model."
    commands = [command for _, command in found.missing]
    assert [one.split()[1] for one in commands] == ["run", "advise", "recommend", "micro"]


def test_work_becomes_tasks_cores_and_core_hours(tmp_path: Path, model: PipelineModel) -> None:
    folder = advice(tmp_path / "a", model)
    work = planned_work("100x2s", 0.5)
    assert (work.seconds, work.tasks) == (200, 100)
    found = recommended([folder], work, 4)
    assert found.advice is not None
    assert found.core_hours is not None
    assert found.advice.split.tasks == 100  # those that it has, as they are long enough
    assert found.advice.split.cores <= 4
    expected = found.advice.expected.total * found.advice.split.cores / 3600
    assert found.core_hours == pytest.approx(expected)
    assert found.core_hours >= 200 / 3600
    answers = dict(sentences(found))
    assert f"{found.core_hours * 0.5:.2f} at 0.5 per core-hour" in answers["Cost"]
    assert found.advice.limit[0][1:] in answers["Limit"]
    least = found.task_time
    assert least is not None
    assert 0 < least.low < least.expected < least.high < 10


@pytest.mark.parametrize("text", ["0x2s", "-1x2s", "manyx2s", "2xs", "soon", "99999999x1s"])
def test_work_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--work"):
        planned_work(text, None)


def test_several_dates_become_a_history(tmp_path: Path) -> None:
    folders = [
        comparison(tmp_path / str(year), wall, date=f"{year}-05-04T10:00:00+0000")
        for year, wall in ((2030, 1.0), (2031, 1.02), (2032, 1.5))
    ]
    found = recommended(folders[::-1])
    trend = found.trends[0]
    assert (trend.dates[0][:4], trend.dates[-1][:4]) == ("2030", "2032")
    rows = {name.text: [cell.text for cell in c] for _, name, c in trends_table(found).lines()}
    assert rows["new: wall time"][1:] == ["1.00 s", "1.50 s", "1.50×", "worse"]
    assert findings(found)[0][0] == "gridbench compare"
    assert findings(found)[0][1].startswith("“new” is 2.00 times as fast as “old”")
    blocks = [block for _, block in document_of([found]).blocks("page")]
    (chart,) = [block for block in blocks if isinstance(block, StaticChart)]
    assert chart.file == "history-1.svg"
    assert chart.svg.count("<circle") == 3


def test_each_machine_has_its_own_recommendation(tmp_path: Path) -> None:
    first = scenario(tmp_path / "a", {"gridrpc-native": 1.0, "dask": 1.5})
    other = scenario(tmp_path / "b", {"gridrpc-native": 2.0, "dask": 1.0}, host="node2")
    found = recommendations(read_evidence([first, other]))
    assert [(one.host, one.engine) for one in found] == [
        ("node1", "gridrpc-native"),
        ("node2", "dask"),
    ]
    reported = headline(found)
    assert "on node1; dask is fastest" in reported
    html = page(document_of(found))
    assert html.count('<section id="machine-') == 2
    assert str(first) in html
    assert "<script" not in html


def test_what_holds_no_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_evidence([tmp_path / "none"])
    with pytest.raises(InputError, match="holds no results"):
        read_evidence([tmp_path])


def test_the_markdown_is_as_reviewed(
    tmp_path: Path, model: PipelineModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    scenario(Path("scenario-4"), {"gridrpc-native": 1.0, "dask": 1.5, "ray": 3.0})
    for year, wall in ((2030, 1.0), (2031, 1.5)):
        comparison(Path(f"compare-{year}"), wall, date=f"{year}-05-04T10:00:00+0000")
    comparison(Path("other"), 1.0, date="2031-05-04T10:00:00+0000", host="node2")
    advice(Path("advice"), model)
    sources = [
        Path(name) for name in ("scenario-4", "compare-2030", "compare-2031", "other", "advice")
    ]
    made = recommendations(read_evidence(sources), PlannedWork(3600.0, None, 0.04), 8)
    same_as_golden(markdown(document_of(made)), "recommend/recommendation.md")


def test_without_a_browser_there_is_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    folder = scenario(tmp_path / "a", {"gridrpc-native": 1.0, "dask": 1.5})
    out = tmp_path / "out"
    assert run_recommend([folder], work=None, cores=None, folder=out, printing=Printing()) == 0
    assert "no PDF: Chromium is not installed; run `apt-get install" in capsys.readouterr().err
    assert {one.name for one in out.iterdir()} == {
        "recommendation.html",
        "recommendation.md",
        "engines-1.svg",
    }


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium")
def test_the_page_becomes_a_pdf(tmp_path: Path) -> None:
    source, out = tmp_path / "page.html", tmp_path / "page.pdf"
    source.write_text("<p>text</p>")
    assert write_pdf(source, out) == ""
    assert out.read_bytes().startswith(b"%PDF")


def test_the_command_prints_json(gridbench: Run, tmp_path: Path) -> None:
    scenario(tmp_path / "a", {"gridrpc-native": 1.0, "dask": 1.5})
    done = gridbench("recommend", "a", "--out", "out", "--json", env={"PATH": "/nowhere"})
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    (machine,) = document["machines"]
    assert (machine["host"], machine["engine"], machine["core_hours"]) == (
        "node1",
        "gridrpc-native",
        None,
    )
    assert "![" in (tmp_path / "out" / "recommendation.md").read_text()
    page = tmp_path / "out" / "recommendation.html"
    page.write_text("mine")
    refused = gridbench("recommend", "a", "--out", "out")
    assert refused.returncode == 2
    assert "the output folder holds a recommendation already" in refused.stderr
    assert page.read_text() == "mine"
    assert gridbench("recommend", "a", "--out", "out", "--force").returncode == 0
    assert page.read_text() != "mine"
    refused = gridbench("recommend", "a", "--price", "1")
    assert refused.returncode == 2
    assert "--price is the price of a core-hour of --work" in refused.stderr


def test_equals_are_not_ranked(tmp_path: Path) -> None:
    folder = scenario(tmp_path / "a", {"gridrpc-native": 1.0, "dask": 1.01})
    found = recommended([folder])
    reported = "gridrpc-native and dask are as fast as each other within 5 % on average."
    assert headline([found]) == reported
    assert dict(sentences(found))["Engine"].startswith("gridrpc-native or dask: on average neither")


def test_of_engines_in_a_tie_the_one_with_a_model_gives_the_answers(
    tmp_path: Path, model: PipelineModel
) -> None:
    work = planned_work("5000x30s", 0.04)
    folder = scenario(tmp_path / "a", {"gridrpc-native": 1.0, "dask": 1.01, "ray": 3.0})
    stored = advice(tmp_path / "advice", model, "dask")
    found = recommended([folder, stored], work)
    assert found.ranked[0].name == "gridrpc-native"
    assert (found.engine, found.model_source) == ("dask", str(stored))
    answers = dict(sentences(found))
    assert (
        "; task size, cores and cost are those of dask, the first with a model."
        in answers["Engine"]
    )
    assert "Cost" in answers
    assert headline([found]).startswith("dask ")
    # The model of an engine that is slower does not count.
    slower = advice(tmp_path / "slower", model, "ray")
    assert recommended([folder, slower], work).engine == "gridrpc-native"


def test_a_small_provisional_lead_does_not_leave_out_the_engine_with_a_model(
    tmp_path: Path, model: PipelineModel
) -> None:
    work = planned_work("5000x30s", 0.04)
    stored = advice(tmp_path / "advice", model, "dask")
    for slower, engine in ((1.1, "dask"), (1.5, "gridrpc-native")):
        times = {"gridrpc-native": 1.0, "dask": slower}
        folder = scenario(tmp_path / engine, times, busy=True)
        found = recommended([folder, stored], work)
        assert (found.engine, found.provisional) == (engine, True)
        is_noted = "are those of dask, the first with a model." in dict(sentences(found))["Engine"]
        assert is_noted == (engine == "dask")
    # Undisturbed runs prove it.
    sure = scenario(tmp_path / "sure", {"gridrpc-native": 1.0, "dask": 1.1})
    assert recommended([sure, stored], work).engine == "gridrpc-native"


def test_the_command_for_a_model_works_as_it_is(
    tmp_path: Path, gridbench: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = scenario(Path("a"), {"process-pool": 1.0, "gridrpc-native": 1.5}, busy=True)
    found = recommended([folder])
    (command,) = [one for _, one in found.missing if one.startswith("gridbench advise")]
    assert command == ("gridbench advise --work 100s --cores 8 --engine process-pool --accept-load")
    done = gridbench(*shlex.split(command)[1:])
    assert done.returncode == 0, done.stderr
    (made,) = Path("runs").iterdir()
    assert (made / "model.json").is_file()


def test_a_comparison_is_proposed_with_the_engine_that_has_a_model(
    tmp_path: Path, model: PipelineModel
) -> None:
    stored = advice(tmp_path / "advice", model, "dask")
    commands = [command for _, command in recommended([stored]).missing]
    assert commands[0] == "gridbench run dask gridrpc-native"
    assert commands[1] == f"gridbench recommend {stored} --work 100h"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("5000x30s", "Your tasks of 30 s are long enough: tasks of at least about "),
        ("100000x1ms", " or more of your tasks together, to tasks from about "),
        ("100h", "From about "),
        ("4x1ms", "The work is too short for tasks that suit; "),
    ],
)
def test_task_sizes_are_a_range_and_never_as_large_as_can_be(
    text: str, size: str, tmp_path: Path, model: PipelineModel
) -> None:
    found = recommended([advice(tmp_path / "a", model)], planned_work(text, None), 2)
    answers = dict(sentences(found))
    assert size in answers["Task size"]
    least = found.task_time
    assert found.advice is not None
    assert least is not None
    cores, tasks = found.advice.split.cores, found.advice.split.tasks
    if "too short" not in size:
        # No core waits for long for the last tasks, and none is too short.
        assert tasks >= 4 * cores
        assert found.advice.work.seconds / tasks >= 0.99 * least.expected
        assert f"({between(least.low, least.high)})" in answers["Task size"]


def test_the_page_says_what_the_work_was_and_what_measured_it(
    tmp_path: Path, model: PipelineModel
) -> None:
    stored = advice(tmp_path / "advice", replace(model, made="2031-02-03T04:05", disturbed=2))
    found = recommended([stored], planned_work("5000x30", 0.04))
    answers = dict(sentences(found))
    # A time without a unit is seconds: the page shows how it was read.
    assert answers["Work"] == ("5,000 tasks of 30 s, 41.7 h on one core; a core-hour costs 0.04.")
    assert answers["Measured"] == "2031-02-03, gridrpc-native 1."
    assert " for 5,000 tasks of 30 s on 2 cores" in headline([found])
    rows = {name.text: [cell.text for cell in c] for _, name, c in sources_table(found).lines()}
    assert rows[str(stored)] == ["gridbench advise", "2031-02-03 04:05", "0", "1"]


def test_models_below_a_folder_are_found(tmp_path: Path, model: PipelineModel) -> None:
    stored = [advice(tmp_path / name, model, name) for name in ("dask", "ray")]
    # Of something else, in a file of the same name.
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "model.json").write_text("{}")
    assert [one.source for one in read_evidence([tmp_path])] == stored
    (stored[0] / "model.json").write_text('{"kind": "gridbench model"}')
    with pytest.raises(InputError, match="is not a model"):
        read_evidence([stored[0]])


def test_a_model_of_servers_is_compared_on_servers(tmp_path: Path, model: PipelineModel) -> None:
    place = replace(model.fit.place, host="node1, workers on lab-1", transport="links")
    there = replace(model, fit=replace(model.fit, place=replace(place, engine="gridrpc-native")))
    (tmp_path / "a").mkdir()
    save_models([there], tmp_path / "a" / "model.json")
    found = recommended([tmp_path / "a"])
    # How many processors the servers have is not known.
    assert [one.title for one in document_of([found]).sections] == ["node1, workers on lab-1"]
    command = "gridbench run gridrpc-native gridrpc-python --grid grid.toml"
    assert found.missing[0][1] == command

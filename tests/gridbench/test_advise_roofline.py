"""Tasks that share processors and memory: their time, the bottleneck, and the sentences."""

from __future__ import annotations

import io
import json
import os
import platform
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

from gridbench.advise import memory
from gridbench.advise.advice import MEMORY, Advice, advise
from gridbench.advise.command import AdviceRequest, give_advice
from gridbench.advise.document import _requested, document_of
from gridbench.advise.memory import Bandwidth, bandwidth_path, load_bandwidth, measured_here
from gridbench.advise.options import AdviceParameters
from gridbench.advise.options import advise as command
from gridbench.advise.profiled import Profiled
from gridbench.advise.prose import kind_text, memory_text, rate_text, sentences, warnings
from gridbench.advise.uneven import Uneven
from gridbench.advise.work import (
    MOST_TRAFFIC,
    DivisibleWork,
    Roofline,
    parse_bandwidth,
    parse_roofline,
)
from gridbench.analysis.columns import Floats
from gridbench.errors import InputError
from gridbench.machine.load import Load, LoadSample
from gridbench.machine.options import Policy
from gridbench.model.model import PipelineModel
from gridbench.model.observation import EnginePlace
from gridbench.model.saved import save_models
from gridbench.pages.render import page as html
from gridbench.printing import Printing
from gridbench.simulate.profiles import system
from gridbench.workload.numbers import MOST_CORES
from synthetic import PLACE

GB = 2**30
WORK = DivisibleWork(seconds=80.0, cores=64, body="spin")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache directory of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def work(
    threads: int = 1, traffic: float = 0.0, bandwidth: float = 0.0, **more: object
) -> DivisibleWork:
    """The work on 8 processors."""
    roofline = Roofline(threads=threads, traffic=traffic, bandwidth=bandwidth)
    changed: dict[str, object] = {"roofline": roofline, **more}
    return replace(WORK, **changed).on_processors(8)  # type: ignore[arg-type]


# What tasks take.


@pytest.mark.parametrize(
    ("threads", "cores"), [(1, 8), (2, 4), (3, 2), (4, 2), (5, 1), (8, 1), (9, 1), (100, 1)]
)
def test_as_many_tasks_run_at_once_as_have_processors_for_their_threads(
    threads: int, cores: int
) -> None:
    found = work(threads)
    assert (found.cores, found.cores_asked) == (cores, 64)
    # No more are busy than there are.
    assert found.processors == min(8, cores * threads)


def test_fewer_cores_than_that_are_left_as_they_are() -> None:
    few = work(4, cores=2)
    assert (few.cores, few.cores_asked, few.units) == (2, 0, "processors")
    assert work(2, cores=2).units == "cores"
    assert replace(WORK, cores=1).on_processors(1).units == "processors"
    waits = replace(WORK, body="sleep")
    assert waits.on_processors(8) is waits


def test_threads_that_share_processors_slow_their_task_down() -> None:
    assert work(8).divided(4, 1).sleep.tolist() == [20.0] * 4
    assert work(16).divided(4, 1).sleep.tolist() == [40.0] * 4
    assert work(16).alone == 160.0
    # More tasks at once than have processors: no split is promised more than the processors give.
    several = work(4, cores=2).divided(8, 4)
    assert several.sleep.tolist() == [20.0] * 8
    assert several.ideal == 40.0


def test_tasks_at_once_share_the_memorys_bandwidth() -> None:
    # 80 GB at 2 GB/s: 40 s at least, and 80 s of computing.
    found = work(traffic=80.0 * GB, bandwidth=2.0 * GB)
    assert found.alone == 80.0
    for count, seconds in ((1, 10.0), (2, 10.0), (4, 20.0), (8, 40.0)):
        assert found.divided(8, count).sleep.tolist() == pytest.approx([seconds] * 8)
        assert found.divided(8, count).ideal == pytest.approx(max(40.0, 80.0 / count))
    assert [found.limited_by_memory(count) for count in (1, 2, 3)] == [False, False, True]
    # No work is promised sooner than its data can come.
    for tasks in (8, 9, 12, 15, 100):
        assert found.divided(tasks, 8).ideal >= 40.0 * (1 - 1e-9)
    # Tasks that memory alone limits take longer than given.
    assert work(traffic=80.0 * GB, bandwidth=0.5 * GB).alone == 160.0


def test_the_last_round_of_tasks_has_the_memory_for_itself() -> None:
    found = work(traffic=80.0 * GB, bandwidth=2.0 * GB)
    assert found.divided(5, 4).sleep.tolist() == [32.0] * 4 + [16.0]


def test_tasks_that_differ_share_memory_too() -> None:
    found = work(traffic=80.0 * GB, bandwidth=2.0 * GB, uneven=Uneven(share=0.5))
    for one in found.drawn(16, 8):
        assert one.sleep.sum() == pytest.approx(80.0 * 4)
    for one in found.drawn(16, 2):
        assert one.sleep.sum() == pytest.approx(80.0)


# The advice, and its sentences.


def given(model: PipelineModel, of: DivisibleWork) -> Advice:
    """By a model of a machine with 8 processors."""
    place = replace(PLACE, processors=8)
    return advise(replace(model, fit=replace(model.fit, place=place)), of)


def test_memory_limits_before_the_processors_do(model: PipelineModel) -> None:
    advice = given(model, work(traffic=80.0 * GB, bandwidth=2.0 * GB))
    # On two cores the memory is all in use; more of them bring nothing.
    assert advice.split.cores == 2
    assert advice.expected.total >= 40.0
    slow = given(model, work(traffic=80.0 * GB, bandwidth=1.9 * GB))
    what, part = slow.limit
    assert what == MEMORY
    assert part == pytest.approx(slow.expected.ideal) == pytest.approx(80 / 1.9)
    parts = dict(slow.parts)
    assert sum(parts.values()) == pytest.approx(slow.expected.total, rel=0.02)
    assert parts["computing"] == pytest.approx(80.0 / slow.split.cores)
    assert slow.helps[0].what == "memory twice as fast"
    twice = given(model, work(traffic=80.0 * GB, bandwidth=3.8 * GB)).expected.total
    assert slow.helps[0].total == pytest.approx(twice)
    more = [one.total for one in slow.helps if "processors instead of" in one.what]
    assert all(total > 0.98 * slow.expected.total for total in more)
    reported = " ".join(sentences(slow))
    assert "The bottleneck is memory bandwidth (" in reported
    assert "more processors of this machine would not help" in reported
    assert "Its tasks move 80 GB through memory, which moves 1.9 GB/s" in reported
    assert ": 42 s at least, however many run at once." in reported
    assert any(text.startswith("The bandwidth is that of data") for text in warnings(slow))
    page = html(document_of(slow))
    assert "80 GB through memory" in page
    assert "Memory bandwidth" in page


def test_plenty_of_bandwidth_changes_nothing(model: PipelineModel) -> None:
    plain = given(model, work())
    rich = given(model, work(traffic=GB, bandwidth=1000.0 * GB))
    assert (rich.split, rich.expected, rich.parts) == (plain.split, plain.expected, plain.parts)
    assert rich.limit[0] == "computing"
    assert "use more processors" in " ".join(sentences(rich))


def test_more_processors_are_not_promised_where_memory_would_limit(model: PipelineModel) -> None:
    # All 8 processors are just what the memory has data for.
    advice = given(model, work(traffic=80.0 * GB, bandwidth=8.0 * GB))
    reported = " ".join(sentences(advice))
    assert advice.limit[0] == "computing"
    assert "with twice as many processors it would be memory bandwidth." in reported
    # Four of them get just as much as they need, and with two more each would get less.
    few = given(model, work(traffic=80.0 * GB, bandwidth=4.0 * GB, cores=2))
    assert few.limit[0] == "computing"
    assert "of the time): use more cores." in " ".join(sentences(few))


@pytest.mark.parametrize(
    ("processors", "cores", "threads", "doubled"),
    [(8, 8, 1, 16), (8, 3, 1, 8), (8, 2, 3, 12), (0, 8, 1, 0)],
)
def test_twice_the_cores_have_processors_of_their_own(
    processors: int, cores: int, threads: int, doubled: int
) -> None:
    one = replace(WORK, cores=cores, roofline=Roofline(threads=threads, processors=processors))
    assert (one.doubled().cores, one.doubled().roofline.processors) == (2 * cores, doubled)


def test_threads_are_reported_with_the_processors_that_they_have(model: PipelineModel) -> None:
    advice = given(model, work(3))
    assert advice.split.cores == 2
    first = sentences(advice)[0]
    assert first.endswith("on 2 workers of made-up, as tasks that compute with 3 threads each.")
    assert "One task after the other, it would take 80.00 s." in sentences(advice)[1]
    assert any(one.what == "12 processors instead of 6" for one in advice.helps)
    assert warnings(advice)[-1] == (
        "You requested 64 cores, but tasks that compute with 3 threads run at full speed only 2 at"
        " a time on the 8 processors of here: more would slow each other down."
    )
    # One task that has a processor for each thread is not slowed down.
    assert "run at full speed only 1 at a time" in warnings(given(model, work(8)))[-1]
    crowded = given(model, work(12))
    assert crowded.expected.ideal == pytest.approx(120.0)
    assert warnings(crowded)[-1] == (
        "One task at a time keeps the machine busy. A task has 12 threads, which share the 8"
        " processors of here: it is taken to last 1.5 times as long as with a processor for each of"
        " them."
    )
    assert not any("at full speed" in text for text in warnings(crowded))
    for threads in (1, 2, 12):
        page = html(document_of(given(model, work(threads))))
        assert [what in page for what in ("Threads of each task", "Tasks at once")] == [
            threads > 1
        ] * 2


def test_the_kind_of_work_is_reported() -> None:
    assert kind_text(WORK) == "that compute"
    assert kind_text(replace(WORK, body="sleep")) == "that wait"
    assert kind_text(work(2)) == "that compute with 2 threads each"
    assert _requested(work(2, traffic=3.0 * GB)) == (
        "80.00 s of work that computes with 2 threads in each task, up to 4 workers of the"
        " 64 requested, 3 GB through"
        " memory, cold start"
    )
    assert memory_text(work(2, traffic=3.0 * GB)) == ""
    assert rate_text(work(traffic=1.0, bandwidth=12.3456 * GB)) == "12.35 GB/s"


def test_workers_elsewhere_have_a_processor_for_each_thread(model: PipelineModel) -> None:
    for threads in (2, 4):
        of = replace(WORK, roofline=Roofline(threads=threads))
        reported = f"Each worker is taken to have {threads} processors, one for each thread."
        assert reported in warnings(advise(Profiled(system("symphony")), of))
        # So too where a model is of, if that is no machine of its own.
        assert reported in warnings(given(model, of))
    alone = replace(WORK, roofline=Roofline(threads=1))
    for advice in (advise(Profiled(system("symphony")), alone), given(model, alone)):
        assert not any("each thread" in one for one in warnings(advice))


# The command line.


def test_options_become_a_roofline() -> None:
    found = parse_roofline(threads=4, traffic="1.5GB", body="spin")
    assert found == Roofline(threads=4, traffic=1.5 * GB)
    assert parse_bandwidth("2GB/s", "1.5GB") == 2.0 * GB
    assert parse_bandwidth(None, None) is None
    assert parse_roofline(threads=None, traffic=None, body="sleep") == Roofline()
    # More than any file has.
    found = parse_roofline(threads=None, traffic="5000TB", body="spin")
    assert found == Roofline(traffic=5000.0 * 2**40)


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        ("--threads-per-task 2 --task sleep", "--threads-per-task is for work that computes"),
        ("--memory-traffic 2GB --task sleep", "--memory-traffic is for work that computes"),
        ("--memory-bandwidth 2GB/s", "--memory-bandwidth is for work that moves data"),
        ("--memory-traffic 0", "--memory-traffic: `0` is not above 0"),
        ("--memory-traffic much", "--memory-traffic: `much` is not a size"),
        ("--memory-traffic 2000000TB", "is more than an exabyte"),
        ("--memory-traffic 1GB --memory-bandwidth 0GB/s", "`0GB/s` is not above 0"),
        ("--memory-traffic 1GB --profile symphony", "--memory-traffic is for an engine"),
        ("--memory-traffic 1GB --server lab", "--memory-traffic is for tasks on one machine"),
        ("--memory-traffic 1GB --try", "--try runs tasks of one thread"),
        ("--threads-per-task 2 --try", "--try runs tasks of one thread"),
    ],
)
def test_what_makes_no_sense_is_refused_in_two_lines(
    options: str, reported: str, tmp_path: Path
) -> None:
    given = ["--work", "10s", "--cores", "4", "--out", str(tmp_path / "out"), *options.split()]
    found = CliRunner().invoke(command, given)
    assert isinstance(found.exception, InputError)
    assert reported in str(found.exception)
    assert str(found.exception).count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("wrong", "reported"),
    [
        ({"threads": 0}, "the number of threads must be from 1 to"),
        ({"threads": MOST_CORES + 1}, "the number of threads must be from 1 to"),
        ({"traffic": -1.0}, "makes no sense"),
        ({"traffic": 1.001 * MOST_TRAFFIC}, "makes no sense"),
    ],
)
def test_other_rooflines_are_refused(wrong: dict[str, float], reported: str) -> None:
    Roofline(threads=MOST_CORES, traffic=MOST_TRAFFIC)
    with pytest.raises(InputError, match=reported):
        Roofline(**wrong)  # type: ignore[arg-type]


# The bandwidth.


def test_the_bandwidth_is_measured_with_all_threads_at_once() -> None:
    rate = memory.measure(2, size=1 << 20, rounds=2)
    # Of any machine: more than a slow disk gives, and less than any cache.
    assert 1e7 < rate < 1e14


@pytest.mark.parametrize(
    ("processors", "size", "count", "took"),
    [(1, 8_000_000, 1_000_000, 1), (2, 160_000, 10_000, 3), (4, 320, 10, 7), (2, 8, 1, 3)],
)
def test_three_arrays_are_moved_from_the_first_begin_to_the_last_end(
    processors: int, size: int, count: int, took: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    added: list[int] = []

    def add(one: Floats, other: Floats, *, out: Floats) -> None:
        out[:] = one + other
        added.append(len(out))

    monkeypatch.setattr(np, "add", add)
    # Between two looks at the clock 20 s pass in the first round, and 1 s in the second, which
    # counts.
    seconds = [*range(0, 40 * processors, 20), *range(100 * processors, 102 * processors)]
    monkeypatch.setattr(memory, "time", SimpleNamespace(perf_counter=iter(seconds).__next__))
    assert memory.measure(processors, size=size, rounds=2) == 3 * 8 * count * processors / took
    assert added == [count] * (2 * processors)


def test_arrays_take_a_quarter_of_the_memory_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_cache", lambda: 1 << 30)
    monkeypatch.setattr(memory, "available_memory", lambda: 600_000_000)
    assert memory._size() == 50_000_000


def test_without_room_for_more_than_caches_hold_the_bandwidth_is_requested(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 12 * (32 << 20))
    assert memory._size() == 32 << 20
    monkeypatch.setattr(memory, "available_memory", lambda: 12 * (32 << 20) - 12)
    with pytest.raises(InputError, match="384 MB of memory are free, too little") as refused:
        memory.measure(1)
    assert refused.value.remedy.startswith("give it by --memory-bandwidth")


def test_arrays_are_four_times_the_largest_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, size in (("index0", "48K\n"), ("index3", "16384K\n"), ("index4", "?"), ("x", "9K")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "size").write_text(size)
    monkeypatch.setattr(memory, "available_memory", lambda: 1 << 40)
    monkeypatch.setattr(memory, "Path", lambda *_: tmp_path)
    assert memory._size() == 64 << 20
    # STREAM's least, and no more than a measurement needs.
    (tmp_path / "index3/size").write_text("2048K\n")
    assert memory._size() == 32 << 20
    (tmp_path / "index3/size").write_text("4194304K\n")
    assert memory._size() == 1 << 30
    monkeypatch.setattr(memory, "Path", lambda *_: tmp_path / "nothing")
    assert memory._size() == 32 << 20


def test_what_was_measured_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "measure", lambda processors: 2.5 * processors)
    processors = len(os.sched_getaffinity(0))
    before = time.time()
    found = measured_here()
    assert (found.rate, found.processors) == (2.5 * processors, processors)
    assert before <= found.made <= time.time()
    assert load_bandwidth(bandwidth_path()) == found
    assert json.loads(bandwidth_path().read_bytes())["format"] == 1
    again = measured_here()
    assert again.made >= found.made
    assert load_bandwidth(bandwidth_path()) == again
    bandwidth_path().unlink()
    measured_here(stored=False)
    assert load_bandwidth(bandwidth_path()) is None


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"rate": 1.0}', '{"rate": -1.0, "processors": 2, "made": 0.0}',
             '{"rate": 0.0, "processors": 2, "made": 0.0}',
             '{"kind": "other", "rate": 1.0, "processors": 2, "made": 0.0}',
             '{"format": 2, "rate": 1.0, "processors": 2, "made": 0.0}']
)  # fmt: skip
def test_other_files_are_no_bandwidth(tmp_path: Path, text: str) -> None:
    (tmp_path / "other.json").write_text(text)
    assert load_bandwidth(tmp_path / "other.json") is None
    (tmp_path / "other.json").write_text('{"rate": 1.0, "processors": 2, "made": 0.0}')
    assert load_bandwidth(tmp_path / "other.json") == Bandwidth(rate=1.0, processors=2, made=0.0)


def _bandwidth(
    of: DivisibleWork,
    place: EnginePlace,
    given: float | None = None,
    *,
    renew: bool = False,
    printed: io.StringIO | None = None,
) -> float:
    console = Console(file=printed or io.StringIO())
    found = memory.with_bandwidth(of, place, given, Policy(), console, renew=renew)
    return found.roofline.bandwidth


def test_the_bandwidth_is_that_of_the_machine_of_the_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    quiet = LoadSample(Load(seconds=1, others=0.01), ())
    rates = iter((3.0, 4.0))
    monkeypatch.setattr(memory, "settle", lambda *_: quiet)
    monkeypatch.setattr(memory, "measure", lambda _: next(rates))
    here = replace(PLACE, host=platform.node(), processors=len(os.sched_getaffinity(0)))
    moves = work(traffic=GB)
    assert _bandwidth(work(), here) == 0.0
    assert _bandwidth(moves, here, given=7.0) == 7.0
    reported = io.StringIO()
    assert [_bandwidth(moves, here, printed=reported) for _ in range(2)] == [3.0, 3.0]
    assert reported.getvalue() == "measuring the bandwidth of the memory\n"
    assert _bandwidth(moves, here, renew=True) == 4.0
    assert _bandwidth(moves, PLACE, given=7.0) == 7.0
    with pytest.raises(InputError, match="the model is of here with 2 processors"):
        _bandwidth(moves, PLACE)
    with pytest.raises(InputError, match="is for tasks on one machine"):
        _bandwidth(moves, replace(here, transport="links"), given=7.0)


def test_a_bandwidth_of_a_busy_machine_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = LoadSample(Load(seconds=1, others=1.5), ())
    monkeypatch.setattr(memory, "settle", lambda *_: busy)
    monkeypatch.setattr(memory, "measure", lambda _: 3.0)
    here = replace(PLACE, host=platform.node(), processors=len(os.sched_getaffinity(0)))
    assert _bandwidth(work(traffic=GB), here) == 3.0
    assert load_bandwidth(bandwidth_path()) is None


def test_a_job_is_bound_by_memory_in_all_that_is_written(
    model: PipelineModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_models([model], tmp_path / "model.json")
    request = AdviceRequest(
        work=replace(WORK, roofline=Roofline(threads=1, traffic=80.0 * GB)),
        bandwidth=0.5 * GB,
        printing=Printing(as_json=True),
        options=AdviceParameters(source=tmp_path / "model.json", out=tmp_path / "advice"),
    )
    assert give_advice(request) == 0
    reported = json.loads(capsys.readouterr().out)
    assert reported["limits"] == "memory bandwidth"
    assert reported["work"]["roofline"] == {
        "threads": 1, "traffic": 80.0 * GB, "processors": 2, "bandwidth": 0.5 * GB,
    }  # fmt: skip
    assert reported["expected"]["ideal"] == pytest.approx(160.0)
    assert "The bottleneck is memory bandwidth" in (tmp_path / "advice" / "report.html").read_text()


def test_the_record_of_a_bandwidth_names_its_kind() -> None:
    assert Bandwidth(rate=1.0, processors=1, made=0.0).kind == "gridbench memory bandwidth"

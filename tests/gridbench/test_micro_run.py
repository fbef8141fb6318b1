"""`gridbench micro` end to end, with small numbers: real engines, real processes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import psutil
import pytest

from gridbench.bench import session as bench_session
from gridbench.bench.points import DataPoint
from gridbench.bench.session import Item, Limits, RepeatBudget, Runner, Session
from gridbench.engines import registry
from gridbench.errors import InputError
from gridbench.jsonl_store import Header, load_records
from gridbench.machine.load import Load
from gridbench.machine.options import Policy
from gridbench.micro import experiment
from gridbench.micro.experiment import MicroExperiment, choose, run_micro
from gridbench.micro.options import MicroParameters
from gridbench.micro.record import FORM, Results, load_results
from gridbench.micro.sessions import START_SECONDS
from gridbench.micro.workloads import (
    AGAIN,
    EMPTY,
    INHERITED,
    NATIVE,
    ON_SERVERS,
    POOL,
    PYTHON,
    QUICK,
    C,
    Sizes,
    case_of,
)
from gridbench.printing import Printing
from gridbench.process.children import Leftovers, PythonLaunch
from gridbench.shared_options import GridOptions, ResultsOptions
from running import PROGRAM, Run

TINY = Sizes(
    name="tiny",
    rounds=1,
    budget=0.02,
    arrays=(10_000, 1_000_000),
    chunks=(10,),
    order=50,
    longest_grain=0.02,
    clients=2,
    readers=2,
    shared=2_000_000,
    worker_counts=(2, 3),
    short_tasks=(6, 0.02),
    null_tasks=50,
    calls=200,
    calls_seconds=1.0,
    start_limit=30.0,
    item_limit=60.0,
    each=1000.0,
)


ACCEPTED = Policy(accept=True, wait=0)


def run(parameters: MicroParameters, sizes: Sizes = TINY) -> int:
    return run_micro(parameters, sizes, ACCEPTED, Printing())


def into(folder: Path, **more: bool) -> ResultsOptions:
    return ResultsOptions(out=folder, **more)


def points_in(folder: Path) -> list[DataPoint]:
    return load_records(folder / FORM.file, FORM)[1]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Results]:
    folder = tmp_path_factory.mktemp("micro")
    assert run(MicroParameters(engines=(PYTHON, NATIVE, POOL, C), results=into(folder))) == 0
    return folder, load_results(folder)


def test_every_figure_has_every_engine(measured: tuple[Path, Results]) -> None:
    _, results = measured
    figures = {figure.id: figure for figure in results.figures}
    assert {
        "null_call", "null_rate", "map_rate", "null_rate_4_clients", "argument_10KB", "echo_1MB",
        "shared_100MB_first", "shared_100MB_later", "start_2_first", "start_3_all", "memory_3",
        "start_2_all_numpy", "tasks_100_short", "tasks_100_null", "million", "million_peak",
        "metg_50", "metg_90", "metg_50_map", "solve",
    } <= set(figures)  # fmt: skip
    for figure in results.figures:
        engines = {entry.engine for entry in figure.entries}
        # Few calls may end in another order than they began in: tenths then have no times. And only
        # gridrpc tells how many bytes a call has moved.
        reported = {PYTHON} if figure.id.endswith("B_copies") else {PYTHON, POOL}
        assert reported <= engines or figure.id == "million_steady", figure.id
        for entry in figure.entries:
            assert entry.status == "ok"
            assert entry.median is not None
            # Copies are counted from the memory of the machine, which others use and free as well.
            assert entry.median > 0 or (figure.id.endswith("copies") and entry.median == 0), (
                figure.id
            )
            assert entry.runs == 1
        for limit in figure.limits:
            assert limit.median is not None
            assert limit.median > 0
    assert {PYTHON, NATIVE, POOL, C} == {e.engine for e in figures["null_call"].entries}
    assert EMPTY in {entry.engine for entry in figures["echo_10KB"].entries}
    assert INHERITED in {entry.engine for entry in figures["shared_100MB_first"].entries}
    assert figures["null_call"].best_peer == POOL
    (python,) = [entry for entry in figures["null_call"].entries if entry.engine == PYTHON]
    assert python.percentiles is not None
    assert figures["null_call"].limits[0].engine == "ping_pong_memory"
    assert figures["shared_100MB_copies"].ratios[PYTHON].to_peer is not None
    assert results.versions[PYTHON]
    assert results.extent is not None
    assert results.extent.points == results.extent.planned > 50
    assert results.extent.rounds == 1


def test_tasks_took_as_long_as_they_sleep(measured: tuple[Path, Results]) -> None:
    _, results = measured
    figure = next(figure for figure in results.figures if figure.id == "tasks_100_short")
    for entry in figure.entries:
        # Six tasks of 0.02 s on three workers.
        assert entry.median is not None
        assert entry.median >= 0.04


def test_workers_that_were_counted_had_their_own_processes(measured: tuple[Path, Results]) -> None:
    for point in points_in(measured[0]):
        if point.workload == "start":
            workers = point.parameters["workers"]
            # gridrpc has one more, which forks the others.
            assert point.values["processes"] in (workers, workers + 1)
            assert point.values["bytes"] > 100_000
            assert 0 < point.values["first"] <= point.values["all"]


def test_what_was_measured_is_not_measured_again(
    measured: tuple[Path, Results], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, results = measured
    before = (folder / FORM.file).read_bytes()
    assert run(MicroParameters(engines=(PYTHON, NATIVE, POOL, C), results=into(folder))) == 0
    assert (folder / FORM.file).read_bytes() == before
    assert "this takes about" not in capsys.readouterr().err
    again = load_results(folder)
    assert replace(again, ended=results.ended) == results


def test_another_round_adds_to_what_is_there(tmp_path: Path) -> None:
    parameters = MicroParameters(workloads=("null_call",), engines=(POOL,), results=into(tmp_path))
    assert run(parameters) == 0
    assert run(replace(parameters, rounds=2)) == 0
    points = points_in(tmp_path)
    mine = [(point.engine, point.round) for point in points if point.workload == "null_call"]
    assert sorted(set(mine)) == [(POOL, 0), (POOL, 1), (POOL + AGAIN, 0), (POOL + AGAIN, 1)]
    assert run(replace(parameters, results=into(tmp_path, fresh=True))) == 0
    assert {point.round for point in points_in(tmp_path)} == {0}


_GRID = """\
[server.one]
launcher = "local"
hosts = ["node1"]
workers = 1

[server.both]
launcher = "local"
hosts = ["node[2-3]"]
workers = 2
"""


def test_servers_are_measured_beside_the_engines_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(_GRID)
    parameters = MicroParameters(
        workloads=("null_call", "argument", "million", "null_rate_4_clients"),
        engines=(PYTHON, NATIVE, POOL),
        results=into(tmp_path / "out"),
        where=GridOptions(grid=tmp_path / "grid.toml", servers=("both",)),
    )
    assert run(parameters) == 0
    results = load_results(tmp_path / "out")
    figures = {figure.id: figure for figure in results.figures}
    there = {PYTHON + ON_SERVERS, NATIVE + ON_SERVERS}
    for figure in ("null_call", "million"):
        entries = {entry.engine: entry for entry in figures[figure].entries}
        assert set(entries) == {PYTHON, NATIVE, POOL} | there
        assert all(entry.status == "ok" for entry in entries.values())
        # No engine's sentence mentions the time of a network.
        assert figures[figure].best_peer == POOL
        assert not there & set(figures[figure].ratios)
    assert PYTHON + ON_SERVERS in {e.engine for e in figures["argument_1MB"].entries}
    refused = {e.engine: e.why for e in figures["null_rate_4_clients"].entries if e.why}
    assert refused == dict.fromkeys(
        there,
        "it is for one machine: each client would have workers of its own on the servers",
    )
    # Two workers, as on this machine, of the four that there are.
    encrypted = "1 worker; TLS 1.3 over TCP; started by local"
    assert results.options["servers"] == f"node2: {encrypted} / node3: {encrypted}"
    with pytest.raises(InputError, match="servers"):
        run(replace(parameters, where=GridOptions()))


@pytest.mark.parametrize(
    ("engines", "servers", "what"),
    [
        ((POOL,), ("both",), "the engine `process-pool` cannot run its workers on servers"),
        ((C,), ("both",), "`gridrpc-c` is measured on this machine only"),
        ((PYTHON,), ("one",), "the servers have 1 worker, and 2 are measured"),
        ((PYTHON,), ("two",), "two"),
        ((PYTHON,), ("local:?workers=3",), "URLs cannot be lowered to 2"),
    ],
    ids=["engine", "C", "few", "unknown", "URL"],
)
def test_servers_that_do_not_serve_are_reported_before_anything_runs(
    tmp_path: Path, engines: tuple[str, ...], servers: tuple[str, ...], what: str
) -> None:
    (tmp_path / "grid.toml").write_text(_GRID)
    parameters = MicroParameters(
        engines=engines,
        results=into(tmp_path / "out"),
        where=GridOptions(
            grid=None if ":" in servers[0] else tmp_path / "grid.toml", servers=servers
        ),
    )
    with pytest.raises(InputError, match=re.escape(what)):
        run(parameters)
    assert not (tmp_path / "out").exists()


def test_a_missing_engine_has_a_row_that_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRIDBENCH_ENGINES", str(tmp_path / "none"))
    parameters = MicroParameters(
        workloads=("null_call",), engines=(POOL, "ray"), results=into(tmp_path / "out")
    )
    assert run(parameters) == 0
    figure = load_results(tmp_path / "out").figures[0]
    (ray,) = [entry for entry in figure.entries if entry.engine == "ray"]
    assert ray.status == "missing"
    assert "gridbench engines install ray" in ray.why


# ---- Sessions that go wrong, with engines made for it.

_CALLS = "gridbench.micro.measures.calls"
_ENGINES = """
import os, subprocess, time
from gridbench.engines.base import Description
from gridbench.engines.functions import FunctionEngine


class Local(FunctionEngine):
    name = "local"
    def describe(self): return Description(name="local", version="1")
    def start(self, workers): self._workers = workers
    def wait_ready(self): pass
    def call(self, function, /, *args): return function(*args)
    def result(self, future): return future
    def close(self): pass


class Hangs(Local):
    def start(self, workers): time.sleep(1000)


class Breaks(Local):
    def start(self, workers): raise RuntimeError("no such cluster")


class Wrong(Local):
    def call(self, function, /, *args): return 42


class Dies(Local):
    def call(self, function, /, *args): os._exit(3)


class Litters(Local):
    def start(self, workers):
        if os.fork() == 0:
            os.setsid()
            os.closerange(0, 100)
            time.sleep(1000)
            os._exit(0)


class Reads(Local):
    def start(self, workers): self.reader = subprocess.Popen(["cat"], stdout=subprocess.DEVNULL)
    def close(self):
        self.reader.kill()
        self.reader.wait()


class Refuses(Local):
    cannot = {"null_call": "it reports once a second"}
"""


@pytest.fixture
def run_session(tmp_path: Path) -> Callable[[str], list[DataPoint]]:
    (tmp_path / "engines_of_test.py").write_text(_ENGINES)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    launch = PythonLaunch([sys.executable], os.environ | {"PYTHONPATH": path})

    def run(name: str) -> list[DataPoint]:
        items = [
            Item(workload=workload, engine=name, measure=f"{_CALLS}:{workload}", seconds=0.1)
            for workload in ("null_call", "null_rate")
        ]
        session = Session(
            name="calls", engine=name, label=name, place=f"engines_of_test:{name}", workers=1,
            items=tuple(items), start_seconds=0.1,
        )  # fmt: skip
        notes: list[DataPoint] = []
        before = set(psutil.Process().children(recursive=True))
        with Leftovers() as leftovers:
            limits = Limits(start=1.0, item=1.5, budget=TINY.budget)
            runner = Runner(
                limits, leftovers, RepeatBudget(0.0), note=notes.append, check=lambda: None
            )
            with runner:
                points = [runner.measure(session, item, launch, 0) for item in items]
        assert set(psutil.Process().children(recursive=True)) <= before
        return points + notes

    return run


def test_a_session_of_a_plain_engine(run_session: Callable[[str], list[DataPoint]]) -> None:
    call, rate = run_session("Local")
    assert (call.status, rate.status) == ("ok", "ok")
    assert call.version == "1"
    assert call.values["us"] > 0
    assert call.samples["us"]
    assert "others_cpu" in call.load


@pytest.mark.parametrize("repeatable", [True, False])
def test_the_least_disturbed_repetition_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repeatable: bool
) -> None:
    (tmp_path / "engines_of_test.py").write_text(_ENGINES)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    judgements = iter(["disturbed", "disturbed", "undisturbed", "undisturbed"])
    seen: list[float] = []

    def judged(load: Load) -> str:
        seen.append(load.others)
        return next(judgements)

    monkeypatch.setattr(bench_session, "judged", judged)
    item = Item(
        workload="null_call", engine="Local", measure=f"{_CALLS}:null_call", seconds=0.1,
        repeatable=repeatable,
    )  # fmt: skip
    session = Session(
        name="calls", engine="Local", label="Local", place="engines_of_test:Local", workers=1,
        items=(item,), start_seconds=0.1,
    )  # fmt: skip
    limits = Limits(start=30.0, item=60.0, budget=TINY.budget)
    launch = PythonLaunch([sys.executable], os.environ | {"PYTHONPATH": path})
    with (
        Leftovers() as leftovers,
        Runner(limits, leftovers, RepeatBudget(100.0), note=pytest.fail, check=str) as runner,
    ):
        point = runner.measure(session, item, launch, 0)
    assert len(seen) == 3
    assert point.load["others_cpu"] == pytest.approx(min(seen), abs=1e-3)
    assert point.status == "ok"


@pytest.mark.parametrize(
    ("name", "messages"),
    [
        ("Hangs", ["gave no result in 2.5 s"] * 2),
        ("Breaks", ["could not be started: RuntimeError: no such cluster"] * 2),
        ("Wrong", ["WrongResult: a call that does nothing returned something",
                   "WrongResult: 20 of 20 calls gave a wrong result"]),
        ("Dies", ["the client process ended with exit status 3"] * 2),
        ("Lost", ["could not be loaded: AttributeError: module 'engines_of_test' has no attribute"
                  " 'Lost'"] * 2),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_the_points_reason(
    run_session: Callable[[str], list[DataPoint]], name: str, messages: list[str]
) -> None:
    points = run_session(name)
    assert [point.status for point in points] == ["failed"] * 2
    assert [point.why for point in points] == messages


def test_processes_left_behind_are_ended_and_told(
    run_session: Callable[[str], list[DataPoint]],
) -> None:
    *points, leftovers = run_session("Litters")
    assert [point.status for point in points] == ["ok", "ok"]
    assert leftovers.workload == "leftovers"
    assert leftovers.values == {"processes": 1}
    assert leftovers.why.startswith("it left behind 1 process, which was ended: ")


def test_several_clients_of_an_engine_whose_daemon_reads_their_input(tmp_path: Path) -> None:
    (tmp_path / "engines_of_test.py").write_text(_ENGINES)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    item = Item(
        workload="null_rate_4_clients", engine="Reads", arguments={"clients": 2}, seconds=0.1,
        measure="gridbench.micro.measures.calls:rate_of_clients",
    )  # fmt: skip
    session = Session(
        name="clients", engine="Reads", label="Reads", place="engines_of_test:Reads", workers=1,
        items=(item,), start_seconds=0.1,
    )  # fmt: skip
    limits = Limits(start=30.0, item=60.0, budget=TINY.budget)
    launch = PythonLaunch([sys.executable], os.environ | {"PYTHONPATH": path})
    with (
        Leftovers() as leftovers,
        Runner(limits, leftovers, RepeatBudget(0.0), note=pytest.fail, check=str) as runner,
    ):
        point = runner.measure(session, item, launch, 0)
    assert (point.status, point.why) == ("ok", "")
    assert point.values["per_second"] >= 2 * point.values["slowest"] > 0


def test_what_takes_an_engine_too_long_to_start_has_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "engines_of_test.py").write_text(_ENGINES)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.setitem(START_SECONDS, "Local", (3, 17, 55))
    places = {"Local": "engines_of_test:Local"}
    plan = choose(places, ["start", "tasks_100", "null_call"], QUICK)
    measured = {
        case_of(item.workload, item.parameters)
        for session in plan.sessions
        for item in session.items
        if session.engine == "Local"
    }
    assert measured == {"null_call", "start_2"}
    reported = {
        (p.workload, p.parameters.get("workers") or p.parameters["tasks"]): (p.status, p.why)
        for p in plan.refusals
        if p.engine == "Local"
    }
    long = "bringing up {} workers takes it longer than the 16 s that a quick run has for it"
    assert reported == {
        ("start", 16): ("missing", long.format(16)),
        ("start", 100): ("missing", long.format(100)),
        ("tasks_100", "short"): ("missing", long.format(100)),
        ("tasks_100", "null"): ("missing", long.format(100)),
    }


def test_what_an_engine_is_not_made_for_is_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "engines_of_test.py").write_text(_ENGINES)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)
    places = {"Refuses": "engines_of_test:Refuses", "Lost": "engines_of_test:Lost"}
    plan = choose(places, ["null_call", "null_rate"], TINY)
    own = [session for session in plan.sessions if session.engine == "Refuses"]
    assert {item.workload for session in own for item in session.items} == {"null_rate"}
    assert {(p.engine, p.workload, p.status) for p in plan.refusals} == {
        ("Refuses", "null_call", "cannot"),
        ("Lost", "null_call", "failed"),
        ("Lost", "null_rate", "failed"),
    }
    assert "it reports once a second" in {point.why for point in plan.refusals}


def test_what_failed_is_reported_and_tried_again_only_if_that_is_requested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "engines_of_test.py").write_text(_ENGINES)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)
    place = EntryPoint("wrong", "engines_of_test:Wrong", "gridbench.engines")
    for module in (experiment, registry):
        monkeypatch.setattr(module, "installed_engines", lambda: {"wrong": place})
    out = tmp_path / "out"
    parameters = MicroParameters(
        workloads=("null_call", "null_rate"), engines=("wrong",), results=into(out)
    )
    before = 0

    def measured(parameters: MicroParameters) -> tuple[str, set[tuple[str, int]]]:
        """What a call says, and what it has measured of the engine."""
        nonlocal before
        assert run(parameters) == 1
        points = points_in(out)
        new, before = points[before:], len(points)
        return capsys.readouterr().err, {(p.workload, p.round) for p in new if p.engine == "wrong"}

    def as_if(**disturbed: bool) -> None:
        """Tests beside this one disturb it, or not."""
        lines = [json.loads(line) for line in (out / FORM.file).read_text().splitlines()]
        for line in lines:
            if line.get("engine") == "wrong":
                line["disturbed"] = disturbed[line["workload"]]
        (out / FORM.file).write_text("".join(json.dumps(line) + "\n" for line in lines))

    # Further rounds are not worth their time.
    assert measured(parameters)[1] == {("null_call", 0), ("null_rate", 0)}
    page = {e.why for figure in load_results(out).figures for e in figure.entries}
    assert any("a call that does nothing returned something" in why for why in page)

    as_if(null_call=False, null_rate=False)
    said, new = measured(parameters)
    assert (
        "2 points failed before and are not tried again: wrong null_call, round 1; wrong null_rate,"
        " round 1; --retry-failed tries them"
    ) in said
    assert new == set()
    assert {e.why for figure in load_results(out).figures for e in figure.entries} == page

    # Other programs may have been the reason.
    as_if(null_call=False, null_rate=True)
    said, new = measured(parameters)
    assert "1 point failed before and is not tried again: wrong null_call, round 1;" in said
    assert new == {("null_rate", 0)}

    said, new = measured(replace(parameters, results=into(out, retry_failed=True)))
    assert "failed before" not in said
    assert new == {("null_call", 0), ("null_rate", 0)}


@pytest.mark.parametrize("engine", [POOL + AGAIN, POOL])
def test_results_are_those_of_the_points_even_if_these_make_no_figure(
    tmp_path: Path, engine: str
) -> None:
    header = Header(machine={}, versions={}, options={}, started="2031-01-01", seed=1)
    micro = MicroExperiment(MicroParameters(), TINY, {}, [])
    file = FORM.open(tmp_path, header, fresh=True)
    file.add(DataPoint(workload="null_call", engine=engine, round=0, values={"us": 200.0}))
    file.close()
    micro.complete(tmp_path, FORM.read(tmp_path)[1])
    said = " ".join(micro.kind.document([tmp_path]).sentences)
    assert ("Nothing was measured yet" in said) == (engine != POOL)
    found = load_results(tmp_path)
    assert [e.engine for figure in found.figures for e in figure.entries] == (
        [POOL] if engine == POOL else []
    )
    assert bool(found.lead) == (engine == POOL)


# ---- The program.


def test_bad_input_is_reported_before_anything_runs(refused: Run, tmp_path: Path) -> None:
    done = refused("micro", "nul_call")
    assert done.returncode == 2
    assert done.stderr.startswith(
        "gridbench: error: there is no workload `nul_call`\n"
        "hint: did you mean `null_call`? the workloads are null_call, null_rate, "
    )
    done = refused("micro", "--engine", "process-pol")
    assert done.returncode == 2
    assert "hint: did you mean `process-pool`? known engines: " in done.stderr
    (tmp_path / "file").write_text("")
    done = refused("micro", "--out", "file/x")
    assert done.returncode == 2
    assert "cannot use the output folder" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_list_of_workloads_and_engines(gridbench: Run) -> None:
    done = gridbench("micro", "--list")
    assert done.returncode == 0
    for name in ("null_call", "metg", PYTHON, "ray"):
        assert f"\n  {name} " in done.stdout


def test_ctrl_c_keeps_what_was_measured_and_leaves_nothing(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    arguments = ["micro", "null_call", "start", "--quick", "--engine", POOL, "--out", "out"]
    process = subprocess.Popen(
        [*PROGRAM, *arguments], cwd=tmp_path, env=environment, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        points = tmp_path / "out" / FORM.file
        until = time.monotonic() + 100
        # Not of its twin, which alone makes no figure.
        while not points.exists() or b'"engine": "process-pool"' not in points.read_bytes():
            assert time.monotonic() < until
            assert process.poll() is None
            time.sleep(0.05)
        family = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 130
    assert "stopped: results are saved" in errors
    assert "Traceback" not in errors
    assert "--out out" in errors
    assert not psutil.wait_procs(family, timeout=20)[1]
    results = load_results(tmp_path / "out")
    assert results.figures
    assert results.extent is not None
    assert 0 < results.extent.points < results.extent.planned
    assert (results.extent.round, results.extent.rounds) == (1, 2)
    assert "This run was ended early, in round 1 of 2: " in output
    assert POOL in {point.engine.removesuffix(AGAIN) for point in points_in(tmp_path / "out")}

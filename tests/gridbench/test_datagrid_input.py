"""What users ask of the data-grid benchmark: its parameters, and all options."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridbench.cli import cli
from gridbench.datagrid import options
from gridbench.datagrid.experiment import DataGridExperiment
from gridbench.datagrid.options import DataGridParameters, Offered, OpenRates
from gridbench.datagrid.plan import DataGridWork, WarmUpLimits, plan_of
from gridbench.datagrid.presets import FIRST_LOOK, MIXES
from gridbench.datagrid.workload import (
    EXAMPLE,
    LIMITS,
    NAMES,
    NEEDED,
    REALS,
    DataGridWorkload,
    TaskParameters,
    read_setup,
)
from gridbench.errors import InputError
from gridbench.shared_options import ResultsOptions
from running import REPOSITORY, Run

PLAIN = TaskParameters(
    nnodes=2, mnodes=3, ntasks=6, nrepeats=10, read_data_size=3, update_data_size=2,
    write_data_size=1, nobjects=1000, object_size=1.5, shared_data_size=4, process_time=5,
    sleep_time=0.25,
)  # fmt: skip


# ---- The parameters


def test_parameters_have_the_names_of_the_sources() -> None:
    reported = PLAIN.to_dict()
    assert reported == {
        "NNodes": 2, "MNodes": 3, "NTasks": 6, "NRepeats": 10, "ReadDataSize": 3,
        "UpdateDataSize": 2, "WriteDataSize": 1, "NObjects": 1000, "ObjectSize": 1.5,
        "SharedDataSize": 4, "ProcessTime": 5, "SleepTime": 0.25,
    }  # fmt: skip
    assert list(reported) == list(NAMES) == list(LIMITS)
    assert TaskParameters.from_dict(json.loads(json.dumps(reported))) == PLAIN
    again = TaskParameters.from_dict({name: float(value) for name, value in reported.items()})
    assert again == PLAIN
    assert {type(again.to_dict()[name]) for name in NAMES} == {int, float}
    assert [name for name in NAMES if isinstance(again.to_dict()[name], float)] == list(REALS)


def test_what_tasks_do_is_counted() -> None:
    assert PLAIN.object_bytes == 1536
    assert PLAIN.operations_of_task == 4 + 10 * 6
    assert PLAIN.operations == 6 * 64
    assert (PLAIN.stored, PLAIN.inserted, PLAIN.at_end) == (1004, 60, 1064)


def test_only_some_parameters_may_be_left_out() -> None:
    reported = {
        "NNodes": 1,
        "MNodes": 1,
        "NTasks": 1,
        "NRepeats": 1,
        "NObjects": 1,
        "ObjectSize": 1,
    }
    assert set(reported) == set(NEEDED)
    found = TaskParameters.from_dict(reported | {"ReadDataSize": 1})
    assert (found.update_data_size, found.process_time, found.sleep_time) == (0, 0, 0.0)
    for name in reported:
        with pytest.raises(InputError, match=f"{name} is missing"):
            TaskParameters.from_dict({key: reported[key] for key in reported if key != name})
    with pytest.raises(InputError, match="MNode is no parameter"):
        TaskParameters.from_dict(reported | {"MNode": 1})


@pytest.mark.parametrize("name", NAMES)
def test_every_limit_holds_and_is_reported(name: str) -> None:
    low, high = LIMITS[name]
    whole = name not in REALS
    for value in (low - 1, high + 1, -(10**300), 1e300):
        with pytest.raises(InputError, match=f"{name} must be from") as caught:
            replace(PLAIN, **{NAMES[name]: value})
        assert caught.value.remedy
        assert len(str(caught.value)) < 600
    for wrong in (float("nan"), float("inf"), "3", True, None, *([2.5] if whole else [])):
        with pytest.raises(InputError, match=f"{name} must be a"):
            replace(PLAIN, **{NAMES[name]: wrong})


def test_a_data_grid_without_members_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        replace(PLAIN, mnodes=0)
    assert "MNodes must be from 1 to 1,000, not 0" in caught.value.what
    assert "at least one member" in caught.value.remedy


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        (
            {
                "read_data_size": 0,
                "update_data_size": 0,
                "write_data_size": 0,
                "shared_data_size": 0,
            },
            "no task reads, updates or inserts anything",
        ),
        ({"nobjects": 0}, "NObjects is 0, and tasks are to read or update objects"),
        ({"nrepeats": 10**9, "ntasks": 10**6}, "operations, and 1,000,000,000,000 are the most"),
    ],
)
def test_what_cannot_be_meant_is_refused(change: dict[str, Any], reported: str) -> None:
    with pytest.raises(InputError) as caught:
        replace(PLAIN, **change)
    assert reported in caught.value.what
    assert caught.value.remedy


def test_tasks_that_only_insert_need_no_objects() -> None:
    found = replace(PLAIN, read_data_size=0, update_data_size=0, nobjects=0)
    assert found.at_end == 4 + 60
    assert not found.may_collide


# ---- Whether updates may collide

#: What decides about keys.
SIZES = st.builds(
    dict,
    nnodes=st.integers(1, 4),
    ntasks=st.integers(1, 12),
    nrepeats=st.integers(1, 4),
    read_data_size=st.integers(0, 3),
    update_data_size=st.integers(0, 3),
    nobjects=st.integers(1, 60),
)


def keys_of(own: TaskParameters, task: int, *, reads: bool) -> set[int]:
    """As the specification has it."""
    keys = set()
    each = own.read_data_size + own.update_data_size
    for ip in range(own.nrepeats):
        for at in range(0 if reads else own.read_data_size, each):
            keys.add(((task * own.nrepeats + ip) * each + at) % own.nobjects)
    return keys


def common(own: TaskParameters, *, reads: bool) -> bool:
    """Whether tasks of different clients have common keys."""
    all_keys = [keys_of(own, task, reads=reads) for task in range(own.ntasks)]
    return any(
        one % own.nnodes != other % own.nnodes and all_keys[one] & all_keys[other]
        for one, other in product(range(own.ntasks), repeat=2)
    )


@given(SIZES)
def test_no_collision_is_overlooked(sizes: dict[str, int]) -> None:
    own = replace(PLAIN, **sizes)
    if own.apart:
        assert not common(own, reads=True)
    if common(own, reads=False):
        assert own.may_collide


@pytest.mark.parametrize(
    ("change", "collide"),
    [
        ({"nobjects": 6 * 50}, False),  # each task has objects of its own
        ({"nobjects": 6 * 50 - 5}, True),  # the last one meets the first
        ({"nobjects": 2 * 50}, False),  # each client has objects of its own
        ({"nobjects": 4 * 50}, False),
        ({"nobjects": 3 * 50}, True),
        ({"nobjects": 50}, True),
        ({"nobjects": 1}, True),
        ({"nobjects": 1, "nnodes": 1}, False),  # one task at a time
        ({"nobjects": 1, "ntasks": 1}, False),
        ({"nobjects": 1, "update_data_size": 0}, False),
    ],
)
def test_updates_may_collide(change: dict[str, int], collide: bool) -> None:
    own = replace(PLAIN, **change)
    assert own.may_collide == collide
    assert common(own, reads=False) == collide
    assert DataGridWorkload(parameters=own).may_collide == collide


MIX = {
    "read": 0.5, "overwrite": 0.0, "update": 0.5, "insert": 0.0, "scan": 0.0, "keys": "zipfian",
    "scan_length": 100, "seed": 1,
}  # fmt: skip


def test_drawn_keys_may_be_the_same() -> None:
    assert DataGridWorkload(parameters=PLAIN, mix=MIX).may_collide
    assert DataGridWorkload(
        parameters=PLAIN, mix=MIX | {"update": 0.0, "overwrite": 0.5}
    ).may_collide
    assert not DataGridWorkload(
        parameters=PLAIN, mix=MIX | {"read": 1.0, "update": 0.0}
    ).may_collide
    assert not DataGridWorkload(parameters=replace(PLAIN, nnodes=1), mix=MIX).may_collide


def test_a_mix_inserts_no_more_than_is_reckoned_with() -> None:
    own = replace(PLAIN, shared_data_size=0, write_data_size=0, nrepeats=1000)
    mixed = DataGridWorkload(parameters=own, mix=MIX | {"insert": 0.05})
    assert own.operations == 30_000
    assert 1500 < mixed.inserted_at_most < 1800
    assert mixed.at_most == 1000 + mixed.inserted_at_most
    all_of_them = DataGridWorkload(parameters=own, mix=MIX | {"insert": 1.0})
    assert all_of_them.inserted_at_most == own.operations
    assert DataGridWorkload(parameters=own, mix=MIX).inserted_at_most == 0


def test_what_may_not_be_meant_is_said() -> None:
    assert DataGridWorkload(parameters=PLAIN).cautions() == []
    (few,) = DataGridWorkload(parameters=replace(PLAIN, nnodes=10)).cautions()
    assert few == "NTasks is 6 and NNodes 10: only 6 clients will have a task."
    (same,) = DataGridWorkload(parameters=replace(PLAIN, nobjects=4)).cautions()
    assert "touches some of them more than once" in same


# ---- The options

SETUP = str(REPOSITORY / EXAMPLE)
Ask = Callable[..., DataGridWork]


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Ask:
    """What is requested by words behind `gridbench data`; none of it is run."""
    found: list[DataGridWork] = []

    def instead(one: DataGridExperiment, *_: object, dry_run: bool) -> None:
        assert not dry_run
        found.append(one.work)

    monkeypatch.setattr(options, "_run_or_list", instead)
    # However much memory the machine has that the tests run on.
    monkeypatch.setattr("gridbench.datagrid.experiment.available_memory", lambda: 16 << 30)

    def requested(*words: str) -> DataGridWork:
        cli.main(["data", *words], standalone_mode=False)
        return found.pop()

    return requested


def test_the_first_look_needs_no_words(ask: Ask) -> None:
    found = ask()
    assert found.workloads == (FIRST_LOOK,)
    assert [one.name for one in found.engines] == ["embedded"]
    assert found.name == "data"
    assert found.parameters == DataGridParameters()
    assert found.warm_up == WarmUpLimits()
    assert ask("--rounds", "2") == replace(found, parameters=DataGridParameters(rounds=2))
    assert ask("run") == found


def test_a_setup_file_needs_no_command(ask: Ask) -> None:
    found = ask(SETUP)
    assert found.workloads == (DataGridWorkload(parameters=read_setup(REPOSITORY / EXAMPLE)),)
    assert found.name == "data-setup"
    assert ask("run", SETUP) == found
    named = replace(found, parameters=DataGridParameters(engines=found.engines))
    assert ask("--engine", "embedded", SETUP) == named
    assert ask(SETUP, "--engine", "embedded") == named


def test_every_option_is_requested(ask: Ask, tmp_path: Path) -> None:
    found = ask(
        SETUP, "--engine", "null", "--engine", "embedded", "--open", "1000,2e3", "--open", "50%",
        "--updates", "atomic", "--warm", "1", "--processes", "2", "--member-memory", "300MB",
        "--backups", "2", "--rounds", "4", "--out", str(tmp_path), "--fresh", "--accept-load",
        "--json", "--quiet", "--start-timeout", "7", "--emulate", "ssh", "--nodes", "3",
        "--retry-failed",
    )  # fmt: skip
    assert [one.name for one in found.engines] == ["null", "embedded"]
    own = found.parameters
    assert own.offered == (Offered(rate=1000.0), Offered(rate=2000.0), Offered(share=0.5))
    assert (own.updates, own.backups, own.rounds) == ("atomic", 2, 4)
    assert found.warm_up == WarmUpLimits(least=1.0, most=1.0, window=0.2)
    assert (own.processes, own.member_memory) == (2, 300 << 20)
    assert own.results == ResultsOptions(out=tmp_path, fresh=True, retry_failed=True)
    where = found.where
    assert (where.emulated, where.nodes, where.patience) == ("ssh", 3, 7.0)
    assert ask(SETUP, "--no-warm").warm_up is None
    assert ask(SETUP, "--server", "ssh://a,ssh://b").where.names == ("ssh://a,ssh://b",)
    # What is in the header of results is JSON.
    assert json.loads(json.dumps(found.record()))["warm_up"] == asdict(found.warm_up)


def test_what_may_not_be_meant_is_said_once(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "mine" / "classes").mkdir(parents=True)
    engine = tmp_path / "mine" / "engine.toml"
    engine.write_text('title = "Mine"\nclass = "a.Mine"\nclasspath = ["classes"]\n')
    words = ("scenario", "2", "--members", "1,2,3", "--clients", "3", "--engine", str(engine))
    assert ask(*words, "--backups", "2").cautions() == [
        "On 1 member there is 1 copy of each object in all.",
        "On 2 members there are 2 copies of each object in all.",
    ]
    assert ask(*words, "--backups", "0").cautions() == []
    assert ask(*words[:-2], "--backups", "2").cautions() == []  # there are no members


def test_members_to_kill_are_in_order(ask: Ask, tmp_path: Path) -> None:
    engine = tmp_path / "mine" / "engine.toml"
    (tmp_path / "mine" / "classes").mkdir(parents=True)
    engine.write_text('title = "Mine"\nclass = "a.Mine"\nclasspath = ["classes"]\n')
    found = ask(SETUP, "--engine", str(engine), "--kill-node", "2,0")
    assert [one.name for one in found.engines] == ["mine"]
    assert found.parameters.kill == (0, 2)
    (one,) = plan_of(found).wanted
    assert (one.engine, one.members, one.kill) == ("mine", 3, (0, 2))
    with pytest.raises(InputError, match="there is no member 3 to kill"):
        ask(SETUP, "--engine", str(engine), "--kill-node", "3")
    with pytest.raises(InputError, match="Embedded map has no members that could be killed"):
        ask(SETUP, "--kill-node", "0")
    # Another one of the same name could not be told apart.
    (tmp_path / "other" / "mine").mkdir(parents=True)
    other = tmp_path / "other" / "mine" / "engine.toml"
    other.write_text(f'title = "Other"\nclass = "a.B"\nclasspath = ["{tmp_path}/mine/classes"]\n')
    with pytest.raises(InputError, match="two data grids are called `mine`"):
        ask(SETUP, "--engine", str(engine), "--engine", str(other))
    assert len(ask(SETUP, "--engine", str(engine), "--engine", str(engine.parent)).engines) == 1


def test_scenarios_are_requested(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gridbench.datagrid.experiment.available_memory", lambda: 1 << 40)
    found = ask("scenario", "3", "1", "--full")
    assert found.name == "data-scenario-3-1"
    assert [one.scenario for one in found.workloads] == [3] * 9 + [1] * 12
    assert [one.scaled for one in found.workloads] == [{}] * 21
    found = ask(
        "scenario", "2", "--members", "1,2", "--clients", "3", "--object-sizes", "512B, 2KB",
        "--operations", "10", "--tasks-per-client", "2",
    )  # fmt: skip
    own = [one.parameters for one in found.workloads[::3]]
    assert [(one.mnodes, one.nnodes, one.object_size) for one in own] == [
        (1, 3, 0.5), (1, 3, 2.0), (2, 3, 0.5), (2, 3, 2.0),
    ]  # fmt: skip
    assert {(one.nrepeats, one.ntasks) for one in own} == {(10, 6)}
    assert all("MNodes" in one.scaled for one in found.workloads)


def test_scenarios_fit_into_what_memory_there_is(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "mine" / "classes").mkdir(parents=True)
    engine = tmp_path / "mine" / "engine.toml"
    engine.write_text('title = "Mine"\nclass = "a.Mine"\nclasspath = ["classes"]\n')
    words = ("scenario", "1", "--engine", str(engine))
    smaller = [one for one in ask(*words).workloads if one.scaled]
    assert {one.parameters.object_size for one in smaller} == {1024.0, 10_240.0}
    assert all(one.parameters.apart for one in smaller)
    with pytest.raises(InputError, match="1,000 objects of 1 MB do not fit into 8 members of Mine"):
        ask(*words, "--full")
    monkeypatch.setattr("gridbench.datagrid.experiment.available_memory", lambda: 1 << 40)
    full = ask(*words, "--full", "--member-memory", "12GB")
    assert all(not one.scaled for one in full.workloads)


def test_workloads_of_ycsb_are_requested(ask: Ask) -> None:
    found = ask("ycsb", "A", "f", "--records", "500", "--clients", "1,2")
    assert found.name == "data-ycsb-af"
    assert [(one.label, one.parameters.nnodes) for one in found.workloads] == [
        ("ycsb-a", 1), ("ycsb-a", 2), ("ycsb-f", 1), ("ycsb-f", 2),
    ]  # fmt: skip
    assert {one.parameters.nobjects for one in found.workloads} == {500}
    assert len(ask("ycsb", "all").workloads) == len(MIXES)


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (("scenaro", "1"), "`scenaro` is neither a file nor a command"),
        (("nothing.xml",), "cannot read the set-up file"),
        ((SETUP, "--engine", "embeded"), "unknown data grid `embeded`"),
        ((SETUP, "--engine", "./none.toml"), "none.toml"),
        ((SETUP, "--open", "fast"), "--open: `fast` is no rate"),
        ((SETUP, "--open", "0"), "--open: `0` is no rate"),
        ((SETUP, "--open", "-5"), "--open: `-5` is no rate"),
        ((SETUP, "--open", "nan%"), "--open: `nan%` is no rate"),
        ((SETUP, "--open", "1,,2"), "--open: `` is no rate"),
        ((SETUP, "--kill-node", "one"), "--kill-node: `one` is not a whole number from 0 to 999"),
        ((SETUP, "--kill-node", "-1"), "--kill-node: `-1` is not a whole number from 0 to 999"),
        ((SETUP, "--warm", "0"), "--warm: must be from"),
        ((SETUP, "--warm", "nan"), "--warm: `nan` is not a time"),
        ((SETUP, "--warm", "3", "--no-warm"), "--warm and --no-warm contradict each other"),
        ((SETUP, "--member-memory", "lots"), "--member-memory: `lots` is not a size"),
        ((SETUP, "--member-memory", "1MB"), "--member-memory: must be from 64 MB to"),
        ((SETUP, "--nodes", "2"), "--nodes is of the cluster that --emulate starts"),
        ((SETUP, "--emulate", "ssh", "--grid", "a.toml"), "both say which hosts are used"),
        ((SETUP, "--hosts", "nothing.txt"), "nothing.txt"),
        (("scenario", "4"), "unknown scenario `4`"),
        (
            ("scenario", "1", "--members", "0"),
            "--members: `0` is not a whole number from 1 to 1,000",
        ),
        (("scenario", "1", "--clients", "many"), "--clients: `many` is not a whole number"),
        (("scenario", "1", "--object-sizes", "1"), "--object-sizes: must be from 32 B to"),
        (("scenario", "1", "--object-sizes", "1GB"), "--object-sizes: must be from 32 B"),
        (("ycsb", "g"), "unknown workload of YCSB `g`"),
    ],
)
def test_what_cannot_be_meant_is_reported(ask: Ask, words: tuple[str, ...], reported: str) -> None:
    with pytest.raises(InputError) as caught:
        ask(*words)
    assert reported in str(caught.value)
    assert caught.value.remedy
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    "words",
    [
        ("--backups", "-1"), ("--rounds", "0"), ("--processes", "0"), ("--updates", "none"),
        ("--emulate", "cloud"), ("--frsh",), ("one.xml", "two.xml"), ("scenario",), ("ycsb",),
        ("scenario", "1", "--operations", "0"), ("ycsb", "a", "--records", "0"),
        ("scenario", "1", "--tasks-per-client", "0"), ("run", "--members", "3"),
    ],
)  # fmt: skip
def test_words_that_are_no_options_are_reported(ask: Ask, words: tuple[str, ...]) -> None:
    with pytest.raises((click.UsageError, InputError)):
        ask(*words)


def test_a_file_may_be_called_almost_like_a_command(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("scenari").write_text((REPOSITORY / EXAMPLE).read_text())
    assert ask("scenari").name == "data-scenari"


@given(st.text(max_size=12))
def test_no_rate_ends_in_anything_but_a_message(text: str) -> None:
    try:
        found = OpenRates().read([text])
    except InputError as error:
        assert error.remedy  # noqa: PT017
    else:
        for one in found:
            assert ((one.rate or 0) > 0) != ((one.share or 0) > 0)


# ---- The listing


def test_a_dry_run_lists_cases_and_starts_nothing(gridbench: Run) -> None:
    words = ("data", SETUP, "--open", "50%", "--rounds", "2", "--dry-run")
    done = gridbench(*words, "--json")
    assert done.returncode == 0, done.stderr
    reported = json.loads(done.stdout)
    assert [(one["loop"], one["share"], one["repeat"]) for one in reported["cases"]] == [
        ("closed", None, 0), ("open", 0.5, 0), ("closed", None, 1), ("open", 0.5, 1),
    ]  # fmt: skip
    own = read_setup(REPOSITORY / EXAMPLE)
    first = reported["cases"][0]
    assert first["parameters"] == own.to_dict()
    assert (first["objects"], first["bytes"]) == (own.at_end, own.at_end * own.object_bytes)
    assert first["member_memory"] == 0
    assert reported["skipped"] == []
    shown = gridbench(*words, env={"COLUMNS": "80"})
    assert "open loop, 0.5 of the closed" in " ".join(shown.stdout.split())
    assert "4 cases, 0 starts of a cluster" in shown.stdout
    assert [line for line in shown.stdout.splitlines() if len(line) > 80] == []


def test_a_dry_run_says_what_is_smaller_and_what_may_not_be_meant(
    gridbench: Run, tmp_path: Path
) -> None:
    (tmp_path / "mine" / "classes").mkdir(parents=True)
    (tmp_path / "mine" / "engine.toml").write_text(
        'title = "Mine"\nclass = "a.Mine"\nclasspath = ["classes"]\nleast_members = 3\n'
    )
    words = ("--engine", "mine/", "--member-memory", "256MB", "--dry-run")
    grid = ("--object-sizes", "10MB", "--members", "2,3", "--clients", "2")
    done = gridbench("data", "scenario", "1", *grid, *words, "--backups", "0", "--json")
    assert done.returncode == 0, done.stderr
    reported = json.loads(done.stdout)
    assert len(reported["cases"]) == 3
    for one in reported["cases"]:
        assert "MNodes is 3 in place of 8" in one["notes"]
        assert any(note.startswith("NRepeats is ") for note in one["notes"])
        assert one["member_needs"] <= one["member_memory"] == 256 << 20
    assert [one["why"] for one in reported["skipped"]] == ["Mine needs 3 members at least"] * 3
    assert reported["cautions"] == []
    setup = (REPOSITORY / EXAMPLE).read_text().replace("40 ", "2 ")
    (tmp_path / "few.xml").write_text(setup)
    done = gridbench("data", "few.xml", "--dry-run", env={"COLUMNS": "80"})
    assert "only 2 clients will have a task." in " ".join(done.stdout.split())

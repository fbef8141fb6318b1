"""Adding to a folder of cases of data grids: what may be in it, and the error if not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from datagrid_cases import four, header_of
from gridbench.datagrid.engine import DataGridEngine, DataGridManifest
from gridbench.datagrid.experiment import open_folder
from gridbench.datagrid.record import FILE, FORM, DataGridCase
from gridbench.errors import InputError
from gridbench.jsonl_store import Header
from running import Run

OPTIONS: dict[str, object] = {
    "warm_up": {"least": 2.5, "most": 20.0, "window": 0.5, "within": 0.1},
    "processes": None,
    "member_memory": 1 << 30,
    "backups": 1,
    "where": {"hosts": {}, "grid": None, "servers": [], "emulated": None, "nodes": None},
}


def engine(name: str, version: str = "1.2", settings: str = "as it comes") -> DataGridEngine:
    manifest = DataGridManifest(name.title(), "a.Grid", version=version, settings=settings)
    return DataGridEngine(name, Path("engine.toml"), manifest, own=True)


def header(**changed: object) -> Header:
    return replace(header_of(), options=OPTIONS | changed)


def case(name: str) -> DataGridCase:
    return replace(four(), engine=name, title=name.title(), stated=engine(name).manifest.stated)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    file = open_folder(tmp_path, header(), [engine("hazelcast")], fresh=False)
    file.add(case("hazelcast"))
    file.close()
    return tmp_path


def test_another_data_grid_can_be_added(folder: Path) -> None:
    file = open_folder(folder, header(), [engine("redis")], fresh=False)
    assert [one.engine for one in file.records] == ["hazelcast"]
    file.add(case("redis"))
    file.close()
    found, cases = FORM.read(folder)
    assert [one.engine for one in cases] == ["hazelcast", "redis"]
    assert cases[1].stated == {"version": "1.2", "settings": "as it comes"}
    assert found.options == OPTIONS
    # And so it continues with both.
    both = [engine("redis"), engine("hazelcast")]
    file = open_folder(folder, header(), both, fresh=False)
    assert len(file.records) == 2
    file.close()


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"backups": 2}, "--backups: it was 1, and now is 2"),
        ({"member_memory": None}, "--member-memory: it was 1 GB, and now is not given"),
        ({"processes": 3}, "--processes: it was not given, and now is 3"),
        ({"warm_up": None}, "--warm: it was 20 s, and now is none"),
        (
            {"where": {"hosts": {"a": 1, "b": 1}}},
            "the hosts: it was this machine, and now is a, b",
        ),
        (
            {"where": {"emulated": "ssh", "nodes": 4}, "backups": 0},
            "--backups: it was 1, and now is 0; the hosts: it was this machine, and now is ssh,"
            " emulated on 4 nodes",
        ),
    ],
)
def test_all_options_that_differ_are_named(
    folder: Path, changed: dict[str, object], text: str
) -> None:
    before = (folder / FILE).read_bytes()
    with pytest.raises(InputError) as caught:
        open_folder(folder, header(**changed), [engine("redis")], fresh=False)
    assert caught.value.what == f"holds cases with other options: {text}"
    assert "--fresh" in caught.value.remedy
    assert (folder / FILE).read_bytes() == before
    file = open_folder(folder, header(**changed), [engine("redis")], fresh=True)
    assert file.records == []
    file.close()


@pytest.mark.parametrize(
    ("other", "text"),
    [
        (engine("hazelcast", version="1.3"), "version 1.2 of Hazelcast, and now it is 1.3"),
        (engine("hazelcast", settings="other"), "Hazelcast that was configured otherwise"),
    ],
)
def test_a_data_grid_that_has_changed_is_not_mixed(
    folder: Path, other: DataGridEngine, text: str
) -> None:
    with pytest.raises(InputError, match=text):
        open_folder(folder, header(), [engine("redis"), other], fresh=False)


def test_cases_of_two_data_grids_come_into_one_folder(gridbench: Run, tmp_path: Path) -> None:
    options = ("--warm", "0.2", "--out", "out", "--accept-load", "--clients", "2")
    for name in ("embedded", "null"):
        done = gridbench("data", "ycsb", "c", "--engine", name, *options)
        assert done.returncode == 0, done.stdout + done.stderr
    assert [one.engine for one in FORM.read(tmp_path / "out")[1]] == ["embedded", "null"]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "A concurrent hash map in the client" in page
    assert "Answers at once with values made for the keys" in page
    done = gridbench("data", "ycsb", "c", "--engine", "null", *options, "--backups", "2")
    assert done.returncode == 2
    assert "--backups: it was 1, and now is 2" in " ".join(done.stderr.split())

"""results.json: what is written is read back, and errors name their place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import micro_results
from gridbench.errors import InputError
from gridbench.micro.record import RESULTS, holds_results, load_results

Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def record() -> dict[str, Any]:
    text = json.dumps(micro_results.made().to_record())
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def test_what_is_written_is_read_back(tmp_path: Path, record: dict[str, Any]) -> None:
    file = tmp_path / RESULTS
    file.write_text(json.dumps(record), encoding="utf-8")
    assert load_results(file) == micro_results.made()
    assert load_results(tmp_path) == micro_results.made()
    assert holds_results(tmp_path)
    assert holds_results(file)


def test_former_names_of_engines_are_read_as_the_present_ones(
    tmp_path: Path, record: dict[str, Any]
) -> None:
    text = json.dumps(record).replace('"ray"', '"gridrpc-slurm"').replace("ray,", "slurm-jobs,")
    (tmp_path / "results.json").write_text(text, encoding="utf-8")
    results = load_results(tmp_path)
    names = {entry.engine for figure in results.figures for entry in figure.entries}
    assert "emulated-slurm" in names
    assert "gridrpc-slurm" not in json.dumps(results.to_record())


def test_what_later_versions_add_is_left_out(tmp_path: Path, record: dict[str, Any]) -> None:
    record["weather"] = "fine"
    record["figures"][0]["entries"][0]["colour"] = [1, 2]
    del record["figures"][0]["entries"][0]["note"]  # has a default
    file = tmp_path / RESULTS
    file.write_text(json.dumps(record), encoding="utf-8")
    assert load_results(file) == micro_results.made()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is cut off"),
        (b'{"format": 1, "kind": "gridbench mic', "is cut off"),
        (b'{"format": 1, "kind": "gridbench micro results", "figures": [{', "is cut off"),
        (b"format = 1\n", "is not JSON"),
        (b"\x80\x81\x82", "is not JSON"),
        (b"[" * 100_000, "is not JSON text"),
        (b"[1, 2]", "is not the results of micro benchmarks"),
        (b'{"setup": {}}', "is not the results of micro benchmarks"),
        (b'{"kind": "gridbench micro", "format": 1}', "is not the results of micro benchmarks"),
        (b'{"kind": "gridbench micro results", "format": 2}', "in format 2, and this gridbench"),
        (b'{"kind": "gridbench micro results"}', "in format None"),
        (b'{"kind": "gridbench micro results", "format": 1}', "is damaged: machine is missing"),
    ],
)
def test_a_file_that_is_no_results(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / RESULTS
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_results(file)
    assert message in caught.value.what
    assert caught.value.file == file
    assert caught.value.remedy


def test_no_file_at_all(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there are no results here"):
        load_results(tmp_path / "none.json")
    with pytest.raises(InputError, match="there are no results here"):
        load_results(tmp_path)
    assert not holds_results(tmp_path)
    assert not holds_results(tmp_path / "tasks.log")


def entry_of(record: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = record["figures"][0]["entries"][2]
    return found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r.update(figures={}), "figures is an object, not a list"),
        (lambda r: r.update(started=5), "started is `5`, not a text"),
        (lambda r: r["figures"].append(3), "figures[4] is `3`, not an object"),
        (
            lambda r: entry_of(r).update(median="fast"),
            "figures[0].entries[2].median is `'fast'`, not a number",
        ),
        (
            lambda r: entry_of(r).update(median=None),
            "gridrpc-python in figure null_call is ok without a median",
        ),
        (
            lambda r: entry_of(r).update(median=float("nan")),
            "figures[0].entries[2].median is not a finite number",
        ),
        (
            lambda r: entry_of(r).update(high=10**400),
            "figures[0].entries[2].high is not a finite number",
        ),
        (
            lambda r: entry_of(r).update(runs=True),
            "figures[0].entries[2].runs is `True`, not a whole number",
        ),
        (
            lambda r: entry_of(r).update(status="fine"),
            "figures[0].entries[2].status is `'fine'`, not one of ok, failed, cannot, missing",
        ),
        (
            lambda r: entry_of(r).update(values=[1, None]),
            "figures[0].entries[2].values[1] is null, not a number",
        ),
        (
            lambda r: entry_of(r).update(percentiles=[1]),
            "figures[0].entries[2].percentiles is a list, not an object",
        ),
        (lambda r: entry_of(r).pop("engine"), "figures[0].entries[2].engine is missing"),
        (
            lambda r: r["figures"][0]["ratios"]["ray"].update(claim="better"),
            "figures[0].ratios.ray.claim is `'better'`, not one of faster, slower, no difference",
        ),
        (lambda r: r["figures"].append(r["figures"][0]), "figure null_call is there twice"),
        (
            lambda r: r["curves"][0]["lines"][1]["y"].pop(),
            "the lists of ray in curve argument differ in length",
        ),
        (
            lambda r: r["curves"][0]["lines"][0]["low"].pop(),
            "the lists of gridrpc-python in curve argument differ in length",
        ),
    ],
)
def test_damage_is_reported_with_its_place(
    tmp_path: Path, record: dict[str, Any], change: Change, message: str
) -> None:
    change(record)
    file = tmp_path / RESULTS
    file.write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_results(file)
    assert caught.value.what == f"is damaged: {message}"


def test_every_prefix_of_a_file_is_refused(tmp_path: Path, record: dict[str, Any]) -> None:
    text = json.dumps(record)
    file = tmp_path / RESULTS
    for length in range(0, len(text), 97):
        file.write_text(text[:length], encoding="utf-8")
        with pytest.raises(InputError, match=r"is cut off|is not JSON"):
            load_results(file)

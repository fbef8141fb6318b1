"""The file of points: going on, and what is refused."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gridbench.bench.points import DataPoint, stands
from gridbench.errors import InputError
from gridbench.jsonl_store import Header, load_records
from gridbench.micro.record import FORM

HEADER = Header(
    machine={"host": "here", "cores": 2},
    versions={"python": "3.11"},
    options={"sizes": "full"},
    started="2031-01-01T00:00:00+0000",
    seed=7,
)
POINT = DataPoint(
    workload="argument",
    engine="process-pool",
    parameters={"bytes": 1000},
    round=0,
    values={"ms": 1.5},
    samples={"ms": {"3": 4}},
    disturbed=True,
    load={"others_cpu": 0.5},
)


def _filled(folder: Path, count: int = 3) -> Path:
    points = FORM.open(folder, HEADER, fresh=False)
    for number in range(count):
        points.add(replace(POINT, round=number))
    points.close()
    return folder / FORM.file


def test_points_are_there_again(tmp_path: Path) -> None:
    _filled(tmp_path)
    points = FORM.open(tmp_path, replace(HEADER, seed=8, started="later"), fresh=False)
    assert points.records == [replace(POINT, round=number) for number in range(3)]
    assert points.header == HEADER  # the order of a run is that of its beginning
    points.close()


def test_what_failed_stands_if_it_is_not_to_be_tried_again() -> None:
    good = replace(POINT, round=0)
    failed = DataPoint(
        workload="start", engine="dask", round=0, status="failed", why="x", at="then"
    )
    cannot = replace(failed, workload="echo", status="cannot")
    busy = replace(failed, workload="argument", disturbed=True)
    not_begun = replace(failed, workload="million", at="")
    # What has a value after all has not failed.
    first = replace(failed, workload="solve")
    second = replace(first, status="ok", values={"ratio": 1.0})
    every = [good, failed, cannot, busy, not_begun, first, second]
    assert [one for one in every if stands(one, retry_failed=False)] == [
        good, failed, cannot, first, second,
    ]  # fmt: skip
    assert [one for one in every if stands(one, retry_failed=True)] == [good, second]
    assert FORM.counting(every) == [good, busy, failed, cannot, not_begun, second]


def test_a_line_cut_off_is_dropped_and_measured_again(tmp_path: Path) -> None:
    path = _filled(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    points = FORM.open(tmp_path, HEADER, fresh=False)
    assert len(points.records) == 2
    points.add(replace(POINT, round=2))
    points.close()
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("line", "text", "message"),
    [
        (1, "{}", "is not the header of a micro benchmark"),
        (1, "{", "is not JSON"),
        (1, '{"kind": "gridbench micro", "format": 1}', "machine is missing"),
        (3, "{", "is not JSON"),
        (3, "[]", "the whole is"),
        (4, '{"workload": "x", "engine": "y", "round": "z"}', "round is `'z'`"),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: int, text: str, message: str) -> None:
    path = _filled(tmp_path)
    lines = path.read_text().splitlines()
    lines[line - 1] = text
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError) as caught:
        FORM.open(tmp_path, HEADER, fresh=False)
    assert caught.value.line == line
    assert message in str(caught.value)
    assert "--fresh" in caught.value.remedy
    # Without its header the file is of no use.
    assert ("lose one point" in caught.value.remedy) == (line > 1)
    assert ("all points depend" in caught.value.remedy) == (line == 1)
    points = FORM.open(tmp_path, HEADER, fresh=True)
    assert points.records == []
    points.close()
    assert load_records(path, FORM)[1] == []


def test_another_format_is_reported(tmp_path: Path) -> None:
    path = _filled(tmp_path, 0)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 2}) + "\n")
    with pytest.raises(InputError, match="in format 2, and this gridbench writes format 1"):
        FORM.open(tmp_path, HEADER, fresh=False)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            replace(HEADER, machine={"host": "there", "cores": 2}),
            "another machine: host was `here`",
        ),
        (replace(HEADER, versions={"python": "3.12"}), "other versions: python was `3.11`"),
        (replace(HEADER, options={"sizes": "quick"}), "other options: sizes was `full`"),
    ],
)
def test_what_does_not_compare_is_not_mixed(tmp_path: Path, other: Header, message: str) -> None:
    path = _filled(tmp_path)
    before = path.read_bytes()
    with pytest.raises(InputError, match=message):
        FORM.open(tmp_path, other, fresh=False)
    assert path.read_bytes() == before


def test_a_place_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot use the output folder"):
        FORM.open(tmp_path / "file" / "inner", HEADER, fresh=False)


_FILL = """
import resource, signal, sys
from pathlib import Path
from test_micro_points import FORM, HEADER, POINT, InputError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
points = FORM.open(Path(sys.argv[1]), HEADER, fresh=False)
try:
    while True:
        points.add(POINT)
except InputError as error:
    print(error)
"""


def test_a_full_disk_keeps_what_was_saved(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FILL, str(tmp_path)],
        cwd=Path(__file__).parent, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "cannot save a result: File too large" in done.stdout
    assert "hint: make room, and run the same again" in done.stdout
    assert (tmp_path / FORM.file).stat().st_size <= 2000
    _, points = load_records(tmp_path / FORM.file, FORM)
    assert points == [POINT] * len(points)
    assert len(points) > 2
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 2000

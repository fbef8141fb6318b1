"""The list of task times: reading it as people write it, and writing it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gridbench.errors import InputError
from gridbench.workload.workload import draw_task_times, read_task_times


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "times"


@pytest.mark.parametrize(
    "contents",
    [
        b"1.5\n0\n30\n",
        b"1.5\n0\n30",
        b"1.5\r\n0\r\n30\r\n",
        b"\xef\xbb\xbf1.5\n0\n30\n",
        b"\xef\xbb\xbf# times\n1.5\n0\n30\n",
        b"# caf\xe9\n\n  1.5\t\n#2\n \n0.000\n3e1\n\n# end",
        b"+1.5\n.0\n30.\n",
    ],
    ids=["plain", "no newline", "crlf", "mark", "mark, comment", "comments", "forms"],
)
def test_lists_are_read_as_people_write_them(path: Path, contents: bytes) -> None:
    path.write_bytes(contents)
    assert read_task_times(path, 3).tolist() == [1.5, 0, 30]


@pytest.mark.parametrize(
    ("contents", "line", "words"),
    [
        (b"1\n2\n", 2, "the list ends after 2 times, but NTasks is 3"),
        (b"", 1, "the list ends after 0 times"),
        (b"# only\n# comments\n", 2, "the list ends after 0 times"),
        (b"1\n2\n3\n# x\n4\n", 5, "the list continues after 3 times, but NTasks is 3"),
        (b"1\nlong\n3\n", 2, "must be a number, and `long` is not"),
        (b"1\n2 # two\n3\n", 2, "must be a number, and `2 # two` is not"),
        (b"1 2 3\n", 1, "must be a number"),
        (b"1\n\nNaN\n3\n", 3, "must be finite, not `NaN`"),
        (b"1\n2\ninf\n", 3, "must be finite, not `inf`"),
        (b"1\n-0.5\n3\n", 2, "must be from 0 to 1,000,000, not `-0.5`"),
        (b"1\n2\n1e7\n", 3, "must be from 0 to 1,000,000, not `1e7`"),
        (b"1\n2,5\n3\n", 2, "must be written with a decimal point, not `2,5`"),
        (b"1_0\n2\n3\n", 1, "must be a number"),
        (b"1\n\x00\xff\x1b[31m\n3\n", 2, "must be a number"),
        (b"1\n" + b"2" * 100_000, 2, "the line is longer than"),
        (b"1\r2\r3\r", 1, "must be a number"),
        ("1\n2\n".encode("utf-16"), 1, "must be a number"),
    ],
)
def test_a_bad_line_is_named(path: Path, contents: bytes, line: int, words: str) -> None:
    path.write_bytes(contents)
    with pytest.raises(InputError) as caught:
        read_task_times(path, 3)
    assert words in caught.value.what
    assert caught.value.what.isprintable()
    assert (caught.value.file, caught.value.line) == (path, line)
    assert caught.value.remedy


def test_what_is_not_a_file_is_refused(path: Path) -> None:
    for place in (path, path.parent, Path("/dev/zero"), path / "below"):
        with pytest.raises(InputError) as caught:
            read_task_times(place, 3)
        assert "list-times" in caught.value.remedy


def test_times_are_drawn_as_asked_for() -> None:
    times = draw_task_times(20_000, 30, 5, seed=3)
    assert abs(times.mean() - 30) < 0.2
    assert abs(times.std() - 5) < 0.2
    assert (draw_task_times(20_000, 30, 5, seed=3) == times).all()
    assert (draw_task_times(20_000, 30, 5, seed=4) != times).any()
    assert (draw_task_times(10, 2, 0, seed=1) == 2).all()


def test_times_are_truncated_not_piled_up_at_zero() -> None:
    times = draw_task_times(5_000, 0, 1, seed=1)
    assert times.min() > 0
    # Half of a normal distribution: its mean is sqrt(2/pi).
    assert abs(times.mean() - np.sqrt(2 / np.pi)) < 0.05


def test_a_written_list_is_read_back(tmp_path: Path, gridbench) -> None:  # type: ignore[no-untyped-def]
    arguments = ("--tasks", "50", "--mean", "2", "--stddev", "0.5", "--seed", "9", "--out", "t")
    done = gridbench("list-times", *arguments)
    assert done.returncode == 0
    times = read_task_times(tmp_path / "t", 50)
    assert np.abs(times - draw_task_times(50, 2, 0.5, seed=9)).max() < 1e-6
    head = (tmp_path / "t").read_text().splitlines()[:3]
    assert all(line.startswith("#") for line in head)
    assert "--tasks 50 --mean 2 --stddev 0.5 --seed 9" in head[2]

    before = (tmp_path / "t").read_bytes()
    again = gridbench("list-times", "--tasks", "1", "--mean", "1", "--out", "t")
    assert again.returncode == 2
    assert "exists already" in again.stderr
    assert "--force" in again.stderr
    assert (tmp_path / "t").read_bytes() == before
    forced = gridbench("list-times", "--tasks", "1", "--mean", "1", "--out", "t", "--force")
    assert forced.returncode == 0
    assert read_task_times(tmp_path / "t", 1).tolist() == [1]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--tasks", "0"),
        ("--tasks", "-1"),
        ("--tasks", "99999999999"),
        ("--mean", "-1"),
        ("--mean", "nan"),
        ("--mean", "1e9"),
        ("--stddev", "-0.1"),
        ("--stddev", "inf"),
        ("--stddev", "900000"),
        ("--seed", "-1"),
        ("--out", "no/such/folder/t"),
        ("--out", "."),
    ],
)
def test_bad_parameters_are_refused(tmp_path: Path, refused, option: str, value: str) -> None:  # type: ignore[no-untyped-def]
    given = {"--tasks": "5", "--mean": "1", "--stddev": "0", "--out": "t"} | {option: value}
    done = refused("list-times", *[part for pair in given.items() for part in pair])
    assert done.returncode == 2
    assert done.stderr.startswith("gridbench: ")
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []

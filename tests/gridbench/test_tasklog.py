"""The task log: what is written comes back, old logs are read, bad ones are named."""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridbench.errors import InputError
from gridbench.tasklog import COLUMN_LINE, TaskLogHeader, TaskLogWriter, read_task_log
from gridbench.timeline import SCHEMA

SAMPLE = Path(__file__).parent / "data" / "symphony_sample.log"
HEADER = TaskLogHeader(2, 3, "input.1", 10.0, 0.0, 0.5)
ROW = "1 1.000000 0.1 0.2 1.2 1.3 node1"


def write(folder: Path, body: str | bytes, *, header: bool = True) -> Path:
    path = folder / "tasks.log"
    raw = body.encode() if isinstance(body, str) else body
    path.write_bytes((f"{HEADER.line()}\n{COLUMN_LINE}\n".encode() if header else b"") + raw)
    return path


def test_published_sample_is_read():
    header, table = read_task_log(SAMPLE)
    assert header == TaskLogHeader(1200, 400, "input.30", 0.0, 0.0, 0.0)
    assert table.schema.equals(SCHEMA)
    assert table["tid"].to_pylist() == [1, 2, 3, 15, 6, 18, 25, 11]
    assert table["retrieve"][2].as_py() == 35.663848
    assert table["worker"][7].as_py() == table["host"][7].as_py() == "grid108"
    negative = np.array(table["retrieve"]) < np.array(table["calc_out"])
    assert negative.sum() == 6
    assert math.isnan(table["queued"][0].as_py())
    assert set(table["status"].to_pylist()) == {"ok"}


def test_published_sample_is_written_as_it_stands(tmp_path):
    header, table = read_task_log(SAMPLE)
    path = tmp_path / "again.log"
    with TaskLogWriter(path, header) as log:
        for row in table.to_pylist():
            stamps = (row[name] for name in ("slept", "submit", "calc_in", "calc_out", "retrieve"))
            log.row(row["tid"], *stamps, row["host"])
    assert path.read_bytes() == SAMPLE.read_bytes()


times = st.floats(-1e6, 1e6).map(lambda value: round(value, 6))
hosts = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=12).filter(
    lambda host: host != "-"
)


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 10**12), *[times] * 5, hosts),
        max_size=20,
        unique_by=lambda row: row[0],
    ),
    header=st.builds(
        TaskLogHeader,
        st.integers(100, 10**6),
        st.integers(1, 10**6),
        st.sampled_from(["input.30", "my input", "a=b", "väter"]),
        *[st.integers(0, 10**9).map(lambda kb: kb / 64)] * 3,
    ),
)
def test_round_trip(tmp_path_factory, rows, header):
    path = tmp_path_factory.mktemp("log") / "tasks.log"
    with TaskLogWriter(path, header) as log:
        for row in rows:
            log.row(*row)
    again, table = read_task_log(path)
    assert again == header
    names = ("tid", "slept", "submit", "calc_in", "calc_out", "retrieve", "host")
    assert list(zip(*(table[name].to_pylist() for name in names), strict=True)) == rows
    assert table["bytes_in"].to_pylist() == [round(header.task_kb * 1024)] * len(rows)


@given(junk=st.binary(max_size=300))
def test_junk_is_refused_with_one_message_or_read(tmp_path_factory, junk):
    path = tmp_path_factory.mktemp("log") / "tasks.log"
    path.write_bytes(junk)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        refused = ""
        try:
            _, table = read_task_log(path)
        except InputError as error:
            refused = str(error)
    if refused:
        assert refused.startswith(str(path))
    else:
        assert np.isfinite(np.array(table["retrieve"])).all()


def test_each_row_is_in_the_file_at_once(tmp_path):
    path = tmp_path / "tasks.log"
    with TaskLogWriter(path, HEADER) as log:
        log.row(1, 1.0, 0.1, 0.2, 1.2, 1.3, "node1")
        assert path.read_text().endswith("1.300000      node1\n")


def test_task_without_stamps_and_odd_hosts_leave_the_log_readable(tmp_path):
    path = tmp_path / "tasks.log"
    with TaskLogWriter(path, HEADER) as log:
        log.row(1, math.nan, 0.1, math.nan, math.nan, 0.2, "node 1\nx")
        log.row(2, 1.0, 0.1, 0.2, 1.2, 1.3, "")
    _, table = read_task_log(path)
    assert table["tid"].to_pylist() == [2]
    assert table["host"].to_pylist() == [""]


@pytest.mark.parametrize(
    "body",
    [ROW, ROW + "\n", ROW + "\r\n\r\n", "\n   \n" + ROW, "# a remark\n" + ROW],
    ids=["no final newline", "plain", "crlf", "blank lines", "comment"],
)
def test_accepted(tmp_path, body):
    assert read_task_log(write(tmp_path, body))[1]["retrieve"].to_pylist() == [1.3]


def test_byte_order_mark_and_crlf_header(tmp_path):
    text = f"\ufeff{HEADER.line()}\r\n{COLUMN_LINE}\r\n{ROW}\r\n"
    header, table = read_task_log(write(tmp_path, text, header=False))
    assert header == HEADER
    assert table.num_rows == 1


@pytest.mark.parametrize("stamps", ["30 0 5 35 35", "30 0.001 5.123 35.124 35.123"])
def test_coarse_clocks(tmp_path, stamps):
    _, table = read_task_log(write(tmp_path, f"1 {stamps} node1\n"))
    assert table["calc_out"][0].as_py() in (35.0, 35.124)


@pytest.mark.parametrize("cut", ["2 1.0 0.1", "2 1.0 0.1 0.2 1.2 1.", "2", "2 1.0 0.1 - - - -"])
def test_cut_last_line_is_dropped_with_a_warning(tmp_path, cut):
    path = write(tmp_path, f"{ROW}\n{cut}")
    with pytest.warns(UserWarning, match=r"tasks\.log:4: the last line is cut off"):
        _, table = read_task_log(path)
    assert table["tid"].to_pylist() == [1]


def test_missing_header_is_derived(tmp_path):
    path = write(tmp_path, f"{ROW}\n2 1 0 0 1 1 node2\n", header=False)
    with pytest.warns(UserWarning, match="no header line"):
        header, _ = read_task_log(path)
    assert header == TaskLogHeader(2, 2, "", 0.0, 0.0, 0.0)


def test_header_alone_is_a_run_without_results(tmp_path):
    header, table = read_task_log(write(tmp_path, ""))
    assert header == HEADER
    assert table.num_rows == 0
    assert table.schema.equals(SCHEMA)


def test_more_tasks_than_announced(tmp_path):
    path = write(tmp_path, "".join(f"{tid} 1 0 0 1 1 node1\n" for tid in range(3)))
    with pytest.warns(UserWarning, match="NTasks=2"):
        assert read_task_log(path)[1].num_rows == 3


@pytest.mark.parametrize(
    ("body", "line", "message"),
    [
        ("1 1.0 0.1 0.2 1.2 node1\n", 3, "6 columns instead of 7"),
        (f"{ROW} more\n", 3, "8 columns instead of 7"),
        (f"{ROW}\n2 1.0 0.1 0.2 node1 1.2 1.3\n", 4, "calc-out time is not a number: `node1`"),
        ("1 1.0 0.1 0.2 NaN 1.3 node1\n", 3, "calc-out time is not a finite number"),
        ("1 1.0 inf 0.2 1.2 1.3 node1\n", 3, "submit time is not a finite number"),
        ("1.5 1.0 0.1 0.2 1.2 1.3 node1\n", 3, "tid is not a whole number"),
        ("-1 1.0 0.1 0.2 1.2 1.3 node1\n", 3, "tid is not a whole number"),
        ("9999999999999999999 1.0 0.1 0.2 1.2 1.3 n\n", 3, "tid is not a whole number"),
        (
            f"{ROW}\n2 1 0 0 1 1 n\n{ROW}x\n",
            5,
            "task 1 occurs a second time; the first was on line 3",
        ),
        ("7 1 1.7e9 1.7e9 1.7e9 1.7e9 n\n", 3, "submit time 1700000000.000000 is a date"),
        (b"1 1.0 0.1\n\x00\x01\xff", 4, "binary data"),
        (b"1 1.0 0.1 0.2 1.2 1.3 caf\xe9\n", 3, "binary data"),
        # Two faults that make up for each other in the number of fields.
        ("1 1 0 0 1 node1\n2 1 0 0 1 1 1 node1\n", 3, "6 columns"),
    ],
)
def test_bad_rows_are_named(tmp_path, body, line, message):
    path = write(tmp_path, body)
    with pytest.raises(InputError) as caught:
        read_task_log(path)
    assert caught.value.line == line
    assert message in caught.value.what
    assert caught.value.remedy
    assert f"{path}:{line}: " in str(caught.value)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (HEADER.line().replace("NNodes=3", "NNodes=0"), "NNodes is 0"),
        (HEADER.line().replace("NTasks=2", "NTasks=two"), "not understood"),
        (HEADER.line().replace("10.000000", "-1"), "not a data size"),
        (HEADER.line().replace("10.000000", "nan"), "not a data size"),
        (HEADER.line().replace("10.000000", "1e300"), "not a data size"),
        (HEADER.line()[:40], "not understood"),
    ],
)
def test_bad_header(tmp_path, header, message):
    with pytest.raises(InputError, match=message) as caught:
        read_task_log(write(tmp_path, f"{header}\n{ROW}\n", header=False))
    assert caught.value.line == 1


@pytest.mark.parametrize("body", ["", "\n\n", "# nothing\n"])
def test_nothing_in_the_file(tmp_path, body):
    with pytest.raises(InputError, match=r"empty|no task"):
        read_task_log(write(tmp_path, body, header=False))


def test_no_file_and_a_folder(tmp_path):
    for path in (tmp_path / "none.log", tmp_path):
        with pytest.raises(InputError, match="cannot read the task log"):
            read_task_log(path)


def test_a_fault_far_down_a_large_log_is_found(tmp_path):
    lines = [f"{tid} 1 0 0 1 1 node{tid % 9}\n" for tid in range(200_000)]
    lines[150_000] = "150000 1 0 0 x 1 node1\n"
    big = TaskLogHeader(200_000, 9, "input.1", 0, 0, 0)
    path = tmp_path / "tasks.log"
    path.write_text(f"{big.line()}\n{''.join(lines)}")
    with pytest.raises(InputError, match="`x`") as caught:
        read_task_log(path)
    assert caught.value.line == 150_002
    lines[150_000] = "150000 1 0 0 1 1 node1\n"
    path.write_text(f"{big.line()}\n{''.join(lines)}")
    assert read_task_log(path)[1].num_rows == 200_000


def test_lines_that_stand_twice_count_once(tmp_path):
    other = "2 1.000000 0.1 0.2 1.2 1.3 node1"
    with pytest.warns(UserWarning, match=r"tasks.log:5: 2 lines stand there twice; each counts"):
        _, table = read_task_log(write(tmp_path, f"{ROW}\n{other}\n{ROW}\n{other}\n"))
    assert table["tid"].to_pylist() == [1, 2]


def test_what_to_do_about_tasks_that_differ_is_said(tmp_path):
    with pytest.raises(InputError, match=r"`split -l 3`"):
        read_task_log(write(tmp_path, f"{ROW}\n{ROW}x\n"))


@pytest.mark.parametrize("mark", ["", "# "])
def test_a_head_that_is_wrapped_as_in_print_is_read(tmp_path, mark):
    lines = SAMPLE.read_text().splitlines()
    first = lines[0].replace(" SharedDataSize", f"\n{mark}SharedDataSize")
    columns = lines[1].replace(" ch name", f"\n{mark}ch name")
    path = write(tmp_path, "\n".join([first, columns, *lines[2:], ""]), header=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        header, table = read_task_log(path)
    assert header == TaskLogHeader(1200, 400, "input.30", 0.0, 0.0, 0.0)
    known = ["tid", "slept", "submit", "calc_in", "calc_out", "retrieve", "host"]
    assert table.select(known).equals(read_task_log(SAMPLE)[1].select(known))


def test_a_head_that_does_not_go_on_is_refused(tmp_path):
    for rest in ("", f"\n{ROW}\n"):
        path = write(tmp_path, f"# NTasks=2 NNodes=3 InputFile=x{rest}", header=False)
        with pytest.raises(InputError, match=r"log:1: the header line is not understood"):
            read_task_log(path)


def test_tasks_that_are_numbered_and_have_no_line_are_missing(tmp_path):
    def counted(tids):
        lines = "".join(f"{tid} 1 0 0 1 1 node1\n" for tid in tids)
        with pytest.warns(UserWarning, match="no header line") as reported:
            header, table = read_task_log(write(tmp_path, lines, header=False))
        return header.ntasks, table.num_rows, "some have no line" in str(reported[0].message)

    assert counted([*range(20), *range(25, 60)]) == (60, 55, True)
    assert counted(range(7, 17)) == (10, 10, False)
    # Numbers that are mostly not there are names.
    assert counted([1, 5, 9]) == (3, 3, False)

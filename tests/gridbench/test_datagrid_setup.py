"""The set-up file of the data-grid benchmark: what it may hold, and one clear message for all it
may not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gridbench.datagrid.workload import (
    EXAMPLE,
    LIMITS,
    NAMES,
    NEEDED,
    REALS,
    TaskParameters,
    read_setup,
)
from gridbench.errors import InputError
from gridbench.read_config import LARGEST
from running import REPOSITORY

LINES = [
    "<DataGridSetup>",
    "<NNodes> 4 </NNodes>",
    "<MNodes> 3 </MNodes>",
    "<NTasks> 24 </NTasks>",
    "<NRepeats> 100 </NRepeats>",
    "<ReadDataSize> 1 </ReadDataSize>",
    "<UpdateDataSize> 2 </UpdateDataSize>",
    "<WriteDataSize> 3 </WriteDataSize>",
    "<NObjects> 800 </NObjects>",
    "<ObjectSize> 1.5 </ObjectSize>",
    "<SharedDataSize> 5 </SharedDataSize>",
    "<ProcessTime> 6 </ProcessTime>",
    "<SleepTime> 0.25 </SleepTime>",
    "</DataGridSetup>",
]
SAMPLE = "\n".join(LINES) + "\n"
MEANT = TaskParameters(
    nnodes=4, mnodes=3, ntasks=24, nrepeats=100, read_data_size=1, update_data_size=2,
    write_data_size=3, nobjects=800, object_size=1.5, shared_data_size=5, process_time=6,
    sleep_time=0.25,
)  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "setup.xml"


def refused(path: Path, contents: str | bytes) -> InputError:
    path.write_bytes(contents.encode() if isinstance(contents, str) else contents)
    with pytest.raises(InputError) as caught:
        read_setup(path)
    error = caught.value
    assert error.file == path
    assert error.remedy
    assert "\n" not in error.what
    assert len(str(error)) < 600
    return error


def with_line(number: int, text: str) -> str:
    lines = list(LINES)
    lines[number - 1] = text
    return "\n".join(lines)


@pytest.mark.parametrize(
    "contents",
    [
        SAMPLE.encode(),
        SAMPLE.replace("\n", "").encode(),
        "\r\n".join([LINES[0], *reversed(LINES[1:-1]), LINES[-1]]).encode(),
        b"\xef\xbb\xbf" + SAMPLE.encode(),
        ("<?xml version='1.0' encoding='UTF-16'?>" + SAMPLE).encode("utf-16"),
        SAMPLE.replace("800", "<!-- all --><![CDATA[800]]>").encode(),
    ],
    ids=["plain", "one line", "another order", "mark", "utf-16", "cdata"],
)
def test_all_ways_of_writing_the_same_are_read(path: Path, contents: bytes) -> None:
    path.write_bytes(contents)
    assert read_setup(path) == MEANT


def test_the_example_is_read() -> None:
    found = read_setup(REPOSITORY / EXAMPLE)
    assert found.to_dict().keys() == NAMES.keys()
    # It is for anybody's machine, and no two of its clients touch the same object.
    assert found.at_end * found.object_bytes < 32 << 20
    assert found.apart


def test_what_may_be_left_out_is_nothing(path: Path) -> None:
    stored = [
        line for line in LINES if not line.startswith(("<Read", "<Upd", "<Sha", "<Pro", "<Sl"))
    ]
    path.write_text("\n".join(stored))
    assert read_setup(path) == replace(
        MEANT,
        read_data_size=0,
        update_data_size=0,
        shared_data_size=0,
        process_time=0,
        sleep_time=0.0,
    )


@pytest.mark.parametrize("name", NEEDED)
def test_other_tags_are_needed(path: Path, name: str) -> None:
    number = next(n for n, line in enumerate(LINES, 1) if line.startswith(f"<{name}>"))
    error = refused(path, with_line(number, ""))
    assert error.what == f"tag is missing: <{name}>"
    assert error.line == len(LINES)


def test_all_missing_tags_are_named(path: Path) -> None:
    error = refused(path, "<DataGridSetup/>")
    assert error.what == "tags are missing: " + ", ".join(f"<{name}>" for name in NEEDED)


@pytest.mark.parametrize("name", NAMES)
def test_every_limit_is_reported_with_its_line(path: Path, name: str) -> None:
    number = 2 + list(NAMES).index(name)
    assert LINES[number - 1].startswith(f"<{name}>")
    low, high = LIMITS[name]
    for value in (f"{low - 1:g}", f"{high * 1000:.0f}", "9" * 5000):
        error = refused(path, with_line(number, f"<{name}>{value}</{name}>"))
        assert error.line == number
        assert f"<{name}> must be" in error.what
    for value in ("ten", "1_0", "0x10", "nan", "inf", "1,5", "5 KB"):
        error = refused(path, with_line(number, f"<{name}>{value}</{name}>"))
        assert (error.line, f"<{name}> must be" in error.what) == (number, True)
    if name not in REALS:
        error = refused(path, with_line(number, f"<{name}>1.5</{name}>"))
        assert f"<{name}> must be a whole number" in error.what


def test_no_members_are_refused(path: Path) -> None:
    error = refused(path, with_line(3, "<MNodes>0</MNodes>"))
    assert error.what == "<MNodes> must be from 1 to 1,000, not `0`"
    assert "at least one member" in error.remedy
    assert error.line == 3


@pytest.mark.parametrize(
    ("number", "text", "words"),
    [
        (1, "<BenchmarkSetup>", "starts with <BenchmarkSetup> instead of <DataGridSetup>"),
        (2, "<Nodes>4</Nodes>", "unknown tag <Nodes>"),
        (3, "<NNodes>4</NNodes>", "<NNodes> is given twice, first in line 2"),
        (3, "<MNodes/>", "<MNodes> is empty"),
        (3, '<MNodes of="data">3</MNodes>', "<MNodes> has an attribute `of`"),
        (9, "<NObjects><Many>3</Many></NObjects>", "<Many> stands inside <NObjects>"),
        (9, "some <NObjects>3</NObjects>", "text `some` between the tags of <DataGridSetup>"),
        (9, "<NObjects>&many;</NObjects>", "is not well-formed XML: undefined entity"),
        (9, "<NObjects>800</NObject>", "is not well-formed XML: mismatched tag"),
    ],
)
def test_a_bad_line_is_named(path: Path, number: int, text: str, words: str) -> None:
    error = refused(path, with_line(number, text))
    assert words in error.what
    assert error.line == number


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("Nnodes", "NNodes"), ("UpdateSize", "UpdateDataSize"), ("ObjektSize", "ObjectSize")],
)
def test_a_misspelt_tag_is_guessed(path: Path, wrong: str, meant: str) -> None:
    error = refused(path, with_line(4, f"<{wrong}>1</{wrong}>"))
    assert error.remedy == f"did you mean <{meant}>?"


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"", "is not well-formed XML"),
        (b"\xff\xfe\x00", "is not well-formed XML"),
        (b"<?xml version='1.0' encoding='klingon'?>" + SAMPLE.encode(), "encoding"),
        (b"<?xml version='1.0' encoding='UTF-8'?><!-- \xe9 -->" + SAMPLE.encode(), "well-formed"),
        (b"<!DOCTYPE x [<!ENTITY n '1'>]>" + SAMPLE.encode(), "must not declare a document type"),
        (b"<DataGridSetup>" + b" " * LARGEST, "too large for a set-up file"),
    ],
    ids=["empty", "no text", "unknown encoding", "wrong encoding", "doctype", "huge"],
)
def test_what_is_no_setup_file_is_refused(path: Path, contents: bytes, message: str) -> None:
    assert message in refused(path, contents).what


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_setup(tmp_path / "none.xml")
    assert EXAMPLE in caught.value.remedy
    with pytest.raises(InputError):
        read_setup(tmp_path)


@pytest.mark.parametrize("end", range(0, len(SAMPLE) - 2, 11))
def test_a_truncated_file_is_refused(path: Path, end: int) -> None:
    assert "is not well-formed XML" in refused(path, SAMPLE[:end]).what


def test_what_does_not_go_together_is_reported(path: Path) -> None:
    error = refused(path, with_line(9, "<NObjects>0</NObjects>"))
    assert "NObjects is 0, and tasks are to read or update objects" in error.what


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(contents=st.one_of(st.binary(max_size=300), st.text(max_size=300).map(str.encode)))
def test_no_contents_end_in_anything_but_a_message(path: Path, contents: bytes) -> None:
    refused(path, contents)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, len(SAMPLE) - 1), byte=st.integers(0, 255))
def test_a_changed_byte_gives_parameters_or_a_message(path: Path, at: int, byte: int) -> None:
    damaged = bytearray(SAMPLE.encode())
    damaged[at] = byte
    path.write_bytes(bytes(damaged))
    try:
        found = read_setup(path)
    except InputError as error:
        assert error.file == path  # noqa: PT017
    else:
        assert found.operations > 0

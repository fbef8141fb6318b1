"""The set-up file: what it may hold, and one clear message for all it may not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gridbench.errors import InputError
from gridbench.read_config import LARGEST
from gridbench.workload.workload import read_setup

LINES = [
    "<BenchmarkSetup>",
    "<NTasks>    10            </NTasks>",
    "<NNodes>    1             </NNodes>",
    "<InputFile> input.10.30.5 </InputFile>",
    "<TaskDataSize> 5          </TaskDataSize>",
    "<SharedDataSize> 0.5      </SharedDataSize>",
    "<WriteDataSize> 1e3       </WriteDataSize>",
    "</BenchmarkSetup>",
]
SAMPLE = "\n".join(LINES) + "\n"


def refused(path: Path, contents: str | bytes) -> InputError:
    data = contents.encode() if isinstance(contents, str) else contents
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        read_setup(path)
    error = caught.value
    assert error.file == path
    assert error.remedy
    return error


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "setup.xml"


def with_line(number: int, text: str) -> str:
    lines = list(LINES)
    lines[number - 1] = text
    return "\n".join(lines)


def test_the_documented_sample_is_read(path: Path) -> None:
    path.write_text(SAMPLE)
    setup = read_setup(path)
    assert (setup.ntasks, setup.nnodes, setup.input_file) == (10, 1, "input.10.30.5")
    assert (setup.task_bytes, setup.shared_bytes, setup.write_bytes) == (5120, 512, 1_024_000)
    assert setup.times_path == path.parent / "input.10.30.5"


@pytest.mark.parametrize(
    "contents",
    [
        SAMPLE.replace("\n", "\r\n").encode(),
        SAMPLE.replace("\n", "").encode(),
        b"\xef\xbb\xbf" + SAMPLE.encode(),
        SAMPLE.replace(" 10 ", "\n\t10\n").encode(),
        ("<?xml version='1.0' encoding='UTF-16'?>" + SAMPLE).encode("utf-16"),
        ("<?xml version='1.0' encoding='latin-1'?><!-- \xe9 -->" + SAMPLE).encode("latin-1"),
        SAMPLE.replace("5          ", "<![CDATA[5]]>").encode(),
    ],
    ids=["crlf", "one line", "mark", "blank lines", "utf-16", "latin-1", "cdata"],
)
def test_other_ways_of_writing_the_same_are_read(path: Path, contents: bytes) -> None:
    path.write_bytes(contents)
    assert read_setup(path).ntasks == 10
    assert read_setup(path).task_kb == 5


def test_a_path_is_seen_from_the_setup_files_folder(path: Path) -> None:
    path.write_text(with_line(4, "<InputFile>/data/times</InputFile>"))
    assert read_setup(path).times_path == Path("/data/times")
    path.write_text(with_line(4, "<InputFile>../times</InputFile>"))
    assert read_setup(path).times_path == path.parent / "../times"


@pytest.mark.parametrize(
    ("number", "text", "words"),
    [
        (2, "<NTasks>0</NTasks>", "<NTasks> must be from 1 to 10,000,000, not `0`"),
        (2, "<NTasks>-3</NTasks>", "<NTasks> must be from 1 to 10,000,000, not `-3`"),
        (2, "<NTasks>2.5</NTasks>", "<NTasks> must be a whole number, not `2.5`"),
        (2, "<NTasks>1e3</NTasks>", "<NTasks> must be a whole number, not `1e3`"),
        (2, "<NTasks>ten</NTasks>", "and `ten` is not a number"),
        (2, "<NTasks>1_000</NTasks>", "and `1_000` is not a number"),
        (2, "<NTasks>\u0661\u0660</NTasks>", "is not a number"),
        (2, "<NTasks>" + "9" * 9000 + "</NTasks>", "<NTasks> must be from 1"),
        (2, "<NTasks></NTasks>", "<NTasks> is empty"),
        (2, "<NTasks/>", "<NTasks> is empty"),
        (3, "<NNodes>0</NNodes>", "<NNodes> must be from 1 to 100,000, not `0`"),
        (3, "<NNodes>99999999</NNodes>", "<NNodes> must be from 1 to 100,000"),
        (4, "<InputFile> </InputFile>", "<InputFile> is empty"),
        (4, "<InputFile>a\tb</InputFile>", "<InputFile> is not the name of a file"),
        (4, f"<InputFile>{'x' * 5000}</InputFile>", "<InputFile> is not the name of a file"),
        (5, "<TaskDataSize>-1</TaskDataSize>", "<TaskDataSize> must be from 0"),
        (5, "<TaskDataSize>nan</TaskDataSize>", "<TaskDataSize> must be finite, not `nan`"),
        (5, "<TaskDataSize>-Infinity</TaskDataSize>", "<TaskDataSize> must be finite"),
        (5, "<TaskDataSize>1e999</TaskDataSize>", "<TaskDataSize> must be from 0"),
        (5, "<TaskDataSize>1e15</TaskDataSize>", "<TaskDataSize> must be from 0"),
        (5, "<TaskDataSize>0,5</TaskDataSize>", "must be written with a decimal point"),
        (5, "<TaskDataSize>5 KB</TaskDataSize>", "must be a number, and `5 KB` is not"),
        (5, "<TaskDataSize>0x10</TaskDataSize>", "must be a number, and `0x10` is not"),
        (5, "<TaskSize>5</TaskSize>", "unknown tag <TaskSize>"),
        (5, "<taskdatasize>5</taskdatasize>", "unknown tag <taskdatasize>"),
        (5, "<NNodes>5</NNodes>", "<NNodes> is given twice, first in line 3"),
        (5, '<TaskDataSize unit="MB">5</TaskDataSize>', "<TaskDataSize> has an attribute `unit`"),
        (5, "<TaskDataSize><b>5</b></TaskDataSize>", "<b> stands inside <TaskDataSize>"),
        (5, "<NTasks><NTasks>5</NTasks></NTasks>", "<NTasks> is given twice"),
        (5, "five <TaskDataSize>5</TaskDataSize>", "text `five` between the tags"),
        (5, "<TaskDataSize>5</TaskDataSiz>", "is not well-formed XML: mismatched tag"),
        (5, "<TaskDataSize>5 < 6</TaskDataSize>", "is not well-formed XML"),
        (5, "<TaskDataSize>&size;</TaskDataSize>", "is not well-formed XML: undefined entity"),
        (1, "<Setup>", "starts with <Setup> instead of <BenchmarkSetup>"),
        (1, '<BenchmarkSetup xmlns="x">', "has an attribute `xmlns`"),
        (8, "left over</BenchmarkSetup>", "text `left over` at the end"),
    ],
)
def test_a_bad_line_is_named(path: Path, number: int, text: str, words: str) -> None:
    error = refused(path, with_line(number, text))
    assert words in error.what
    assert error.line == number
    assert "\n" not in error.what
    assert len(str(error)) < 500


def test_every_tag_is_needed(path: Path) -> None:
    for number in range(2, 8):
        error = refused(path, with_line(number, ""))
        assert "tag is missing" in error.what
        assert error.line == 8
    error = refused(path, "<BenchmarkSetup/>")
    assert "tags are missing: <NTasks>, <NNodes>, <InputFile>" in error.what


def test_a_wrong_name_is_guessed(path: Path) -> None:
    assert refused(path, with_line(2, "<Ntask>1</Ntask>")).remedy == "did you mean <NTasks>?"
    assert "known tags: NTasks," in refused(path, with_line(2, "<Zebra>1</Zebra>")).remedy


@pytest.mark.parametrize("end", range(0, len(SAMPLE) - 2, 7))
def test_a_truncated_file_is_refused(path: Path, end: int) -> None:
    assert "is not well-formed XML" in refused(path, SAMPLE[:end]).what


def test_entities_and_document_types_are_refused(path: Path) -> None:
    laughs = "".join(
        f'<!ENTITY l{n} "{("&l" + str(n - 1) + ";") * 10 if n else "ha"}">' for n in range(10)
    )
    bomb = f"<!DOCTYPE b [{laughs}]>\n" + with_line(2, "<NTasks>&l9;</NTasks>")
    outside = '<!DOCTYPE b [<!ENTITY f SYSTEM "file:///etc/passwd">]>\n' + SAMPLE
    for contents in (bomb, outside, '<!DOCTYPE b SYSTEM "http://localhost/x.dtd">\n' + SAMPLE):
        error = refused(path, contents)
        assert "must not declare a document type or entities" in error.what
        assert error.line == 1


def test_a_wrong_encoding_is_refused(path: Path) -> None:
    assert "not well-formed" in refused(path, b"\n\xe9" + SAMPLE.encode()).what
    unknown = '<?xml version="1.0" encoding="klingon"?>' + SAMPLE
    assert "encoding" in refused(path, unknown).what
    assert refused(path, SAMPLE.encode("utf-16")[:100]).what
    assert refused(path, bytes(100)).what
    assert refused(path, b"").what


def test_a_huge_file_is_refused_whatever_it_holds(path: Path) -> None:
    assert "is larger than" in refused(path, SAMPLE + " " * LARGEST).what
    many_lines = with_line(2, "\n" * (LARGEST - 2000) + "<NTasks>x</NTasks>")
    assert refused(path, many_lines).line == LARGEST - 2000 + 2
    deep = "<BenchmarkSetup>" + "<NTasks>" * 100_000
    assert "<NTasks> stands inside <NTasks>" in refused(path, deep).what


def test_what_is_not_a_file_is_refused(path: Path) -> None:
    for place in (path, path.parent, Path("/dev/zero")):
        with pytest.raises(InputError) as caught:
            read_setup(place)
        assert caught.value.remedy
    os.mkfifo(path)
    with pytest.raises(InputError, match="not a regular file"):
        read_setup(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(data=st.data())
def test_no_damage_does_more_than_be_refused(path: Path, data: st.DataObject) -> None:
    contents = bytearray(SAMPLE.encode())
    for _ in range(data.draw(st.integers(1, 5))):
        where = data.draw(st.integers(0, len(contents) - 1))
        piece = data.draw(st.binary(max_size=3) | st.sampled_from([b"<", b">", b"&", b"\0", b"!"]))
        contents[where : where + data.draw(st.integers(0, 3))] = piece
    path.write_bytes(contents)
    try:
        setup = read_setup(path)
    except InputError as error:
        refusal = error
    else:
        assert setup.ntasks >= 1
        assert setup.nnodes >= 1
        assert min(setup.task_bytes, setup.shared_bytes, setup.write_bytes) >= 0
        return
    assert refusal.line is not None

"""What tasks print about their phases, and what they print that is none of that."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridbench.sync import reports
from gridbench.sync.record import Latency, Phase
from gridbench.sync.reports import Reported, reported
from running import DEADLINE

WRITE = {"name": "write", "seconds": 1.25, "bytes": 64, "operations": 2}
LATENCY = {"p50": 0.25, "p90": 0.5, "p99": 0.5, "max": 1}


def line(*phases: Any) -> bytes:
    return json.dumps({"phases": phases}).encode() + b"\n"


def test_phases_come_from_the_last_line_that_has_them() -> None:
    read = {"name": "read", "seconds": 2, "latency": LATENCY, "colour": "blue"}
    for before in (b"", b"hello\n", line({"name": "old", "seconds": 1}), b"\xff\xfe\n", b"{}\n"):
        for behind in (b"", b"bye\n", b'{"phase": 1}\n', b'{"of": "phases"}\n', b"\x00"):
            output = before + b"  " + line(WRITE, read) + behind
            assert reported(output) == Reported(
                (
                    Phase(name="write", seconds=1.25, bytes=64, operations=2),
                    Phase(
                        name="read",
                        seconds=2.0,
                        latency=Latency(p50=0.25, p90=0.5, p99=0.5, max=1.0),
                    ),
                )
            )
    assert reported(line(WRITE).strip()).phases
    assert reported(b'{"phases": []}') == Reported()


@pytest.mark.parametrize(
    "output",
    [
        b"",
        b"\n\n",
        b"the phases: 3\n",
        b'["phases"]\n',
        b'my "phases" are {"phases": 1}\n',
        b'{"of": "phases"}\n',
        b'{"jobs": [{"error": 1}]}\n',
        b"\xff" * 1000,
        b"fio version 3\n",
        b'the "fio version" is 3\n',
    ],
)
def test_what_a_program_prints_otherwise_is_its_own(output: bytes) -> None:
    assert reported(output) == Reported()


def number(text: str) -> bytes:
    return b'{"phases": [{"name": "write", "seconds": %s}]}' % text.encode()


@pytest.mark.parametrize(
    ("output", "why"),
    [
        (line(WRITE)[:-5], "the line with its phases is not JSON: `{"),
        (b'{"phases": 5}', "phases is `5`, not a list"),
        (b'{"phases": [5]}', "phases[0] is `5`, not an object"),
        (line({"name": "write"}), "phases[0].seconds is missing"),
        (line({"seconds": 1}), "phases[0].name is missing"),
        (line(WRITE, WRITE | {"bytes": -1}), "phases[1].bytes is -1, not from 0"),
        (line(WRITE | {"bytes": 0.5}), "phases[0].bytes is `0.5`, not a whole number"),
        (line(WRITE | {"bytes": 2**63}), "phases[0].bytes is 9223372036854775808, not from"),
        (line(WRITE | {"operations": True}), "phases[0].operations is `True`"),
        (line(WRITE | {"latency": {"p50": 1}}), "phases[0].latency.p90 is missing"),
        (line(WRITE | {"latency": LATENCY | {"max": -1}}), "phases[0].latency.max is -1"),
        (line(WRITE | {"name": " "}), "phases[0].name is ` `, not a name"),
        (line(WRITE | {"name": "a\nb"}), "phases[0].name is `a?b`, not a name"),
        (line(WRITE | {"name": "a" * 1000}), "phases[0].name is `aaaa"),
        (line(*[WRITE] * 1001), "it reports 1,001 phases, more than 1,000"),
        (number("-0.1"), "phases[0].seconds is -0.1"),
        (number("NaN"), "phases[0].seconds is not a finite number"),
        (number("Infinity"), "phases[0].seconds is not a finite number"),
        (number("1e400"), "phases[0].seconds is not a finite number"),
        (number("9" * 4000), "phases[0].seconds is not a finite number"),
        (number("9" * 5000), "the line with its phases is not JSON"),
        (b'{"phases": ' + b"[" * 200_000, "the line with its phases is not JSON"),
    ],
)
def test_what_cannot_be_used_is_reported(output: bytes, why: str) -> None:
    found = reported(b"hello\n" + output)
    assert found.phases == ()
    assert why in found.why
    assert len(found.why) < 200


def test_the_end_of_a_long_output_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "LONGEST", 1000)
    assert reported(b"x" * 5000 + b"\n" + line(WRITE)).phases
    assert reported(line(WRITE) + b"x" * 5000) == Reported()


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["phases", "name", "seconds", "bytes", "latency", "p50"]), inner
            )
        ),
    ),
    st.binary(),
)
def test_nothing_that_is_printed_ends_in_an_error(value: object, noise: bytes) -> None:
    said = json.dumps({"phases": value}).encode()
    for output in (
        noise,
        said + noise,
        noise + b"\n" + said,
        b'{"fio version": 1, "jobs": ' + said,
    ):
        found = reported(output)
        assert not (found.phases and found.why)


# ---- fio


def fio(folder: Path, *options: str, status: int = 0) -> bytes:
    assert shutil.which("fio"), "make fio installs it"
    ran = subprocess.run(
        ["fio", "--output-format=json", f"--directory={folder}", *options],
        capture_output=True,
        timeout=DEADLINE,
        cwd=folder,
        check=False,
    )
    assert ran.returncode == status, ran.stderr
    return ran.stdout


def test_what_fio_prints_is_read(tmp_path: Path) -> None:
    mixed = ("--name=one", "--rw=randrw", "--rwmixread=50", "--size=1M", "--bs=4k")
    found = reported(b"fio: a note before it\n" + fio(tmp_path, *mixed) + b"and one behind\n")
    assert not found.why
    read, write = found.phases
    assert (read.name, write.name) == ("read", "write")
    assert read.operations + write.operations == 256
    for phase in found.phases:
        assert phase.bytes == 4096 * phase.operations
        assert phase.seconds > 0
        assert phase.latency is not None
        latency = phase.latency
        assert 0 < latency.p50 <= latency.p90 <= latency.p99 <= latency.max


def test_several_jobs_of_fio_are_told_apart(tmp_path: Path) -> None:
    output = fio(tmp_path, "--name=a", "--rw=write", "--size=64k", "--name=b", "--rw=read",
                 "--size=128k")  # fmt: skip
    found = reported(output)
    assert not found.why
    report_text = {phase.name: phase.bytes for phase in found.phases}
    assert report_text == {"a: write": 65536, "b: read": 131072}


def test_what_fails_in_fio_is_reported(tmp_path: Path) -> None:
    (tmp_path / "one.0.0").mkdir()
    output = fio(tmp_path, "--name=one", "--rw=write", "--size=64k", status=1)
    assert reported(output) == Reported(why="fio's job `one` failed: Is a directory")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"error": 28}, "fio's job `one` failed: No space left on device"),
        ({"error": 10**300}, "fio's job `one` failed: error 1000"),
        ({"write": {"io_bytes": -5}}, "phases[0].bytes is -5"),
        ({"write": {"total_ios": 10**3000}}, "phases[0].operations is 1000"),
        ({"write": {"runtime": "long"}}, "jobs[0].write.runtime is `'long'`"),
        ({"write": {"runtime": float("nan")}}, "jobs[0].write.runtime is not a finite number"),
        ({"write": {"runtime": 0, "iops": 1e-320}}, "phases[0].seconds is inf"),
        ({"write": {"clat_ns": 7}}, "jobs[0].write.clat_ns is `7`, not an object"),
        ({"write": None}, "jobs[0].write is null"),
        ({"jobname": None}, "jobs[0].jobname is null"),
    ],
)
def test_changed_numbers_of_fio_are_reported(
    tmp_path: Path, change: dict[str, Any], why: str
) -> None:
    report_text = json.loads(fio(tmp_path, "--name=one", "--rw=write", "--size=64k"))
    (job,) = report_text["jobs"]
    for name, value in change.items():
        job[name] = job[name] | value if isinstance(value, dict) else value
    found = reported(json.dumps(report_text).encode())
    assert found.phases == ()
    assert why in found.why
    assert len(found.why) < 200


def test_output_of_fio_that_is_cut_off_is_reported(tmp_path: Path) -> None:
    output = fio(tmp_path, "--name=one", "--rw=write", "--size=64k")
    found = reported(output[: len(output) // 2])
    assert found == Reported(why="what fio printed is not complete JSON")

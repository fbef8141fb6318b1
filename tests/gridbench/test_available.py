"""Which processors count as ours: the affinity mask, the cpuset and the control group."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gridbench.machine.load import ClockReading
from gridbench.machine.processors import ControlGroup, available_count, control_group, unused_of

TICKS = os.sysconf("SC_CLK_TCK")
STAT = (
    "cpu 10 0 10 1000 100 0 30 8\n"
    "cpu0 5 0 5 700 60 0 10 3\n"
    "cpu1 5 0 5 300 40 0 20 5\n"
    "cpu10 0 0 0 9 9 0 9 9\n"
    "intr 1 2 3\n"
)


def folder_of(root: Path, path: str, **files: str) -> Path:
    """A made-up control group, and the process in it."""
    (root / "proc/self").mkdir(parents=True, exist_ok=True)
    (root / "proc/self/cgroup").write_text(f"1:cpu:/other\n0::{path}\n")
    folder = root / "sys/fs/cgroup" / path.strip("/")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return root


def test_only_own_processors_are_summed() -> None:
    assert unused_of(STAT, {1}).idle == 300 / TICKS
    both = unused_of(STAT, {0, 1})
    assert (both.idle * TICKS, both.waiting * TICKS) == pytest.approx((1000, 100))
    assert (both.network * TICKS, both.stolen * TICKS) == pytest.approx((30, 8))


def test_a_control_group_has_processors_a_limit_and_pressure(tmp_path: Path) -> None:
    pressure = "some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\nfull avg10=0 total=1\n"
    files = {"cpuset_cpus_effective": "0-2,5\n", "cpu_max": "max 100000\n"}
    folder_of(tmp_path, "/job/step", cpu_pressure=pressure, **files)
    found = control_group(tmp_path)
    assert found == ControlGroup(frozenset({0, 1, 2, 5}), math.inf, 2.5)
    # A limit of a group above holds as well, the least of all.
    folder_of(tmp_path, "/job", cpu_max="150000 100000\n")
    folder_of(tmp_path, "/job/step", cpu_max="400000 100000\n")
    assert control_group(tmp_path).limit == 1.5
    assert available_count(ControlGroup(limit=0.5)) == 1


@pytest.mark.parametrize("text", ["", "0-x", "max", "some total=?\n"])
def test_what_cannot_be_read_is_not_known(tmp_path: Path, text: str) -> None:
    assert control_group(tmp_path) == ControlGroup()
    names = ("cpuset_cpus_effective", "cpu_max", "cpu_pressure")
    folder_of(tmp_path, "/", **dict.fromkeys(names, text))
    assert control_group(tmp_path) == ControlGroup()


def test_neighbours_that_take_nothing_from_a_limited_group_do_not_count() -> None:
    before = ClockReading(at=0.0, not_idle=0.0, own=0.0, waited=1.0)
    assert ClockReading(at=1.0, not_idle=3.0, own=1.0, waited=1.0).load_since(before).others == 0
    assert ClockReading(at=1.0, not_idle=3.0, own=1.0, waited=1.5).load_since(before).others == 0.5
    assert ClockReading(at=1.0, not_idle=3.0, own=1.0).load_since(before).others == 2.0


_LOOK = """
import json, os
from gridbench.machine import load
from gridbench.machine.processors import available_count
load._MOST = 1000
found = load.take_sample(1.0)
print(json.dumps([available_count(), [one.pid for one in found.users], found.load.others]))
"""


@pytest.mark.skipif(not {0, 1} <= os.sched_getaffinity(0), reason="needs processors 0 and 1")
def test_a_loop_on_another_processor_is_no_load() -> None:
    loop = [sys.executable, "-c", "while True: pass"]
    with subprocess.Popen(["taskset", "-c", "1", *loop]) as busy:
        try:
            for processor, seen in ((0, False), (1, True)):
                found = subprocess.run(
                    ["taskset", "-c", str(processor), sys.executable, "-c", _LOOK],
                    stdout=subprocess.PIPE, check=True, timeout=60,
                )  # fmt: skip
                count, users, others = json.loads(found.stdout)
                assert count == 1
                assert (busy.pid in users) == seen
                assert others <= 1.1
        finally:
            busy.kill()

"""Telling our own work on the machine from that of others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gridbench.machine.load import OrphanCpu, orphan_seconds, reading
from gridbench.machine.processes import Process
from gridbench.process.children import children_of

_BURNING = """
import contextlib, os, signal, sys, time
processes, seconds = int(sys.argv[1]), float(sys.argv[2])
# As Ray's raylet does it: nobody waits for the children.
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
gate, hold = os.pipe()
done, tell = os.pipe()
for _ in range(processes):
    if os.fork() == 0:
        os.close(hold)
        while time.process_time() < seconds:
            pass
        os.write(tell, b".")
        os.read(gate, 1)
        os._exit(0)
left = processes
while left:
    left -= len(os.read(done, left))
print("burnt", flush=True)
sys.stdin.read()
os.close(hold)
with contextlib.suppress(ChildProcessError):
    os.wait()  # until all have ended, as their ends are ignored
"""


@contextmanager
def _burning(processes: int, seconds: float) -> Iterator[None]:
    """So many grandchildren have used so much processor time each, and wait."""
    with subprocess.Popen(
        [sys.executable, "-c", _BURNING, str(processes), str(seconds)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        assert child.stdout is not None
        assert child.stdout.readline() == "burnt\n"
        yield


def test_what_nobody_has_waited_for_is_lost_with_its_end() -> None:
    before = reading(os.getpid())
    with _burning(2, 0.4):
        during = reading(os.getpid())
    after = reading(os.getpid())
    assert during.own - before.own >= 0.8
    assert after.own - before.own < 0.6, "it is known after all: `measured` is not needed"
    # The machine was not idle for that time, whoever it is charged to.
    assert after.not_idle - before.not_idle > 0.7


def test_what_was_seen_before_its_end_is_not_lost() -> None:
    family = OrphanCpu(os.getpid())
    family.look()
    with _burning(2, 0.4):
        family.look()
    after, plain = family.reading(), reading(os.getpid())
    # The clocks tick in hundredths, and the parent keeps using a little.
    assert family.seconds >= 0.7
    assert after.own - plain.own == pytest.approx(family.seconds, abs=0.1)


def process(parent: int, used: float, waited_for: float = 0.0, began: int = 1) -> Process:
    return Process(name="x", parent=parent, began=began, used=used, waited_for=waited_for)


def test_only_what_no_account_has_counts_as_lost() -> None:
    """1 has started 2, and that 3 and 4."""
    family = {1: process(0, 1), 2: process(1, 2, 5), 3: process(2, 4), 4: process(2, 8)}
    assert orphan_seconds(family, family) == 0
    # 3 and 4 have ended; 2 has waited for both, for 3 alone, for neither.
    for waited_for, lost in ((17.0, 0), (9.0, 8), (5.0, 12)):
        assert orphan_seconds(family, {1: process(0, 1), 2: process(1, 2, waited_for)}) == lost
    # 2 has ended as well: what it had waited for is on the account of 1, with the rest or not.
    for waited_for, lost in ((19.0, 0), (7.0, 12), (0.0, 19)):
        assert orphan_seconds(family, {1: process(0, 1, waited_for)}) == lost
    # Its number is that of another process now.
    assert orphan_seconds(family, {**family, 3: process(2, 0, began=9)}) == 4
    # It belongs to another parent now, where it is seen.
    assert orphan_seconds(family, {**family, 3: process(0, 4)}) == 0
    # All have ended: nobody is left to ask.
    assert orphan_seconds(family, {}) == 0


def test_a_process_that_has_ended_has_no_children() -> None:
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
        assert children_of(ended.pid) == set()


def test_many_that_have_done_little_count_as_well() -> None:
    before = reading(os.getpid())
    # Less than the clock's tick of 10 ms.
    with _burning(60, 0.006):
        during = reading(os.getpid())
    assert during.own - before.own >= 60 * 0.006

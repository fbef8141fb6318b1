"""Telling our own work on the machine from that of others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from gridbench.machine.load import reading

_BURNING = """
import os, signal, sys, time
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


def test_many_that_have_done_little_count_as_well() -> None:
    before = reading(os.getpid())
    # Less than the clock's tick of 10 ms.
    with _burning(60, 0.006):
        during = reading(os.getpid())
    assert during.own - before.own >= 60 * 0.006

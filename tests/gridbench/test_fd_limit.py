"""Room for open files: as much as a script has that a shell starts."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from gridbench.process.inside import OPEN_FILES

# A copy of a process that has next to nothing open has as little room as there can be.
_COPY = """
import json, os, resource, sys
from contextlib import suppress
from gridbench.cli import main
from gridbench.process.inside import make_room_for_files

def room():
    with open("/proc/self/status") as status:
        return int(status.read().partition("FDSize:")[2].split()[0])

if copy := os.fork():
    sys.exit(os.waitpid(copy, 0)[1])
"""
_MAKE_ROOM = """
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[1])))
before, opened = room(), os.listdir("/proc/self/fd")
make_room_for_files()
print(json.dumps([before, room(), opened == os.listdir("/proc/self/fd")]))
"""
_RUN = """
before = room()
with suppress(SystemExit):
    main(["run", "no-such-setup.xml"])
print(json.dumps([before, room()]))
"""
_PREPARE = """
from gridbench.engines.gridrpc_engines import NativeEngine
before = room()
NativeEngine().prepare(int(sys.argv[1]))
print(json.dumps([before, room()]))
"""


def told_by(program: str, *arguments: str) -> list[int]:
    """What a copy of such a process finds out."""
    done = subprocess.run(
        [sys.executable, "-c", _COPY + program, *arguments],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    found: list[int] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(("limit", "is_made"), [(OPEN_FILES, True), (OPEN_FILES - 1, False)])
def test_room_is_made_where_there_may_be_so_many_files(limit: int, is_made: bool) -> None:
    before, behind, same = told_by(_MAKE_ROOM, str(limit))
    assert before < OPEN_FILES
    assert behind == (OPEN_FILES if is_made else before)
    assert same, "a file stays open"


def test_a_run_begins_with_that() -> None:
    before, behind = told_by(_RUN)
    assert before < OPEN_FILES
    assert behind == OPEN_FILES


def test_the_client_of_a_grid_has_room_for_the_files_of_all_workers() -> None:
    before, behind = told_by(_PREPARE, "200")
    assert before < 3 * 200 <= behind

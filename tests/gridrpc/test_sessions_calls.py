"""Calls that run in a session without the program that made them, and programs side by side."""

from __future__ import annotations

import os
import pickle
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import gridrpc
from gridrpc import JournalError, OutcomeUnknown, SessionEnded, SessionError
from gridrpc._session import registry
from gridrpc._session.protocol import MapPlan
from noting import not_today, noted, waits
from processes import LONG, run_script, running, start_script, until
from sessions import at, command, ran, session


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder in which the session `calls` runs, with two workers."""
    with session("calls", tmp_path_factory.mktemp("calls")) as folder:
        yield folder


@pytest.fixture
def grid() -> Iterator[gridrpc.AttachedGrid]:
    with gridrpc.attach("calls") as grid:
        yield grid
        for key in grid.maps:
            grid.forget(key)


def kill_session() -> None:
    pid = registry.record_of("calls").pid
    os.kill(pid, signal.SIGKILL)
    assert until(lambda: not running({pid}))


DETACHES = """
import gridrpc, noting, os
with gridrpc.attach("calls") as grid:
    print(grid.detach(noting.slowly, os.getcwd(), 7))
"""

FETCHES = """
import gridrpc, sys
with gridrpc.attach("calls") as grid:
    print(grid.fetch(sys.argv[1]))
"""


def test_other_programs_fetch_the_result_of_a_call(
    grid: gridrpc.AttachedGrid, tmp_path: Path
) -> None:
    key = run_script(tmp_path, DETACHES).stdout.strip()
    assert re.fullmatch("call-[0-9a-f]{8}", key)
    assert run_script(tmp_path, FETCHES, key).stdout == "70\n"
    assert grid.fetch(key) == 70
    assert ran(tmp_path) == [7]
    assert f"map {key}: slowly, 1 of 1 results" in command("show", "calls", cwd=tmp_path)
    grid.forget(key)
    with pytest.raises(LookupError, match=f"no map `{key}`"):
        grid.fetch(key)


def test_calls_have_keys_of_their_own(grid: gridrpc.AttachedGrid) -> None:
    keys = [grid.detach(pow, 2, n) for n in range(20)]
    assert len(set(keys)) == 20
    assert [grid.fetch(key) for key in keys] == [2**n for n in range(20)]
    assert grid.fetch(grid.detach(dict)) == {}


def test_a_key_stands_for_one_call(grid: gridrpc.AttachedGrid, tmp_path: Path) -> None:
    for _ in range(2):
        assert grid.detach(noted, f"{tmp_path}", 4, key="mine") == "mine"
        assert grid.fetch("mine") == 40
    assert ran(tmp_path) == [4]
    with pytest.raises(JournalError, match="was begun with `noted`, not with `pow`"):
        grid.detach(pow, f"{tmp_path}", 4, key="mine")
    with pytest.raises(JournalError, match="another item 0"):
        grid.detach(noted, f"{tmp_path}", 5, key="mine")
    assert grid.detach(pow, 2, 5, key="mine", if_changed="restart") == "mine"
    assert grid.fetch("mine") == 32
    with pytest.raises(ValueError, match="not a valid name of a map"):
        grid.detach(pow, 2, 5, key="../mine")


def test_fetch_raises_the_error_of_the_function(grid: gridrpc.AttachedGrid, tmp_path: Path) -> None:
    key = grid.detach(not_today, f"{tmp_path}", 5)
    for _ in range(2):
        with pytest.raises(ValueError, match="not today") as caught:
            grid.fetch(key)
        assert "in not_today" in str(caught.value.__cause__)
    # Like an item of a map, it runs again when it is sent again.
    assert grid.detach(not_today, f"{tmp_path}", 5, key=key) == key
    assert grid.fetch(key) == 5
    assert ran(tmp_path) == [5, 5]


def test_a_call_has_the_options_of_maps(grid: gridrpc.AttachedGrid, tmp_path: Path) -> None:
    key = grid.detach(not_today, f"{tmp_path}", 5, retries=1, retry_on=ValueError, cores=2)
    assert grid.fetch(key) == 5
    with pytest.raises(ValueError, match="`cores` is 0"):
        grid.detach(abs, -1, cores=0)


def test_fetch_has_a_time_limit(grid: gridrpc.AttachedGrid, tmp_path: Path) -> None:
    key = grid.detach(waits, f"{tmp_path}", 10)
    for seconds in (0, 0.1):
        with pytest.raises(TimeoutError, match=f"`{key}`: the next result is not there in time"):
            grid.fetch(key, timeout=seconds)
    (tmp_path / "gate").touch()
    assert grid.fetch(key, timeout=LONG) == 10


def test_fetch_is_for_calls(grid: gridrpc.AttachedGrid) -> None:
    grid.submit("many", abs, range(3))
    with pytest.raises(ValueError, match="`many` is a map of 3 items: use `results`"):
        grid.fetch("many")


def test_calls_outlive_the_process_of_the_session(tmp_path: Path, home: Path) -> None:
    with gridrpc.attach("calls") as grid:
        done = grid.detach(noted, f"{tmp_path}", 1)
        assert grid.fetch(done) == 10
        repeatable = grid.detach(waits, f"{tmp_path}", 11, idempotent=True)
        other = grid.detach(waits, f"{tmp_path}", 12)
        assert until(lambda: sorted(ran(tmp_path)) == [1, 11, 12])
        kill_session()
        with pytest.raises(SessionEnded, match="is stale"):
            grid.fetch(repeatable)
    with gridrpc.attach("calls", ended=True) as left:
        assert left.fetch(done) == 10
        with pytest.raises(SessionEnded, match=f"has no result of `{repeatable}`"):
            left.fetch(repeatable)
        with pytest.raises(SessionEnded, match="takes no maps"):
            left.detach(abs, -1)
    (tmp_path / "gate").touch()
    command("start", "calls", cwd=home)
    with gridrpc.attach("calls") as grid:
        assert grid.fetch(done) == 10
        assert grid.fetch(repeatable) == 11
        with pytest.raises(OutcomeUnknown, match="may have run"):
            grid.fetch(other)
        assert sorted(ran(tmp_path)) == [1, 11, 11, 12]
        for key in (done, repeatable, other):
            grid.forget(key)


def test_an_earlier_version_of_a_session_continues(tmp_path: Path, home: Path) -> None:
    """Its plans were pickled under another name."""
    with gridrpc.attach("calls") as grid:
        assert list(grid.map("work", noted, *at(tmp_path, range(5)))) == [0, 10, 20, 30, 40]
    command("stop", "calls", cwd=home)
    file = registry.folder_of("calls") / "work.function"
    plan = pickle.loads(file.read_bytes())
    assert isinstance(plan, MapPlan)
    # Names of classes are lines in this version of pickles.
    new, old = b"cgridrpc._session.protocol\nMapPlan\n", b"cgridrpc._session.kept\nPlan\n"
    contents = pickle.dumps(plan, 2)
    assert new in contents
    file.write_bytes(contents.replace(new, old))
    command("start", "calls", cwd=home)
    with gridrpc.attach("calls") as grid:
        results = grid.map("work", noted, *at(tmp_path, range(8)))
        assert list(results) == [10 * n for n in range(8)]
        grid.forget("work")
    assert sorted(ran(tmp_path)) == list(range(8))


#: A program that begins when there is a file `go`, and makes its items slowly.
SENDS = """
import gridrpc, noting, os, time

def items():
    for n in range(200):
        time.sleep(0.002)
        yield n

with gridrpc.attach("calls") as grid:
    print("there", flush=True)
    while not os.path.exists("go"):
        time.sleep(0.001)
    print(sum(grid.map("work", noting.noted, [os.getcwd()] * 200, items())))
"""


def test_two_programs_send_the_same_map_at_a_time(
    grid: gridrpc.AttachedGrid, tmp_path: Path
) -> None:
    programs = [start_script(tmp_path, SENDS) for _ in range(2)]
    for program in programs:
        assert program.stdout is not None
        assert program.stdout.readline() == "there\n"
    assert int(command("show", "calls", cwd=tmp_path).split("attached: ")[1].split()[0]) == 3
    (tmp_path / "go").touch()
    for program in programs:
        assert program.communicate(timeout=LONG)[0] == f"{10 * sum(range(200))}\n"
    assert sorted(ran(tmp_path)) == list(range(200))
    assert grid.maps["work"]["items"] == 200


@pytest.mark.parametrize("restarted", [False, True])
def test_a_reader_notices_that_another_program_removes_the_map(
    grid: gridrpc.AttachedGrid, tmp_path: Path, restarted: bool
) -> None:
    grid.submit("work", waits, *at(tmp_path, range(20)), chunk=1)
    results = grid.results("work")
    assert [next(results) for _ in range(10)] == list(range(10))
    with gridrpc.attach("calls") as other:
        if restarted:
            other.submit("work", noted, *at(tmp_path, range(20)), if_changed="restart")
        else:
            other.forget("work")
    with pytest.raises(SessionError, match="was removed, or started over, by another program"):
        next(results)


def test_a_program_that_is_killed_while_it_sends_leaves_whole_requests(
    grid: gridrpc.AttachedGrid, tmp_path: Path
) -> None:
    program = start_script(tmp_path, SENDS.replace("0.002", "0.02"))
    (tmp_path / "go").touch()
    assert until(lambda: len(ran(tmp_path)) > 0)
    program.kill()
    program.communicate(timeout=LONG)
    sent = grid.maps["work"]["items"]
    assert 0 < sent < 200
    assert not grid.maps["work"]["complete"]
    assert list(grid.map("work", noted, *at(tmp_path, range(200)))) == [10 * n for n in range(200)]
    assert sorted(ran(tmp_path)) == list(range(200))

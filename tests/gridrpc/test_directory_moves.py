"""Calls through a directory whose servers end, stop taking calls, or refuse them."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import gridrpc
from directories import Site
from grids import CompileIdl
from processes import LONG, until
from servers import Server, began, program

#: Functions that note that they begin. `step` is slow enough that servers end between its calls.
IDL = r"""
Module where;
Globals {
    #include <fcntl.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <unistd.h>
    static void note(const char *log, long n)
    {
        char line[32];
        int file = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        int length = snprintf(line, sizeof line, "%ld\n", n);
        if (write(file, line, length) != length) abort();
        close(file);
    }
}
Define scale(IN int n, IN double a, INOUT double x[n])
    { for (int i = 0; i < n; i++) x[i] *= a; }
Define step(IN string log, IN long n, OUT long r[1])
    { note(log, n); usleep(5000); *r = n; }
Define again(IN string log, IN long n, OUT long r[1]) Idempotent
    { note(log, n); usleep(5000); *r = n; }
Define hold(IN string log, IN string gate, IN long n, OUT long r[1])
    { note(log, n); while (access(gate, F_OK)) usleep(1000); *r = n; }
Define count(IN string log, IN long n, INOUT double x[n])
    { note(log, n); usleep(5000); for (long i = 0; i < n; i++) x[i] += 1; }
"""
#: Calls of a map.
CALLS = 200

pytestmark = pytest.mark.usefixtures("no_modules_here")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    with made.stack:
        yield made


@pytest.fixture
def steps(compile_idl: CompileIdl) -> Path:
    return compile_idl(IDL)


@pytest.fixture
def servers(site: Site, steps: Path) -> list[Server]:
    return [site.serve(name, steps) for name in ("one", "two", "three")]


def kill(server: Server) -> None:
    os.kill(server.pid, signal.SIGKILL)
    server.process.wait(timeout=LONG)


def drain(server: Server) -> None:
    program("server", "-c", server.file, "drain")


def results_of(
    grid: gridrpc.Grid, function: str, log: Path, end: Callable[[], None], **options: Any
) -> list[Any]:
    """Results and errors of all calls. `end`: happens to a server after a quarter of them."""
    items = [(str(log), number) for number in range(CALLS)]
    found = []
    for value in grid.starmap(function, items, return_exceptions=True, **options):
        found.append(value)
        if len(found) == CALLS // 4:
            end()
    return found


@pytest.mark.parametrize("chunk", [1, "auto"])
def test_a_map_loses_only_what_a_killed_server_ran(
    site: Site, servers: list[Server], tmp_path: Path, chunk: Any
) -> None:
    log = tmp_path / "log"
    grid = site.grid(policy="round-robin")
    found = results_of(grid, "where/step", log, lambda: kill(servers[0]), chunk=chunk)
    assert len(found) == CALLS
    lost = [number for number, value in enumerate(found) if isinstance(value, Exception)]
    assert [int(value[0]) for value in found if not isinstance(value, Exception)] == [
        number for number in range(CALLS) if number not in lost
    ]
    assert {type(found[number]) for number in lost} <= {gridrpc.WorkerLost}
    # Of some 50 calls, the server had the one that ran and those that were sent ahead: more of
    # them if answers come late. Nothing has run twice, and all but what is lost once.
    assert len(lost) < 20
    counts = Counter(began(log))
    assert set(counts.values()) == {1}
    assert set(range(CALLS)) - set(counts) <= set(lost)


def test_a_map_of_an_idempotent_function_loses_nothing(
    site: Site, servers: list[Server], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    grid = site.grid(policy="round-robin")
    found = results_of(grid, "where/again", log, lambda: kill(servers[0]))
    assert [int(value[0]) for value in found] == [*range(CALLS)]
    counts = Counter(began(log))
    assert set(counts) == set(range(CALLS))
    assert sum(counts.values()) <= CALLS + 1


@pytest.mark.parametrize("end", [drain, Server.stop])
def test_a_map_loses_nothing_when_a_server_ends_in_order(
    site: Site, servers: list[Server], tmp_path: Path, end: Callable[[Server], None]
) -> None:
    log = tmp_path / "log"
    grid = site.grid(policy="round-robin")
    found = results_of(grid, "where/step", log, lambda: end(servers[0]))
    lost = [value for value in found if isinstance(value, Exception)]
    counts = Counter(began(log))
    assert set(counts.values()) == {1}
    # A server that stops ends the call that it runs.
    assert len(lost) <= (0 if end is drain else 1)
    assert len(counts) >= CALLS - len(lost)


def test_calls_that_wait_for_a_stopped_process_move(
    site: Site, servers: list[Server], tmp_path: Path
) -> None:
    """The process of a server hangs: its machine is gone, or its network."""
    log, gate = tmp_path / "log", tmp_path / "gate"
    grid = site.grid(policy="round-robin")
    held = [grid.submit("where/hold", str(log), str(gate), number) for number in range(3)]
    assert until(lambda: sorted(began(log)) == [0, 1, 2])
    waiting = [grid.submit("where/step", str(log), number) for number in range(10, 40)]
    os.kill(servers[0].pid, signal.SIGSTOP)
    assert until(lambda: psutil.Process(servers[0].pid).status() == psutil.STATUS_STOPPED)
    try:
        gate.touch()
        assert [int(call.result(LONG)[0]) for call in waiting] == [*range(10, 40)]
        assert set(Counter(began(log)).values()) == {1}
    finally:
        os.kill(servers[0].pid, signal.SIGCONT)
    ended = [call.exception(LONG) for call in held]
    assert sum(error is not None for error in ended) <= 1


def test_a_call_that_waits_moves_and_keeps_its_interface(
    site: Site, steps: Path, tmp_path: Path
) -> None:
    log, gate = tmp_path / "log", tmp_path / "gate"
    first = site.serve("one", steps)
    grid = site.grid()
    held = grid.submit("where/hold", str(log), str(gate), 1)
    x = np.ones(3)
    waiting = grid.submit("where/count", str(log), 3, x)
    assert until(lambda: began(log) == [1])
    assert not waiting.done()
    assert repr(waiting) == "<gridrpc.Call of where/count: queued>"
    site.serve("two", steps)
    kill(first)
    waiting.result(LONG)
    assert x.tolist() == [2, 2, 2]
    assert isinstance(held.exception(LONG), gridrpc.WorkerLost)
    assert sorted(began(log)) == [1, 3]


def test_calls_end_once_wherever_they_are_awaited(
    site: Site, servers: list[Server], tmp_path: Path
) -> None:
    log, gate = tmp_path / "log", tmp_path / "gate"
    grid = site.grid(policy="round-robin")
    calls = [grid.submit("where/hold", str(log), str(gate), number) for number in range(9)]
    assert until(lambda: len(began(log)) == 3)
    ended: list[gridrpc.Call[Any]] = []
    for call in calls:
        call.add_done_callback(ended.append)

    async def wait_for_all() -> list[Any]:
        return await asyncio.gather(*calls, return_exceptions=True)

    kill(servers[0])
    gate.touch()
    done, not_done = concurrent.futures.wait(calls, timeout=LONG)
    assert (len(done), len(not_done)) == (9, 0)
    assert set(gridrpc.as_completed(calls)) == set(calls)
    assert len(gridrpc.wait(calls).done) == 9
    lost = [one for one in asyncio.run(wait_for_all()) if isinstance(one, Exception)]
    assert len(lost) <= 1
    assert until(lambda: len(ended) == 9)
    assert len(set(ended)) == 9
    assert len(began(log)) == 9


@pytest.mark.usefixtures("servers")
def test_cancelled_calls_do_not_move(site: Site, tmp_path: Path) -> None:
    log, gate = tmp_path / "log", tmp_path / "gate"
    grid = site.grid(policy="round-robin")
    calls = [grid.submit("where/hold", str(log), str(gate), number) for number in range(6)]
    assert until(lambda: len(began(log)) == 3)
    assert all(call.cancel() for call in calls[3:])
    assert all(call.cancelled() for call in calls[3:])
    assert not calls[3].cancel()
    with pytest.raises(gridrpc.CallCancelled):
        calls[3].result()
    late = grid.function("where/hold").submit(str(log), str(gate), 7, deadline=0.3)
    with pytest.raises(gridrpc.DeadlineExceeded):
        late.result(LONG)
    grid.close()
    assert {type(call.exception(LONG)) for call in calls[:3]} <= {
        gridrpc.CallCancelled, gridrpc.GridClosed
    }  # fmt: skip
    assert len(began(log)) == 3

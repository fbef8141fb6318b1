"""Results that module functions on other hosts need go from host to host, without the client."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gridrpc
from gridbench_testbed.links.sshd import Rig
from gridrpc import Grid
from grids import CompileIdl
from hosts import agents, nothing_is_left, on_hosts, rig_of, server, signal_all
from processes import LONG
from test_hosts_exchange import through_client
from test_hosts_results import SMALL

#: Results stay on a host if a call that needs them is submitted before they are there.
IDL = r"""
Module moves;
Globals {
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
}
Define ones(IN long n, IN double value, OUT double x[n])
    { usleep(200000); for (long i = 0; i < n; i++) x[i] = value; }
Define again(IN long n, IN double value, OUT double x[n]) Idempotent
    { usleep(200000); for (long i = 0; i < n; i++) x[i] = value; }
Define parts(IN long n, IN double value, OUT double low[n], OUT double few[3], OUT double high[n])
    {
        usleep(200000);
        for (long i = 0; i < n; i++) { low[i] = -value; high[i] = value; }
        for (long i = 0; i < 3; i++) few[i] = i;
    }
Define plus(IN long n, IN double a[n], IN double b[n], OUT double x[n])
    { usleep(200000); for (long i = 0; i < n; i++) x[i] = a[i] + b[i]; }
Define facts(IN long n, IN double x[n], OUT double mean[1], OUT string host)
    {
        char name[256];
        *mean = 0;
        for (long i = 0; i < n; i++) *mean += x[i];
        *mean /= n;
        gethostname(name, sizeof name);
        *host = strdup(name);
    }
"""
N = 1_000_000


def submit(grid: Grid, name: str, *arguments: Any, server: str) -> gridrpc.Call[Any]:
    return grid.function(name, server=server).submit(*arguments)


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with rig_of(2) as rig:
        yield rig
        assert nothing_is_left(rig)


@pytest.fixture(scope="module")
def hosts(
    rig: Rig, tmp_path_factory: pytest.TempPathFactory, compile_idl: CompileIdl
) -> Iterator[Grid]:
    """Two workers on each of two hosts, and one on this machine."""
    tables = [server(rig, f"node{node}", name=f"at{node}") for node in (1, 2)]
    folder, modules = tmp_path_factory.mktemp("grid"), [compile_idl(IDL)]
    with on_hosts(folder, *tables, workers=1, modules=modules) as grid:
        for place in ("at1", "at2"):  # they have the module
            assert facts(grid, np.zeros(1), place) == (0.0, place.replace("at", "node"))
        yield grid


def facts(grid: Grid, x: Any, place: str) -> tuple[float, str]:
    """The mean of an array, and where it was computed."""
    mean, host = submit(grid, "moves/facts", x, server=place).result(LONG)
    return float(mean[0]), host


def test_an_array_goes_to_the_host_of_the_call_that_needs_it(hosts: Grid, rig: Rig) -> None:
    before = through_client(rig)
    made = submit(hosts, "moves/ones", N, 2.0, server="at1")
    assert facts(hosts, made, "at2") == (2.0, "node2")
    # It is there now, and where it was made.
    both = submit(hosts, "moves/plus", made, made, server="at2")
    assert facts(hosts, both, "at1") == (4.0, "node1")
    assert facts(hosts, made, "at1") == (2.0, "node1")
    assert through_client(rig) - before < SMALL
    assert made.result(LONG).mean() == 2.0
    assert through_client(rig) - before > 8 * N


def test_one_of_several_results_goes_alone_to_its_parameter(hosts: Grid, rig: Rig) -> None:
    before = through_client(rig)
    made = submit(hosts, "moves/parts", N, 3.0, server="at1")
    assert facts(hosts, made.output("high"), "at2") == (3.0, "node2")
    assert facts(hosts, made.output("low"), "at1") == (-3.0, "node1")
    # Small results have come with the answer.
    assert facts(hosts, made.output("few"), "at2") == (1.0, "node2")
    none = submit(hosts, "moves/plus", made.output("high"), made.output("low"), server="at2")
    assert facts(hosts, none, "at2") == (0.0, "node2")
    assert through_client(rig) - before < SMALL


def test_arrays_of_several_hosts_meet_on_one(hosts: Grid, rig: Rig) -> None:
    before = through_client(rig)
    one, other = (submit(hosts, "moves/ones", N, float(n), server=f"at{n}") for n in (1, 2))
    both = submit(hosts, "moves/plus", one, other, server="at2")
    assert facts(hosts, both, "at2") == (3.0, "node2")
    assert through_client(rig) - before < SMALL


def test_between_a_host_and_this_machine(hosts: Grid, rig: Rig) -> None:
    before = through_client(rig)
    made = submit(hosts, "moves/ones", N, 5.0, server="at1")
    here = submit(hosts, "moves/plus", made, made, server="localhost")
    assert here.result(LONG).mean() == 10.0
    assert 8 * N < through_client(rig) - before < 8 * N + SMALL
    made = submit(hosts, "moves/ones", N, 6.0, server="localhost")
    assert facts(hosts, made, "at2") == (6.0, "node2")


def test_a_host_that_cannot_be_reached_gets_arrays_through_the_client(
    hosts: Grid, rig: Rig
) -> None:
    rig.run(1, f"ip route add unreachable {rig.address(2)}/32")
    try:
        before = through_client(rig)
        made = submit(hosts, "moves/parts", N, 7.0, server="at1")
        assert facts(hosts, made.output("high"), "at2") == (7.0, "node2")
        assert through_client(rig) - before > 8 * N
    finally:
        rig.run(1, f"ip route del unreachable {rig.address(2)}/32")


@pytest.mark.parametrize("function", ["again", "ones"])
def test_the_host_of_an_array_is_lost(hosts: Grid, rig: Rig, function: str) -> None:
    hosts.wait_until_ready(LONG)
    made = submit(hosts, f"moves/{function}", N, 8.0, server="at1")
    assert facts(hosts, made, "at1") == (8.0, "node1")
    signal_all(agents(rig, 1), signal.SIGKILL)
    used = submit(hosts, "moves/facts", made, server="at2")
    if function == "again":
        assert used.result(LONG)[0] == [8.0]
    else:
        failed = used.exception(LONG)
        assert isinstance(failed, gridrpc.DependencyFailed), failed
        assert isinstance(made.exception(LONG), gridrpc.WorkerLost)
    hosts.wait_until_ready(LONG)

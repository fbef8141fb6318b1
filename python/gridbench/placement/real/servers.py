"""The servers of a scenario, in network namespaces behind its links, and their directory."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from gridbench.bench.programs import new_folder, run_compiler
from gridbench.errors import InputError
from gridbench.formats import counted
from gridbench.placement.scenario import PlacementScenario, ScenarioServer
from gridbench_testbed.daemons import free_ports
from gridbench_testbed.links.network import require_links
from gridbench_testbed.links.shaped_link import LinkedNode, ShapedLink
from gridbench_testbed.services.gridrpc_server import (
    DirectoryTable,
    GridrpcDirectory,
    GridrpcServer,
)

MODULE = "placement"
SHORTEST_INTERVAL = 0.1
"""Seconds between two announcements of a server."""
_MOST_WORKERS = 256
_SPEED = "GRIDBENCH_PLACEMENT_SPEED"
_HEAD = f"""\
Module {MODULE};

Globals {{
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* As long as a server of this speed computes. */
static void work(double operations)
{{
    double seconds = operations / atof(getenv("{_SPEED}"));
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    long nanoseconds = until.tv_nsec + (long)(fmod(seconds, 1.0) * 1e9);
    until.tv_sec += (time_t)seconds + nanoseconds / 1000000000;
    until.tv_nsec = nanoseconds % 1000000000;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}}
}}
"""
_FUNCTION = """
Define {name}(IN long n, IN uint8 data[n], IN long m, OUT uint8 result[m])
    "Waits as long as a server of its speed computes."
    CalcOrder {operations!r}
{{
    memcpy(result, data, n < m ? n : m);
    work({operations!r});
}}
"""


def function_of(number: int) -> str:
    """The module's name for a function of the scenario."""
    return f"{MODULE}/function{number}"


def check_real(scenario: PlacementScenario) -> None:
    """InputError for a scenario that can only be simulated, or without the right to make links."""
    require_links()
    workers = sum(one.slots for one in scenario.each_server())
    if len(scenario.clients) > 1 or any(one.links for one in scenario.servers):
        raise InputError(
            "the clients of a real run are on one machine, and share its link to each server",
            remedy="give one group of clients, and servers without `links`",
        )
    if workers > _MOST_WORKERS:
        raise InputError(
            f"the servers have {counted(workers, 'core')}, and a real run {_MOST_WORKERS} at most",
            remedy="lower `count` or `cores`",
        )
    if scenario.interval < SHORTEST_INTERVAL:
        raise InputError(
            f"servers announce themselves every {SHORTEST_INTERVAL} s at most",
            remedy="set `interval` of the scenario, or simulate it",
        )


class PlacementServers:
    """Servers of the speeds and links of a scenario that announce themselves, while active.

    A function takes as long as its operations at the speed of its server. It sleeps meanwhile, so
    any number of servers fit on a machine; data, links and calls are real.
    """

    def __init__(self, scenario: PlacementScenario) -> None:
        check_real(scenario)
        self._scenario = scenario
        self._stack = ExitStack()
        self._servers: list[GridrpcServer] = []
        self.addresses: dict[str, int] = {}
        """Where clients connect, and the number of the server."""
        self._directory: GridrpcDirectory | None = None

    @property
    def directory(self) -> str:
        """URL of the directory, for clients."""
        assert self._directory is not None
        return self._directory.client_url

    def check(self) -> None:
        """RuntimeError when a server or the directory has ended."""
        assert self._directory is not None
        for one in (self._directory, *self._servers):
            one.check()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            try:
                self._start(stack)
            except (RuntimeError, TimeoutError) as error:
                raise InputError(f"the servers do not start: {error}") from None
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _start(self, stack: ExitStack) -> None:
        folder = new_folder()
        interface = folder / f"{MODULE}.idl"
        functions = [
            _FUNCTION.format(name=f"function{number}", operations=one.operations)
            for number, one in enumerate(self._scenario.functions)
        ]
        interface.write_text("".join([_HEAD, *functions]), encoding="utf-8")
        run_compiler([Path(sys.prefix) / "bin" / "gridrpc", "compile", interface, "-o", folder])
        servers = self._scenario.each_server()
        nodes = [stack.enter_context(LinkedNode(_link(one))) for one in servers]
        addresses = [one.client_address for one in nodes]
        self._directory = stack.enter_context(GridrpcDirectory(addresses))
        for number, (one, node) in enumerate(zip(servers, nodes, strict=True)):
            (relayed,) = free_ports(1) if node.link.round_trip else (0,)
            server = GridrpcServer(
                [folder / f"{MODULE}.so"],
                one.slots,
                tls=True,
                address=node.address,
                namespace=node.namespace,
                name=one.name,
                authority=self._directory.authority,
                announced=DirectoryTable(
                    directory=self._directory.url(node.client_address),
                    interval=self._scenario.interval,
                    speed=one.announced,
                    port=relayed,
                ),
                variables={_SPEED: repr(one.call_speed)},
            )
            self._servers.append(stack.enter_context(server))
            if relayed:
                node.delayed(server.port, relayed)
            self.addresses[f"{node.address}:{relayed or server.port}"] = number
        self._directory.wait_for(len(servers))


def _link(server: ScenarioServer) -> ShapedLink:
    return ShapedLink(server.link.rate, 2 * server.link.latency)

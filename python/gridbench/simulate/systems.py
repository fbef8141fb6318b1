"""The systems that can be simulated without a file of one's own.

Every parameter is told with its source, and what nobody has measured is called an assumption.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from gridbench.errors import InputError
from gridbench.model.pipeline import Link, Manager, PipelineParameters
from gridbench.model.profiles import Given, ninfg, symphony
from gridbench.simulate.start_up import Batch, OneByOne, StartUp, Waves
from gridbench.simulate.throttling import Throttling

GIGABIT = 1e9
"""Bits per second, of the links of those days."""
ASSUMPTION = "assumption"
"""How the source of what nobody has measured begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """How a system behaves on a network, and where that is known from."""

    name: str
    title: str
    parameters: PipelineParameters
    start_up: StartUp
    link: float = GIGABIT
    """Bits per second of the network's links at which the rates hold; with others they are as large
    a part of them."""
    one_host: bool = False
    """There are no links: client and workers are on one machine."""
    files_per_task: bool = False
    """The shared data goes with every task, not once to each worker."""
    resolution: float = 0.0
    """Seconds: stamps are known to so much only. 0: exactly."""
    throttling: Throttling | None = None
    """How its manager defends its memory."""
    measured_cores: int | None = None
    """The most cores with which its parameters were measured; None: not known."""
    given: tuple[Given, ...] = ()
    """The figures that it is made of, with their sources."""

    def on_link(self, link: float) -> System:
        """The same on a network whose links have so many bits per second. InputError if it knows
        none."""
        self._refuse_links()
        factor = link / self.link
        known = self.parameters
        manager = known.manager and Manager(
            inward=_faster(known.manager.inward, factor),
            outward=_faster(known.manager.outward, factor),
        )
        parameters = replace(
            known,
            to_workers=_faster(known.to_workers, factor),
            from_workers=_faster(known.from_workers, factor),
            manager=manager,
            shared_rate=known.shared_rate * factor,
        )
        return replace(self, parameters=parameters, link=link)

    def behind(self, node_link: float) -> System:
        """The same with workers whose own links have so many bits per second. InputError if there
        are none."""
        self._refuse_links()
        known, each = self.parameters, node_link / 8
        parameters = replace(
            known,
            to_workers=replace(known.to_workers, each=each),
            from_workers=replace(known.from_workers, each=each),
        )
        return replace(self, parameters=parameters)

    def _refuse_links(self) -> None:
        if self.one_host:
            raise InputError(
                f"{self.name} was measured on one machine, where there are no links",
                remedy="leave out --link and --node-link, or take another profile",
            )


def _faster(link: Link, factor: float) -> Link:
    return replace(link, rate=link.rate * factor)


def system(name: str) -> System:
    """The built-in system of this name. InputError if there is none."""
    if name not in SYSTEMS:
        raise InputError(
            f"there is no profile `{name}`",
            remedy=f"take one of {', '.join(SYSTEMS)}, or the name of a file (.toml)",
        )
    return SYSTEMS[name]()


# Platform Symphony. The second instance comes after the balance interval, and others in steps.

_FIRST = 0.479117
_SECOND = 5.08
_STEP = 0.5
_WAVE = 100
_MEMORY = 3.0 * 2**30
_DISK = 60.0 * 2**20
_PROACTIVE = 0.5
_SLOWER = 1.1


def _symphony() -> System:
    profile = symphony()
    return System(
        name="symphony",
        title="Platform Symphony: a central manager, data by two hops",
        parameters=profile.parameters,
        start_up=Waves(first=_FIRST, second=_SECOND, step=_STEP, most_at_once=_WAVE),
        throttling=Throttling(
            memory=_MEMORY, disk=_DISK, slower=_SLOWER, proactive=_PROACTIVE, until_done=True
        ),
        measured_cores=400,
        given=(
            *profile.given,
            Given("second instance", _SECOND, "s", "5.5.6-1: starts of 10 tasks, less a step"),
            Given(
                "instances in a step",
                _WAVE,
                "",
                f"{ASSUMPTION}; all but two of 100 come in one, and 400 need more than one (5.5.4)",
            ),
            Given(
                "memory of the manager",
                _MEMORY / 2**30,
                "GB",
                f"{ASSUMPTION}: the address space of a process of 32 bits, as which it ran (5.4.1 "
                "(10)); the undisturbed 1,200 tasks of 1 MB fill 1.2 GB of it",
            ),
            Given(
                "throttling begins at",
                _PROACTIVE,
                "of memory",
                f"{ASSUMPTION}; then 0.6, 0.75 and 0.85 of it in use, as in application profiles "
                "of Symphony (50, 40, 25 and 15 % of the address space left)",
            ),
            Given("disk for paging", _DISK / 2**20, "MB/s", f"{ASSUMPTION}: a disk of those days"),
            Given(
                "slower, in each of the first steps",
                _SLOWER,
                "x",
                f"{ASSUMPTION}: 570 Mbit/s of single tasks against 519 of 300 of 10 MB (slides)",
            ),
        ),
    )


# Ninf-G with Grid Engine: allocation by the batch system, then client and nodes alone.


def _ninfg() -> System:
    profile = ninfg()
    return System(
        name="ninfg",
        title="Ninf-G with Grid Engine: batch allocation, then client to node",
        parameters=profile.parameters,
        start_up=Batch(constant=4.2, per_worker=0.15),
        measured_cores=100,
        given=(
            *profile.given,
            Given("allocation", 4.2, "s", "text of 5.5.3"),
            Given("allocation, for each core", 0.15, "s", "text of 5.5.3"),
        ),
    )


# Condor. Of its own figures the sources give none but the resolution of its log; what it does is
# theirs: matching, then for each task a process and all files, from one machine to all others.

_MATCHING = 10.0
_MATCH = 0.01
_JOB = 0.08
_PROCESS = 0.5


def _condor() -> System:
    star = Link(rate=ninfg().parameters.to_workers.rate, sharing="evenly")
    return System(
        name="condor",
        title="Condor: matching, then a process and all files for each task",
        parameters=PipelineParameters(
            to_workers=star,
            from_workers=star,
            shared_rate=star.rate,
            submit_cost=_JOB,
            start_latency=_PROCESS,
        ),
        start_up=OneByOne(constant=_MATCHING, per_worker=_MATCH),
        files_per_task=True,
        resolution=1.0,
        given=(
            Given(
                "matching",
                _MATCHING,
                "s",
                f"{ASSUMPTION}: half of the 20 s that lie between two negotiation cycles at least "
                "(manual of condor_reschedule); the report says seconds",
            ),
            Given("matching, for each core", _MATCH, "s", ASSUMPTION),
            Given(
                "start of a task, one after another",
                _JOB,
                "s",
                "HTCondor 23.9 on two cores: 100 tasks of 2 s take 20 s, of which 10 s matching",
            ),
            Given("process of a task", _PROCESS, "s", ASSUMPTION),
            Given(
                "all transfers together, from one machine",
                835.0,
                "Mbit/s",
                f"{ASSUMPTION}: as Ninf-G on the same network",
            ),
            Given("stamps", 1.0, "s", "its log (report)"),
        ),
    )


# gridrpc, with native workers. What calls cost is from this project's own measurements on one
# machine (docs/performance.md); that many nodes behave as that one is not known.

_FRAME = 1448 / 1538
_ETHERNET = _FRAME * GIGABIT / 8
_CALL = 1.5e-6
_LATENCY = 1e-4
_START, _START_EACH = 0.012, 0.00043


def _gridrpc() -> System:
    link = Link(rate=_ETHERNET, sharing="evenly")
    return System(
        name="gridrpc",
        title="gridrpc with native workers over TCP: client to worker",
        parameters=PipelineParameters(
            manager=Manager(inward=Link(), outward=Link()),
            to_workers=link,
            from_workers=link,
            shared_rate=_ETHERNET,
            submit_cost=_CALL,
            retrieve_cost=_CALL,
            start_latency=_LATENCY,
            return_latency=_LATENCY,
        ),
        start_up=OneByOne(constant=_START, per_worker=_START_EACH),
        measured_cores=100,
        given=(
            Given(
                "all transfers in one direction",
                _ETHERNET * 8 / 1e6,
                "Mbit/s (of 1,000,000 bits)",
                "1 Gbit/s, of which frames of 1,500 bytes leave 1448/1538 for data",
            ),
            Given(
                "client submits a task, and takes its result",
                2 * _CALL,
                "s",
                "docs/performance.md: 333,000 calls per second, on one machine",
            ),
            Given("on the way, there and back", 2 * _LATENCY, "s", f"{ASSUMPTION}: Ethernet"),
            Given("first worker", _START, "s", "docs/performance.md: 2 native workers in 13 ms"),
            Given(
                "each further worker",
                _START_EACH,
                "s",
                "docs/performance.md: 100 native workers in 55 ms; all of them on one machine",
            ),
        ),
    )


SYSTEMS: dict[str, Callable[[], System]] = {
    "symphony": _symphony,
    "ninfg": _ninfg,
    "condor": _condor,
    "gridrpc": _gridrpc,
}
"""By the name that one asks for them with."""

"""From the command line to what is asked for, and whether it can be had at all."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gridbench.datagrid import presets
from gridbench.datagrid.engines.engine import Engine, find_engine, own_engines
from gridbench.datagrid.memory import capacity, check_machine, check_members
from gridbench.datagrid.parameters import BYTES_PER_KB, LIMITS, Parameters
from gridbench.datagrid.plan import plan_of
from gridbench.datagrid.presets import FIRST_LOOK, Choice
from gridbench.datagrid.request import MB, Offered, Request, WarmUp
from gridbench.datagrid.setup_file import read_setup
from gridbench.datagrid.workload import Workload
from gridbench.engines.servers import names_in
from gridbench.errors import InputError
from gridbench.formats import as_given, size
from gridbench.hosts.where import chosen
from gridbench.machine.policy import Policy
from gridbench.printing import Printing
from gridbench.quantities import parse_list, parse_size
from gridbench.run.machine import available_memory
from gridbench.workload.numbers import parse_real, parse_whole, shown

DEFAULT_ENGINE = "embedded"
ALL = "all"
_LEAST_MEMORY = 64 * MB  # no Java process with a product in it has less
_HIGHEST_RATE = 1e9
_LONGEST_WARM_UP = 3600.0

Given = Mapping[str, Any]
"""What click has read, by the names of its parameters."""


def request_of_setup(
    setup: Path | None, given: Given, *, policy: Policy, printing: Printing
) -> Request:
    """One case: that of a set-up file or, without one, a small one for the first look."""
    workload = FIRST_LOOK if setup is None else Workload(parameters=read_setup(setup))
    name = "data" if setup is None else f"data-{setup.stem}"
    return _request(name, lambda _: [workload], given, policy, printing)


def request_of_scenarios(
    names: Sequence[str], given: Given, *, full: bool, policy: Policy, printing: Printing
) -> Request:
    """The cases of scenarios; those that do not fit into the members are made smaller, if they are
    not to be had in `full`."""
    numbers, choice = presets.parse_scenarios(names), _choice(given)

    def workloads(request: Request) -> list[Workload]:
        def fits(own: Parameters) -> int:
            return min(
                capacity(own, one.described, request.backups, _memory(request, one, own))
                for one in request.engines
            )

        return [
            workload
            for number in numbers
            for workload in presets.scenario(number, choice, None if full else fits)
        ]

    name = f"data-scenario-{'-'.join(map(str, numbers))}"
    return _request(name, workloads, given, policy, printing)


def request_of_ycsb(
    names: Sequence[str], given: Given, *, records: int, policy: Policy, printing: Printing
) -> Request:
    """Core workloads of YCSB."""
    letters, choice = presets.parse_ycsb(names), _choice(given)
    found = [one for letter in letters for one in presets.ycsb(letter, choice, records=records)]
    return _request(f"data-ycsb-{''.join(letters)}", lambda _: found, given, policy, printing)


def _request(
    name: str,
    workloads: Callable[[Request], Sequence[Workload]],
    given: Given,
    policy: Policy,
    printing: Printing,
) -> Request:
    """All of it, checked. `workloads` may depend on all other choices."""
    asked = Request(
        name=name,
        engines=_engines(given["engines"] or (DEFAULT_ENGINE,)),
        workloads=(),
        offered=tuple(parse_rates(given["open_rates"])),
        updates=given["updates"],
        kill=parse_kill(given["kill"]) if given["kill"] is not None else (),
        warm_up=_warm_up(given["warm"], without=given["no_warm"]),
        processes=given["processes"],
        member_memory=_member_memory(given["member_memory"]),
        available=available_memory(),
        backups=given["backups"],
        where=chosen(
            hosts=given["hosts"],
            grid=given["grid"],
            servers=names_in(given["servers"]),
            emulate=given["emulate"],
            nodes=given["nodes"],
            patience=given["start_timeout"],
        ),
        repeats=given["rounds"],
        folder=given["out"],
        fresh=given["fresh"],
        retry_failed=given["retry_failed"],
        policy=policy,
        printing=printing,
    )
    request = replace(asked, workloads=tuple(workloads(asked)))
    check_memory(request)
    return request


def check_memory(request: Request) -> None:
    """InputError if a case does not fit into its members, or into this machine."""
    engines = {one.name: one.described for one in request.engines}
    for one in plan_of(request).wanted:
        described, memory = engines[one.engine], request.memory_of(one.members)
        if described.members:
            check_members(one, described, request.backups, memory)
        if not request.elsewhere:
            check_machine(one, described, request.backups, memory, request.available)


# ---- The options


def parse_rates(words: Sequence[str]) -> list[Offered]:
    """Rates of `--open`, such as `5000`, `1000,2000` or `50%`. InputError for what is none."""
    found = []
    for text in [part for word in words for part in parse_list("--open", word, lambda _, x: x)]:
        share = text.endswith("%")
        try:
            value = parse_real(text.removesuffix("%").rstrip(), 0.0, _HIGHEST_RATE)
            if value == 0:
                raise ValueError("must be above 0")
        except ValueError as error:
            raise InputError(
                f"--open: `{shown(text)}` is no rate: it {error}",
                remedy="give operations per second, such as 5000, or a share of what the closed"
                " loop does, such as 50%",
            ) from None
        found.append(Offered(share=value / 100) if share else Offered(rate=value))
    return list(dict.fromkeys(found))


def parse_kill(text: str) -> tuple[int, ...]:
    """Members of `--kill-node`, such as `1` or `1,2`, in order. InputError for what is none."""
    most = int(LIMITS["MNodes"][1]) - 1
    found = parse_list("--kill-node", text, lambda option, one: _whole(option, one, 0, most))
    return tuple(sorted(found))


def _whole(option: str, text: str, low: int, high: int) -> int:
    try:
        return parse_whole(text, low, high)
    except ValueError as error:
        raise InputError(
            f"{option}: a value {error}", remedy=f"write whole numbers, such as {option} 1,2"
        ) from None


def _engines(names: Sequence[str]) -> tuple[Engine, ...]:
    """Those that are named; `all` are those of gridbench that have members."""
    found: list[Engine] = []
    for name in names:
        if name == ALL:
            found += [one for one in own_engines() if one.described.members]
        else:
            found.append(find_engine(name))
    if not found:
        raise InputError(
            "no data grid with members comes with gridbench", remedy="name one by --engine"
        )
    once = list({one.file: one for one in found}.values())
    names_of = [one.name for one in once]
    if twice := [name for name in names_of if names_of.count(name) > 1]:
        raise InputError(
            f"two data grids are called `{twice[0]}`, and their results could not be told apart",
            remedy="rename the folder of one of them, after which it is called",
        )
    return tuple(once)


def _memory(request: Request, engine: Engine, own: Parameters) -> int:
    """Bytes for data: of a member or, without members, of the client's process."""
    return request.memory_of(own.mnodes if engine.described.members else 1)


def _member_memory(text: str | None) -> int | None:
    if text is None:
        return None
    found = parse_size("--member-memory", text)
    if found < _LEAST_MEMORY:
        raise InputError(
            f"--member-memory: {shown(text)} is too little for a Java process",
            remedy=f"give {_LEAST_MEMORY // MB}MB or more; products need more than that themselves",
        )
    return found


def _warm_up(most: float | None, *, without: bool) -> WarmUp | None:
    if without:
        if most is not None:
            raise InputError(
                "--warm and --no-warm contradict each other", remedy="choose one of them"
            )
        return None
    if most is None:
        return WarmUp()
    if not math.isfinite(most) or not 0 < most <= _LONGEST_WARM_UP:
        raise InputError(
            "--warm must be a number of seconds above 0, and up to an hour, not"
            f" {as_given(most, '')}",
            remedy="--no-warm leaves the warm-up out",
        )
    return WarmUp.of(most)


def _choice(given: Given) -> Choice:
    def whole(name: str, parameter: str) -> list[int]:
        low, high = map(int, LIMITS[parameter])
        text = given[name]
        option = f"--{name}"
        parse = lambda _, one: _whole(option, one, low, high)  # noqa: E731
        return [] if text is None else parse_list(option, text, parse)

    sizes = given["object_sizes"]
    return Choice(
        members=whole("members", "MNodes"),
        clients=whole("clients", "NNodes"),
        object_sizes=[] if sizes is None else parse_list("--object-sizes", sizes, _kilobytes),
        operations=given["operations"],
        tasks_per_client=given["tasks_per_client"],
    )


def _kilobytes(option: str, text: str) -> float:
    found = parse_size(option, text) / BYTES_PER_KB
    low, high = LIMITS["ObjectSize"]
    if not low <= found <= high:
        raise InputError(
            f"{option}: {shown(text)} is not from {size(low * BYTES_PER_KB)} to"
            f" {size(high * BYTES_PER_KB)}",
            remedy="smaller objects could not be checked, and some products store no larger ones",
        )
    return found

"""From the command line to what is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gridbench.datagrid.crossover.request import (
    CORES,
    DATA_GRIDS,
    ENGINES,
    SIZES,
    Request,
)
from gridbench.datagrid.parameters import LIMITS
from gridbench.errors import InputError
from gridbench.formats import size
from gridbench.machine.policy import Policy
from gridbench.printing import Printing
from gridbench.quantities import KB, parse_cores, parse_list, parse_size
from gridbench.scenario.request import limit_of

_MOST_OBJECTS = int(LIMITS["SharedDataSize"][1])


def request_of(
    *,
    engines: Sequence[str],
    data_grids: Sequence[str],
    sizes: str | None,
    cores: str | None,
    object_size: str,
    members: int,
    rounds: int,
    warm: float,
    limit: float,
    seed: int,
    folder: Path | None,
    fresh: bool,
    retry_failed: bool,
    policy: Policy,
    printing: Printing,
) -> Request:
    """What the options say. InputError for what cannot be meant."""
    for option, names in (("--engine", engines), ("--data-grid", data_grids)):
        if twice := [name for number, name in enumerate(names) if name in names[:number]]:
            raise InputError(
                f"{option}: `{twice[0]}` is asked for twice", remedy="name each of them once"
            )
    asked = parse_list("--sizes", sizes, parse_size) if sizes is not None else SIZES
    each = parse_size("--object-size", object_size)
    smallest, largest = (round(end * KB) for end in LIMITS["ObjectSize"])
    if not smallest <= each <= largest:
        raise InputError(
            f"--object-size must be from {size(smallest)} to {size(largest)}, not {size(each)}",
            remedy="1MB is a good size for most data grids",
        )
    for one in asked:
        _check_size(one, each)
    return Request(
        engines=tuple(engines) or ENGINES,
        data_grids=tuple(data_grids) or DATA_GRIDS,
        sizes=sorted(asked),
        cores=sorted(CORES if cores is None else parse_list("--cores", cores, parse_cores)),
        object_size=each,
        members=members,
        rounds=rounds,
        warm_up=limit_of("--warm", warm) or 0.0,
        limit=limit_of("--case-limit", limit) or 0.0,
        seed=seed,
        folder=folder,
        fresh=fresh,
        retry_failed=retry_failed,
        policy=policy,
        printing=printing,
    )


def _check_size(one: int, each: int) -> None:
    if not one or one % each:
        raise InputError(
            f"--sizes: {size(one)} cannot be divided into objects of {size(each)}",
            remedy=f"give a multiple of {size(each)}, or another --object-size",
        )
    if one // each > _MOST_OBJECTS:
        raise InputError(
            f"--sizes: {size(one)} would be {one // each:,} objects of {size(each)}, and"
            f" {_MOST_OBJECTS:,} are the most",
            remedy="give a larger --object-size",
        )

"""The options of `gridbench scenario`, as typed, checked and understood."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from gridbench.errors import InputError
from gridbench.links.rates import parse_rate
from gridbench.scenario.amounts import parse_cores, parse_list, parse_size, parse_stddev
from gridbench.scenario.grids import Choice, parse_scenarios
from gridbench.scenario.needs import Place
from gridbench.scenario.plan import Limits
from gridbench.scenario.request import Request
from gridbench.scenario.workloads import Times

_QUICK_SCALE = 0.01
_DEFAULT_LINK = "1gbit"


def request_of(
    *,
    scenarios: Sequence[str],
    engines: Sequence[str],
    cores: str | None,
    sizes: str | None,
    time_scale: float | None,
    quick: bool,
    stddev: str | None,
    slides: bool,
    split_data: bool,
    optional: bool,
    nodes: int | None,
    link: str | None,
    warm: bool,
    rounds: int,
    case_limit: float | None,
    limit: float | None,
    check: bool,
    dry_run: bool,
    seed: int,
    folder: Path | None,
    fresh: bool,
) -> Request:
    """What the user asked for. InputError for what cannot be meant."""
    if link is not None and nodes is None:
        raise InputError(
            "--link is the rate of links that there are none of",
            remedy="add --nodes K, the number of places behind such links",
        )
    seconds, share = parse_stddev("--stddev", stddev) if stddev is not None else (0.0, 0.0)
    rate = parse_rate("--link", link or _DEFAULT_LINK) if nodes is not None else None
    return Request(
        scenarios=parse_scenarios(scenarios),
        engines=engines,
        choice=Choice(
            slides=slides,
            split_data=split_data,
            optional=optional,
            quick=quick,
            cores=parse_list("--cores", cores, parse_cores) if cores is not None else (),
            sizes=parse_list("--sizes", sizes, parse_size) if sizes is not None else (),
        ),
        times=Times(
            scale=_scale(time_scale, quick=quick),
            stddev=seconds,
            stddev_share=share,
            seed=seed,
        ),
        place=Place(nodes=nodes or 1, rate=rate),
        limits=Limits(case=_time("--case-limit", case_limit), whole=_time("--limit", limit)),
        rounds=rounds,
        warm=warm,
        check=check,
        folder=folder,
        fresh=fresh,
        dry_run=dry_run,
    )


def _scale(value: float | None, *, quick: bool) -> float:
    if value is None:
        return _QUICK_SCALE if quick else 1.0
    if not math.isfinite(value) or not 0 <= value <= 1000:
        raise InputError(
            f"--time-scale must be from 0 to 1,000, not {value:g}",
            remedy="0.01 makes every task sleep a hundredth of its time",
        )
    return value


def _time(option: str, value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value > 0):
        raise InputError(
            f"{option} must be a number of seconds above 0, not {value:g}",
            remedy="leave it out to allow any time",
        )
    return value

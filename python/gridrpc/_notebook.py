"""What notebooks show of a grid, a call and a map: plain HTML, in the colours that they have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from math import isnan
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gridrpc._grid import Grid
    from gridrpc._map import Map
    from gridrpc._native import Call

#: Functions and hosts that are shown.
MOST = 10


def grid_html(grid: Grid) -> str:
    """What a grid does: its workers, its calls, and those of each function and host."""
    stats = grid.stats()
    calls = stats.calls
    errors = calls.raised + calls.expired + calls.lost + calls.failed
    lines = [
        f"<b>{escape(repr(grid).strip('<>'))}</b>",
        f"{stats.busy} of {stats.workers} workers busy, {stats.losses} lost; "
        f"{calls.ended:,} calls have ended, {errors:,} of them with an error",
    ]
    functions = _table(
        ("function", "calls", "errors", "mean time"),
        (
            (
                one.name,
                f"{one.ended:,}",
                f"{one.raised + one.expired + one.lost + one.failed:,}",
                _mean(one.seconds, one.returned + one.raised),
            )
            for one in stats.functions[:MOST]
        ),
        len(stats.functions) - MOST,
    )
    hosts = _table(
        ("host", "state", "workers", "busy", "calls", "lost"),
        (
            (
                one.host if one.server in ("localhost", one.host) else f"{one.server}/{one.host}",
                one.state,
                f"{one.ready} of {one.workers}",
                f"{one.busy}",
                f"{one.calls:,}",
                f"{one.losses}",
            )
            for one in stats.hosts[:MOST]
        ),
        len(stats.hosts) - MOST,
    )
    return f"<div>{'<br>'.join(lines)}{functions if stats.functions else ''}{hosts}</div>"


def call_html(call: Call[Any]) -> str:
    """`Call._repr_html_`: how a call is getting on, and where and how long it ran."""
    parts = [f"<b>{escape(repr(call).strip('<>'))}</b>"]
    if call.done():
        profile = call.profile
        if profile.worker is not None:
            parts.append(f"worker {profile.worker} on {escape(profile.host)}")
        ran = profile.calc_out - profile.calc_in
        if not isnan(ran):
            parts.append(f"its function ran {_time(ran)}")
        parts.append(f"{profile.bytes_in:,} B of arguments, {profile.bytes_out:,} B of results")
    return f"<div>{'; '.join(parts)}</div>"


def results_html(plan: Map, total: int | None) -> str:
    """How far a map has come."""
    given, under_way = plan.given, plan.under_way
    of = "" if total is None else f" of {total:,}"
    bar = "" if not total else f'<progress value="{given}" max="{total}"></progress> '
    text = f"{given:,}{of} results given, {under_way:,} calls under way"
    return f"<div>{bar}<b>gridrpc map</b>: {text}</div>"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], more: int) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    lines = ("".join(f"<td>{escape(text)}</td>" for text in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    rest = f"<caption>and {more:,} more</caption>" if more > 0 else ""
    return f"<table>{rest}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _mean(seconds: float, count: int) -> str:
    return _time(seconds / count) if count else "-"


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"

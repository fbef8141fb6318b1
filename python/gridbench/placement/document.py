"""The document about placement: which policy wins when, and what stale information costs."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from gridbench.formats import NOTHING, counted, percent, plain, times, whole
from gridbench.jsonl_store import Header
from gridbench.pages.colours import SERIES
from gridbench.pages.curves import Curve, Line, Place, Point
from gridbench.pages.document import (
    EVERYWHERE,
    ChartChoice,
    Document,
    Section,
    TableBlock,
    definitions,
    subheading,
)
from gridbench.pages.table import Column, Table, table_of
from gridbench.placement.comparison import PolicySetting, settings_of
from gridbench.placement.record import POLICIES, PlacementCase, ServerPolicy
from gridbench.statistics.interval import Interval

Axis = Literal["offered", "interval", "servers", "clients"]
_AXES: dict[Axis, tuple[str, Callable[[float], str]]] = {
    "offered": ("load", lambda value: percent(value, 0)),
    "interval": ("announcement interval, s", plain),
    "servers": ("servers", whole),
    "clients": ("clients", whole),
}
_MOST_NAMED = 24
"""Servers up to which each has its row."""
_NAMED = 5
"""Failed cases that a notice names."""


def document_of(header: Header, cases: Sequence[PlacementCase]) -> Document:
    """The answer, tables and charts."""
    settings = settings_of(cases)
    return Document(
        kind="gridbench placement",
        title="gridbench placement: choosing among servers",
        heading="Choosing among servers",
        subheading=subheading(header, str(header.options.get("scenario", ""))),
        sentences=_sentences(settings),
        notices=_notices(cases),
        summary=[
            *_choice("What varies", list(_curves(settings))),
            TableBlock(
                "The best policy",
                _winners_table(settings),
                about="How many times as long the next policy takes, in seeds with the same calls.",
                media=EVERYWHERE,
            ),
            TableBlock(
                "Cost of stale loads",
                _stale_table(stale_costs(settings)),
                about="Times with announcements, by those with loads that are always known.",
                media=EVERYWHERE,
            ),
        ],
        sections=[
            Section(
                "cases",
                "All cases",
                [TableBlock("Times by policy", _cases_table(settings))],
                short="Cases",
            ),
            Section("servers", "Servers", list(_server_tables(header, settings)), short="Servers"),
            Section("method", "How to read this", [_TERMS], short="Method"),
        ],
        header=header,
    )


def answer_values(cases: Sequence[PlacementCase]) -> dict[str, Any]:
    """The best policy of each setting, and what stale loads cost, for `--json`."""
    settings = settings_of(cases)
    return {
        "settings": [
            {
                **_fields(one),
                "metric": one.metric,
                "winner": one.winner,
                "lead": _finite(one.lead),
                "policies": {
                    policy: {
                        "time": _finite(one.mean(policy)),
                        "slowdown": _finite(one.slowdown(policy)),
                    }
                    for policy in one.ranked
                },
            }
            for one in settings
        ],
        "stale": [
            {**_fields(one.setting), "policy": one.policy, "cost": _finite(one.cost)}
            for one in stale_costs(settings)
        ],
    }


def _finite(found: Interval | None) -> dict[str, float | None] | None:
    if found is None:
        return None
    return {name: value if math.isfinite(value) else None for name, value in asdict(found).items()}


def _fields(setting: PolicySetting) -> dict[str, Any]:
    one = setting.first
    return {
        "workload": one.workload,
        "load": one.offered,
        "interval": one.interval,
        "servers": one.servers,
        "clients": one.clients,
    }


# ---- Sentences


def _sentences(settings: Sequence[PolicySetting]) -> list[str]:
    """Which policy wins, where others do, and what stale loads cost."""
    if not settings:
        return ["Nothing was simulated yet."]
    compared = [one for one in settings if len(one.cases) > 1]
    found = [_headline(compared)] if compared else [_single(settings)]
    wins = Counter(one.winner for one in compared if one.winner)
    for policy, _ in wins.most_common()[1:]:
        where = [one for one in compared if one.winner == policy]
        found.append(f"{policy} wins {_led(where)}: {_where(where, settings)}.")
    if undecided := [one for one in compared if one.winner is None]:
        found.append(f"Undecided, as the intervals have 1 in them: {_where(undecided, settings)}.")
    found += _stale_sentences(stale_costs(settings), settings)
    return found


def _headline(compared: Sequence[PolicySetting]) -> str:
    wins = Counter(one.winner for one in compared if one.winner)
    if not wins:
        settings = f" in any of {len(compared):,} settings" if len(compared) > 1 else ""
        return f"No policy wins for certain{settings}."
    policy, count = wins.most_common(1)[0]
    where = [one for one in compared if one.winner == policy]
    if len(compared) == 1:
        lead = where[0].lead
        assert lead is not None
        return (
            f"{policy} wins: {where[0].ranked[1]} takes {times(lead.value)} as long (95 %:"
            f" {_range(lead)})."
        )
    return (
        f"{policy} wins in {count:,} of {counted(len(compared), 'setting')} {_led(where)}; each"
        " is certain to 95 %."
    )


def _led(where: Sequence[PolicySetting]) -> str:
    """`(the next takes 1.20× to 3.40× as long)`."""
    leads = sorted(one.lead.value for one in where if one.lead is not None)
    ends = dict.fromkeys([times(leads[0]), times(leads[-1])])
    return f"(the next takes {' to '.join(ends)} as long)"


def _where(settings: Sequence[PolicySetting], among: Sequence[PolicySetting], most: int = 4) -> str:
    names = [_named(one, among) for one in settings[:most]]
    more = [f"{len(settings) - most:,} more"] if len(settings) > most else []
    return "; ".join([*names, *more])


def _single(settings: Sequence[PolicySetting]) -> str:
    one = settings[0]
    policy = one.ranked[0]
    return f"With {policy} alone there is nothing to compare: give --policies two at least."


def _named(setting: PolicySetting, among: Sequence[PolicySetting]) -> str:
    """`poisson at 60 %, interval 3 s, 100 servers`, with what tells it from others."""
    one = setting.first
    load = "" if one.offered is None else f" at {percent(one.offered, 0)}"
    parts = [f"{one.workload}{load}", f"interval {plain(one.interval)} s"]
    if len({each.first.servers for each in among}) > 1:
        parts.append(counted(one.servers, "server"))
    if len({each.first.clients for each in among}) > 1:
        parts.append(counted(one.clients, "client"))
    return ", ".join(parts)


def _range(found: Interval) -> str:
    return f"{times(found.low)} to {times(found.high)}"


@dataclass(frozen=True, slots=True)
class StaleCost:
    """What announced loads cost a policy, instead of loads that are always known."""

    setting: PolicySetting
    policy: ServerPolicy
    cost: Interval
    """Time by that with known loads, in seeds with the same calls."""


def stale_costs(settings: Sequence[PolicySetting]) -> list[StaleCost]:
    """Of all settings with announcements, where the same was simulated with known loads."""
    from gridbench.placement.comparison import geometric

    known = {_without(one, "interval"): one for one in settings if one.first.interval == 0}
    found = []
    for one in settings:
        best = known.get(_without(one, "interval"))
        if best is None or one is best:
            continue
        for policy, cases in one.cases.items():
            if policy in ("round-robin", "random"):
                continue
            own = best.cases.get(policy, {})
            pairs = [
                one.value(cases[seed]) / best.value(own[seed])
                for seed in sorted(cases.keys() & own.keys())
            ]
            if pairs:
                found.append(StaleCost(one, policy, geometric(pairs)))
    return found


def _stale_sentences(costs: Sequence[StaleCost], settings: Sequence[PolicySetting]) -> list[str]:
    found = []
    for policy in dict.fromkeys(one.policy for one in costs):
        own = [one for one in costs if one.policy == policy]
        most = max(own, key=lambda one: one.cost.value)
        least = min(own, key=lambda one: one.cost.value)
        where, sure = _named(most.setting, settings), _range(most.cost)
        reported = f"Stale loads cost {policy} at most {times(most.cost.value)} the time"
        reported += f" (95 %: {sure}; {where})"
        if len(own) > 1:
            where = _named(least.setting, settings)
            reported += f", and at least {times(least.cost.value)} ({where})"
        found.append(f"{reported}.")
    return found


def _notices(cases: Sequence[PlacementCase]) -> list[str]:
    found = [
        "Simulated: connections share links evenly and at once, functions take exactly their"
        " operations by the speed, and servers refuse no call."
    ]
    left = [f"{one.describe()}, {one.status}: {one.why}." for one in cases if one.status != "done"]
    more = [f"{len(left) - _NAMED:,} more were not done."] if len(left) > _NAMED else []
    return [*found, *left[:_NAMED], *more]


# ---- Tables


def _setting_columns(settings: Sequence[PolicySetting]) -> list[Column[PolicySetting]]:
    """What tells the settings apart; the workload always."""

    def varies(name: str) -> bool:
        return len({getattr(one.first, name) for one in settings}) > 1

    def load(one: PolicySetting) -> str:
        offered = one.first.offered
        return NOTHING if offered is None else percent(offered, 0)

    return [
        Column("workload", lambda one: one.first.workload, words=True),
        Column("load", load, condition=any(one.first.offered is not None for one in settings)),
        Column("interval", lambda one: f"{plain(one.first.interval)} s"),
        Column("servers", lambda one: one.first.servers, condition=varies("servers")),
        Column("clients", lambda one: one.first.clients, condition=varies("clients")),
    ]


def _winners_table(settings: Sequence[PolicySetting]) -> Table:
    def best(one: PolicySetting) -> str:
        return one.winner or "undecided"

    def others(one: PolicySetting) -> str:
        return one.ranked[1] if one.winner else ", ".join(one.alike)

    return table_of(
        [
            *_setting_columns(settings),
            Column("best", best),
            Column("next, or undecided between", others, words=True, from_width=110),
            Column("next / best", lambda one: one.lead, "x"),
            Column("metric", lambda one: one.metric, words=True, from_width=120),
            Column("of the best", lambda one: one.mean(one.ranked[0]), "s"),
            Column("by the bound", lambda one: one.slowdown(one.ranked[0]), "x", from_width=130),
        ],
        [one for one in settings if len(one.cases) > 1],
    )


def _stale_table(costs: Sequence[StaleCost]) -> Table:
    inner = _setting_columns([one.setting for one in costs])
    return table_of(
        [
            *(
                Column(
                    one.name, _of_setting(one), one.unit, condition=one.condition, words=one.words
                )
                for one in inner
            ),
            Column("policy", lambda one: one.policy, words=True),
            Column("cost", lambda one: one.cost, "x"),
        ],
        costs,
    )


def _of_setting(column: Column[PolicySetting]) -> Callable[[StaleCost], Any]:
    return lambda one: column.value(one.setting)


_Row = tuple[PolicySetting, ServerPolicy]


def _cases_table(settings: Sequence[PolicySetting]) -> Table:
    def of(column: Column[PolicySetting]) -> Callable[[_Row], Any]:
        return lambda row: column.value(row[0])

    def figure(name: str) -> Callable[[_Row], float]:
        return lambda row: row[0].figure(row[1], name)

    def busiest(row: _Row) -> str:
        return percent(max(row[0].per_server(row[1], "utilisation")), 0)

    def busy(row: _Row) -> str:
        found = row[0].per_server(row[1], "utilisation")
        return percent(sum(found) / len(found), 0)

    columns: list[Column[_Row]] = [
        *(
            Column(one.name, of(one), one.unit, condition=one.condition, words=one.words)
            for one in _setting_columns(settings)
        ),
        Column("policy", lambda row: row[1], words=True),
        Column("seeds", lambda row: len(row[0].cases[row[1]])),
        Column("calls", lambda row: round(row[0].figure(row[1], "calls"))),
        Column("mean response", figure("mean"), "s"),
        Column("median", figure("median"), "s"),
        Column("95 %", figure("p95"), "s"),
        Column("total time", figure("total"), "s"),
        Column("by the bound", lambda row: row[0].slowdown(row[1]), "x"),
        Column("cores busy", busy),
        Column("busiest server", busiest),
    ]
    return table_of(columns, [(one, policy) for one in settings for policy in one.ranked])


def _server_tables(header: Header, settings: Sequence[PolicySetting]) -> Iterator[TableBlock]:
    """Utilisation and share of the calls of each server, where there are not too many."""
    reported = [
        dict(re.findall(r"(\w+)=(\S+)", text)) for text in header.options.get("servers", ())
    ]
    names = [
        one.get("name", "") if "count" not in one else f"{one['name']}-{number + 1}"
        for one in reported
        for number in range(int(one.get("count", 1)))
    ]
    for setting in settings:
        count = setting.first.servers
        if count > _MOST_NAMED:
            continue
        own = names if len(names) == count else [f"server {number + 1}" for number in range(count)]
        columns = [Column("server", _entry(own), words=True)]
        for policy in setting.ranked:
            busy, calls = (
                _entry([percent(share, 0) for share in setting.per_server(policy, name)])
                for name in ("utilisation", "shares")
            )
            columns += [Column(f"{policy}: busy", busy), Column("calls", calls)]
        title = _named(setting, settings)
        yield TableBlock(title, table_of(columns, range(count)), folded=len(settings) > 1)


def _entry(texts: Sequence[str]) -> Callable[[int], str]:
    return lambda row: texts[row]


_TERMS = definitions(
    """
    Mean response = From the call to its results at the client; the mean of all calls of a seed, and
        the geometric mean of seeds.
    Next / best = How many times as long the next policy takes, in seeds with the same calls. A
        policy wins if the 95 % interval of all others together is above 1.
    By the bound = The time by one that no policy can go below: each call alone on the server that
        is best for it; for a batch, the total time of the best assignment that a search found, or,
        of many calls, of all operations shared out among all cores.
    Interval = Time between two announcements of a server's load. With 0, clients know all loads
        when they call.
    Load = Operations of the calls that arrive, by the operations that all cores could do. With more
        than 100 %, queues grow as long as clients call.
    Cores busy = Share of the time from the first call to the last result; the mean of all servers.
    """
)


# ---- Charts


def _choice(label: str, charts: Sequence[tuple[str, Curve]]) -> list[ChartChoice]:
    drawn = [(name, one.chart()) for name, one in charts if one.drawn]
    return [ChartChoice(label, drawn)] if drawn else []


def _without(setting: PolicySetting, name: str) -> tuple[Hashable, ...]:
    return tuple(value for key, value in sorted(_key(setting).items()) if key != name)


def _key(setting: PolicySetting) -> dict[str, Any]:
    names = ("workload", "offered", "interval", "servers", "clients")
    return {name: getattr(setting.first, name) for name in names}


def _curves(settings: Sequence[PolicySetting]) -> Iterator[tuple[str, Curve]]:
    """The metric over each quantity that varies, with a line for each policy."""
    for axis in _AXES:
        groups: dict[Hashable, list[PolicySetting]] = {}
        for one in settings:
            if getattr(one.first, axis) is not None:
                groups.setdefault(str(_without(one, axis)), []).append(one)
        for number, own in enumerate(groups.values()):
            if len(own) > 1:
                ordered = sorted(own, key=_by(axis))
                yield _curve_name(own[0], axis), _curve(axis, number, ordered)


def _by(axis: Axis) -> Callable[[PolicySetting], float]:
    return lambda one: float(getattr(one.first, axis))


def _curve_name(setting: PolicySetting, axis: Axis) -> str:
    one = setting.first
    parts = [f"{_AXES[axis][0].partition(',')[0]}: {one.workload}"]
    if axis != "offered" and one.offered is not None:
        parts.append(percent(one.offered, 0))
    if axis != "interval":
        parts.append(f"{plain(one.interval)} s")
    return ", ".join(parts)


def _curve(axis: Axis, number: int, settings: Sequence[PolicySetting]) -> Curve:
    title, shown = _AXES[axis]
    # An interval of 0 has no place on a logarithmic scale.
    side_by_side = axis == "interval"
    values = [getattr(one.first, axis) for one in settings]
    places = [
        Place(float(place if side_by_side else value), shown(value))
        for place, value in enumerate(values)
    ]
    policies = [policy for policy in POLICIES if any(policy in one.cases for one in settings)]
    return Curve(
        id=f"{axis}-{number}",
        title=f"{settings[0].metric[0].upper()}{settings[0].metric[1:]} over the {title}",
        about="Geometric means of seeds, with 95 % intervals.",
        x_title=title,
        places=places,
        y_title=settings[0].metric,
        unit="s",
        lines=[
            Line(
                policy,
                [
                    Point(place, _drawn(one.mean(policy)), True)
                    for place, one in zip(places, settings, strict=True)
                    if policy in one.cases
                ],
                colour=SERIES[list(POLICIES).index(policy) % len(SERIES)],
            )
            for policy in policies
        ],
        numeric=not side_by_side,
    )


def _drawn(found: Interval) -> Interval:
    """Of a single seed, without a range."""
    if math.isfinite(found.high):
        return found
    return Interval(found.value, found.value, found.value)

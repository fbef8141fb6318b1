"""The document with the recommendation, and its JSON."""

from __future__ import annotations

import datetime
import math
import statistics
from collections.abc import Callable, Iterator, Sequence

from gridbench.formats import (
    amount,
    between,
    counted,
    digits,
    fixed,
    percent,
    plain,
    rough,
    times,
    whole,
)
from gridbench.machine.judgement import disturbed_count
from gridbench.model.model import TotalPrediction
from gridbench.pages.colours import engine_colours
from gridbench.pages.document import (
    EVERYWHERE,
    WRITTEN,
    Block,
    Bullets,
    Definitions,
    Document,
    Medium,
    Paragraph,
    Section,
    StaticChart,
    TableBlock,
)
from gridbench.pages.svg import Bar, Mark, bars, over_time
from gridbench.pages.table import Column, Table, table_of
from gridbench.recommend.decision import EFFICIENT, RankedEngine, Recommendation, Trend
from gridbench.recommend.evidence import Evidence
from gridbench.statistics.claims import ALIKE, provisional

_LONG = ((3600.0, "h"), (60.0, "min"))
_TERMINAL: frozenset[Medium] = frozenset({"terminal"})
_MOST = 6
"""Rows of a table, and lines of a list, at most: it is one page."""


def headline(recommendations: Sequence[Recommendation]) -> str:
    """The recommendation in one sentence."""
    parts = [(one, _answer(one)) for one in recommendations]
    if len(parts) == 1:
        one, text = parts[0]
        if one.provisional:
            return provisional(text, "the machine was busy")
        return f"{text}." if one.engine else f"{text[0].upper()}{text[1:]}."
    reported = [
        f"{'provisionally ' if one.provisional else ''}{text} on {one.host}" for one, text in parts
    ]
    return f"{'; '.join(reported)}."


def sentences(one: Recommendation) -> list[tuple[str, str]]:
    """Each question with its answer."""
    found = [("Engine", _engine(one)), ("Task size", _task_size(one)), ("Cores", _cores(one))]
    if one.advice is not None:
        what, seconds = one.advice.limit
        share = seconds / one.advice.expected.total
        found.append(
            ("Limit", f"{what[0].upper()}{what[1:]} takes {percent(share, 0)} of the time.")
        )
    found += [("Cost", _cost(one)), ("Confidence", _confidence(one))]
    return [(what, text) for what, text in found if text]


def document_of(recommendations: Sequence[Recommendation]) -> Document:
    """The recommendation, with a section for each machine."""
    reported = headline(recommendations)
    hosts = [one.host for one in recommendations]
    return Document(
        kind="gridbench recommend",
        title=reported,
        heading="Recommendation",
        subheading=f"{', '.join(hosts)} · from {counted(_folders(recommendations), 'folder')}",
        sentences=[reported],
        sections=[
            Section(f"machine-{number}", _machine(one), _blocks(number, one), one.host)
            for number, one in enumerate(recommendations, 1)
        ],
        styles=["recommend/recommend.css"],
    )


def _blocks(number: int, one: Recommendation) -> list[Block]:
    also = [f"{what}: {text}" for what, text in findings(one)]
    lacking = [f"{what} ({command})" for what, command in one.missing]
    return [
        Paragraph(_machine(one), _TERMINAL),
        Definitions(sentences(one), EVERYWHERE),
        *_charts(number, one),
        TableBlock("Engines", engines_table(one)),
        TableBlock("History", trends_table(one)),
        *([Bullets(also, "Also measured", WRITTEN)] if also else []),
        *([Bullets(lacking, "Not measured", WRITTEN)] if lacking else []),
        Bullets([f"Not measured: {line}" for line in lacking], media=_TERMINAL),
        TableBlock("Sources", sources_table(one)),
    ]


def engines_table(one: Recommendation) -> Table:
    """A row for each engine, the recommended one first."""
    columns: list[Column[RankedEngine]] = [
        Column("engine", lambda rank: rank.name),
        Column("time, fastest = 1", lambda rank: digits(rank.ratio)),
        Column(
            "range",
            lambda rank: (
                f"{digits(rank.least)} to {digits(rank.most)}" if rank.least < rank.most else ""
            ),
        ),
        Column("fastest in", lambda rank: f"{rank.fastest} of {rank.workloads}"),
        Column(
            "proven slower in",
            lambda rank: "" if rank.proven is None else f"{rank.proven} of {rank.workloads}",
        ),
    ]
    return table_of(columns, one.ranked[:_MOST])


def trends_table(one: Recommendation) -> Table:
    """A row for each figure with several dates."""

    def median(place: int) -> Callable[[Trend], str]:
        return lambda trend: amount(
            statistics.median(trend.measures[place].values), trend.measures[place].unit
        )

    def verdict(trend: Trend) -> str:
        if not trend.claims:
            return "provisional"
        known = trend.compared.verdict
        return known if known in ("better", "worse", "no difference") else "too few values"

    columns: list[Column[Trend]] = [
        Column("figure", lambda trend: f"{trend.engine}: {trend.what}"),
        Column(
            "dates",
            lambda trend: " to ".join(dict.fromkeys((trend.dates[0][:10], trend.dates[-1][:10]))),
        ),
        Column("first", median(0)),
        Column("last", median(-1)),
        Column("ratio", lambda trend: times(trend.compared.ratio)),
        Column("verdict", verdict),
    ]
    return table_of(columns, one.trends[:_MOST])


def sources_table(one: Recommendation) -> Table:
    """A row for each folder of results."""
    columns: list[Column[Evidence]] = [
        Column("folder", lambda evidence: str(evidence.source)),
        Column("made by", lambda evidence: evidence.command),
        Column("date", lambda evidence: evidence.date.replace("T", " ") or None),
        Column("figures", lambda evidence: len(evidence.figures) + len(evidence.models)),
        Column("provisional figures", lambda evidence: len(evidence.provisional) or None),
    ]
    return table_of(columns, one.evidence)


def findings(one: Recommendation) -> list[tuple[str, str]]:
    """Each command with the first sentence of its latest report."""
    latest = {evidence.command: evidence.told for evidence in one.evidence if evidence.told}
    return list(latest.items())[:_MOST]


def to_record(one: Recommendation) -> dict[str, object]:
    """For `--json`."""
    advice = one.advice
    return {
        "host": one.host,
        "engine": one.engine or None,
        "provisional": one.provisional,
        "task_time": one.task_time,
        "tasks": None if advice is None else advice.split.tasks,
        "cores": None if advice is None else advice.split.cores,
        "expected": None
        if advice is None
        else {
            "total": advice.expected.total,
            "low": advice.expected.low,
            "high": advice.expected.high,
        },
        "core_hours": one.core_hours,
        "cost": None
        if one.core_hours is None or one.work is None or one.work.price is None
        else one.core_hours * one.work.price,
        "limit": None if advice is None else advice.limit[0],
        "answers": dict(sentences(one)),
        "missing": [{"what": what, "command": command} for what, command in one.missing],
        "sources": [str(evidence.source) for evidence in one.evidence],
    }


def _answer(one: Recommendation) -> str:
    if one.advice is not None and one.core_hours is not None:
        split, expected = one.advice.split, one.advice.expected
        return (
            f"{one.engine} with {counted(split.tasks, 'task')} on {counted(split.cores, 'core')}"
            f" takes {_time(expected.total)} ({_interval(expected)}) and"
            f" {_hours(one.core_hours)}"
        )
    if one.ranked:
        best, nearest = one.ranked[:2]
        if len(one.tied) > 1:
            return (
                f"{best.name} and {nearest.name} are as fast as each other within"
                f" {percent(ALIKE - 1, 0)} on average"
            )
        return (
            f"{best.name} is fastest in {_of_workloads(best)}, and"
            f" {digits(nearest.ratio / best.ratio)} times as fast as {nearest.name} on average"
        )
    if one.measured:
        return f"no engine can be recommended, as {_engine(one)[:-1].lower()}"
    return "no engine can be recommended, as none was measured"


def _engine(one: Recommendation) -> str:
    if not one.ranked:
        names = " and ".join(one.measured)
        return f"Only {names} was measured." if len(one.measured) == 1 else "Not compared."
    best, nearest = one.ranked[:2]
    ratio = nearest.ratio / best.ratio
    proven = (
        f"undisturbed rounds prove it in {nearest.proven} of {nearest.workloads}"
        if one.claims
        else "no run was undisturbed"
    )
    if len(one.tied) > 1:
        names = [rank.name for rank in one.tied]
        text = (
            f"{' or '.join(names)}: on average {'neither' if len(names) == 2 else 'none'} is more"
            f" than {percent(ALIKE - 1, 0)} faster; {best.name} is fastest in"
            f" {_of_workloads(best)}"
        )
        if one.engine != best.name:
            text += f"; task size, cores and cost are of {one.engine}, of which there is a model"
        return f"{text}."
    return (
        f"{best.name}: fastest in {_of_workloads(best)}, and on average {digits(ratio)} times as"
        f" fast as {nearest.name}; {proven}."
    )


def _of_workloads(rank: RankedEngine) -> str:
    if rank.workloads == 1:
        return "the only workload"
    return f"{rank.fastest} of {counted(rank.workloads, 'workload')}"


def _task_size(one: Recommendation) -> str:
    parts = []
    if one.advice is not None:
        split, work = one.advice.split, one.advice.work
        parts.append(f"{counted(split.tasks, 'task')} of {_time(work.seconds / split.tasks)} each")
    if one.task_time is not None and one.model is not None:
        cores = int(one.model.ranges.cores.high)
        parts.append(
            f"tasks of at least {rough(one.task_time)} keep {counted(cores, 'worker')} of"
            f" {one.model.name} busy for {percent(EFFICIENT, 0)} of the time"
        )
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else "Not known: there is no model."


def _cores(one: Recommendation) -> str:
    if one.model is None:
        return "Not known: there is no model."
    span = one.model.ranges.cores
    low, high = whole(span.low), whole(span.high)
    measured = f"runs with {low} to {high} cores" if low != high else f"runs with {high} cores"
    if one.advice is None:
        return f"Not decided, as the work is not known; there are {measured}."
    return f"{counted(one.advice.split.cores, 'core')}; there are {measured}."


def _cost(one: Recommendation) -> str:
    if one.core_hours is None or one.work is None or one.advice is None:
        return ""
    share = one.work.seconds / 3600 / one.core_hours
    text = f"{_hours(one.core_hours)}; the work itself takes {percent(share, 0)} of them"
    if one.work.price is not None:
        cost = fixed(one.core_hours * one.work.price, 2)
        text += f"; {cost} at {plain(one.work.price)} per core-hour"
    return f"{text}."


def _confidence(one: Recommendation) -> str:
    parts = []
    if one.ranked and not one.claims:
        parts.append("the comparison of engines is provisional, as other programs used the machine")
    if one.model is not None:
        fit = one.model.fit
        parts.append(f"the model is fitted to {counted(fit.runs, 'run')} from {one.model_source}")
        if one.model.disturbed:
            parts.append(disturbed_count(one.model.disturbed, fit.runs, "runs"))
    if one.advice is not None:
        expected = one.advice.expected
        if one.model is not None and not one.model.disturbed:
            parts.append(f"19 of 20 runs should take no more than {_time(expected.high)}")
        parts += [f"beyond what was measured: {text}" for text in expected.extrapolated]
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _charts(number: int, one: Recommendation) -> Iterator[StaticChart]:
    """The engines, and the figure with the largest change over time."""
    if one.ranked:
        made = [
            Bar(
                rank.name,
                rank.ratio,
                rank.least,
                rank.most,
                colour=engine_colours([rank.name])[rank.name],
                hollow=not one.claims,
            )
            for rank in one.ranked[:_MOST]
        ]
        caption = "Time of each engine, fastest = 1: mean and range over workloads"
        yield StaticChart(bars(made, "x", caption), caption, f"engines-{number}.svg", WRITTEN)
    if one.trends and (marks := _marks(one.trends[0])):
        trend = one.trends[0]
        caption = f"{trend.engine}, {trend.what}: median and range by date"
        svg = over_time(marks, trend.measures[0].unit, caption)
        yield StaticChart(svg, caption, f"history-{number}.svg", WRITTEN)


def _marks(trend: Trend) -> list[Mark]:
    seconds = [datetime.datetime.fromisoformat(date).timestamp() for date in trend.dates]
    first, last = seconds[0], seconds[-1]
    days = {date[:10] for date in trend.dates}
    return [
        Mark(
            (at - first) / (last - first) if last > first else 0.5,
            statistics.median(measure.values),
            min(measure.values),
            max(measure.values),
            date[:10] if len(days) > 1 else date[11:16],
            hollow=not trend.claims,
        )
        for at, date, measure in zip(seconds, trend.dates, trend.measures, strict=True)
        if all(map(math.isfinite, measure.values))
    ]


def _machine(one: Recommendation) -> str:
    return f"{one.host}, {counted(one.cores, 'processor')}" if one.cores else one.host


def _time(seconds: float) -> str:
    """A time that may be long: `45 s`, `30.0 min`, `12.0 h`."""
    for unit, name in _LONG:
        if seconds >= 2 * unit:
            return f"{digits(seconds / unit)} {name}"
    return rough(seconds)


def _interval(expected: TotalPrediction) -> str:
    """Both ends in the unit of the total."""
    for unit, name in _LONG:
        if expected.total >= 2 * unit:
            return f"{digits(expected.low / unit)} to {digits(expected.high / unit)} {name}"
    return between(expected.low, expected.high)


def _hours(hours: float) -> str:
    return f"{digits(hours)} core-hours"


def _folders(recommendations: Sequence[Recommendation]) -> int:
    return len({e.source for one in recommendations for e in one.evidence})

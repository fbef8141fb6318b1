"""The document with the recommendation, and its JSON."""

from __future__ import annotations

import datetime
import math
import statistics
from collections.abc import Callable, Iterator, Sequence

from gridbench.advise.advice import Advice
from gridbench.formats import (
    amount,
    between,
    counted,
    digits,
    fixed,
    percent,
    plain,
    rough,
    size,
    times,
    whole,
)
from gridbench.machine.judgement import disturbed_count
from gridbench.model.model import PipelineModel, TotalPrediction
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
from gridbench.recommend.decision import (
    EFFICIENT,
    FEWEST,
    MOST_PREDICTED,
    LeastTaskTime,
    PlannedWork,
    RankedEngine,
    Recommendation,
    Trend,
)
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
    found = [
        ("Work", _work(one)),
        ("Engine", _engine(one)),
        ("Task size", _task_size(one)),
        ("Cores", _cores(one)),
    ]
    if one.advice is not None:
        what, seconds = one.advice.limit
        share = seconds / one.advice.expected.total
        found.append(
            ("Limit", f"{what[0].upper()}{what[1:]} takes {percent(share, 0)} of the time.")
        )
    found += [
        ("Cost", _cost(one)),
        ("Confidence", _confidence(one)),
        ("Measured", _measured(one)),
    ]
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
        Column(
            "undisturbed figures",
            lambda evidence: (
                len(evidence.figures) + sum(not model.disturbed for model in evidence.models)
            ),
        ),
        Column(
            "provisional figures",
            lambda evidence: (
                len(evidence.provisional) + sum(model.disturbed > 0 for model in evidence.models)
            ),
        ),
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
        "task_time": None if one.task_time is None else one.task_time.expected,
        "task_time_interval": None
        if one.task_time is None
        else [
            one.task_time.low,
            one.task_time.high if math.isfinite(one.task_time.high) else None,
        ],
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
    if one.advice is not None and one.core_hours is not None and one.work is not None:
        expected = one.advice.expected
        return (
            f"{one.engine} takes {_time(expected.total)} ({_interval(expected)}) and"
            f" {_hours(one.core_hours)} for {_size(one.work)} on"
            f" {counted(one.advice.split.cores, 'core')}"
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
        alike = [rank.name for rank in one.tied]
        text = (
            f"{' or '.join(alike)}: on average {'neither' if len(alike) == 2 else 'none'} is more"
            f" than {percent(ALIKE - 1, 0)} faster; {best.name} is fastest in"
            f" {_of_workloads(best)}"
        )
    else:
        text = (
            f"{best.name}: fastest in {_of_workloads(best)}, and on average {digits(ratio)} times"
            f" as fast as {nearest.name}; {proven}"
        )
    if one.engine != best.name:
        text += f"; task size, cores and cost are those of {one.engine}, the first with a model"
    return f"{text}."


def _of_workloads(rank: RankedEngine) -> str:
    if rank.workloads == 1:
        return "the only workload"
    return f"{rank.fastest} of {counted(rank.workloads, 'workload')}"


def _size(work: PlannedWork) -> str:
    if work.tasks is None or work.each is None:
        return f"{_time(work.seconds)} of work"
    return f"{counted(work.tasks, 'task')} of {_time(work.each)}"


def _work(one: Recommendation) -> str:
    """What the user has said of the work, so that a slip is seen."""
    if one.work is None:
        return ""
    if one.work.tasks is None:
        text = f"{_time(one.work.seconds)} on one core, in any number of tasks"
    else:
        text = f"{_size(one.work)}, {_time(one.work.seconds)} on one core"
    if one.work.price is not None:
        text += f"; a core-hour costs {plain(one.work.price)}"
    return f"{text}."


def _task_size(one: Recommendation) -> str:
    if one.model is None:
        return "Not known: there is no model."
    text = _suitable(one, one.model)
    return f"{text[0].upper()}{text[1:]}."


def _suitable(one: Recommendation, model: PipelineModel) -> str:
    """A range of task sizes, as nearly all in it do as well."""
    least, advice = one.task_time, one.advice
    if least is None:
        never = f"no tasks keep workers busy for {percent(EFFICIENT, 0)} of the time"
        return never if advice is None else f"{never}; {_split(advice)}"
    workers = f"{counted(int(model.ranges.cores.high), 'worker')} of {model.name}"
    share = f"{percent(EFFICIENT, 0)} of the time"
    rule = f"tasks of at least {_least(least)} keep {workers} busy for {share}"
    if advice is None or one.work is None:
        return rule
    work, most = one.work, one.work.seconds / (FEWEST * advice.split.cores)
    if work.each is not None and work.each >= least.expected:
        return f"your tasks of {_time(work.each)} are long enough: {rule}"
    if most < least.expected:
        return f"the work is too short for tasks that suit; {_split(advice)}: {rule}"
    suit = (
        f"from {_least(least)} to {_time(most)} each: shorter ones keep {workers} busy for less"
        f" than {share}, and of longer ones each core gets fewer than {FEWEST}"
    )
    if work.each is None:
        return suit
    together = math.ceil(least.expected / work.each)
    return f"put {together:,} or more of your tasks together, to tasks {suit}"


def _least(least: LeastTaskTime) -> str:
    ends = between(least.low, least.high) if math.isfinite(least.high) else "or much longer"
    return f"about {rough(least.expected)} ({ends})"


def _split(advice: Advice) -> str:
    tasks = advice.split.tasks
    return f"{counted(tasks, 'task')} of {_time(advice.work.seconds / tasks)} each are best"


def _cores(one: Recommendation) -> str:
    if one.model is None:
        return "Not known: there is no model."
    span = one.model.ranges.cores
    low, high = whole(span.low), whole(span.high)
    measured = f"runs with {low} to {high} cores" if low != high else f"runs with {high} cores"
    if one.advice is None:
        return f"Not decided, as the work is not known; there are {measured}."
    text = f"{counted(one.advice.split.cores, 'core')}; there are {measured}"
    if one.advice.work.cores_asked:
        text += "; tasks that compute gain nothing from more than the machine has"
    return f"{text}."


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
        if one.work and one.work.tasks and one.work.tasks > MOST_PREDICTED:
            parts.append(f"the time is that of the work as {MOST_PREDICTED:,} tasks at most")
        parts += [f"beyond what was measured: {text}" for text in expected.extrapolated]
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _measured(one: Recommendation) -> str:
    """Dates, machine and versions."""
    dates = sorted(evidence.date[:10] for evidence in one.evidence if evidence.date)
    machine = {key: value for evidence in one.evidence for key, value in evidence.machine.items()}
    versions: dict[str, dict[str, None]] = {}
    for evidence in one.evidence:
        for name, version in evidence.versions.items():
            versions.setdefault(name, {})[version] = None
    parts = [
        " to ".join(dict.fromkeys((dates[0], dates[-1]))) if dates else "",
        str(machine.get("processor") or ""),
        f"{size(machine['memory'])} of memory" if machine.get("memory") else "",
        str(machine.get("system") or ""),
        *(f"{name} {' and '.join(known)}" for name, known in versions.items()),
    ]
    return f"{', '.join(filter(None, parts))}." if any(parts) else ""


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

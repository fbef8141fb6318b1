"""Advice as a document for people, and as JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from gridbench.advise.advice import COMPUTING, GROUPS, Advice, LimitsCell, LimitsMap
from gridbench.advise.profiled import Profiled
from gridbench.advise.prose import (
    between,
    rate_text,
    sentences,
    total_text,
    undetermined,
    warnings,
)
from gridbench.advise.trial import Trial, TriedSplit, left_out, trial_sentences, trial_warnings
from gridbench.advise.uneven import Recorded
from gridbench.advise.work import DivisibleWork
from gridbench.formats import (
    NOTHING,
    as_given,
    counted,
    duration,
    fixed,
    percent,
    rough,
    signed_percent,
    size,
)
from gridbench.model.document import estimates_table
from gridbench.model.model import PipelineModel
from gridbench.pages.chart import Chart, figure
from gridbench.pages.colours import SERIES, engine_colours
from gridbench.pages.document import (
    EVERYWHERE,
    WRITTEN,
    Block,
    Bullets,
    Document,
    Medium,
    Paragraph,
    Section,
    TableBlock,
    media_of,
)
from gridbench.pages.table import Column, Table, facts, table_of
from gridbench.statistics.claims import answer_record

ADVISED = "advised"
"""The style of the row of the advised split."""
_IN_LINES: frozenset[Medium] = frozenset({"markdown", "terminal"})
"""Where no chart shows the same."""


def document_of(
    advice: Advice, trial: Trial | None = None, maps: Sequence[LimitsMap] = ()
) -> Document:
    """The advice, what splits took that were tried, and the bottleneck over task time and data."""
    cores = counted(advice.split.cores, advice.work.unit)
    return Document(
        kind="gridbench advise",
        title="gridbench advise",
        heading=f"How to divide {duration(advice.work.seconds)} of work",
        subheading=f"{_requested(advice.work)} · {_source(advice.model)}",
        sentences=sentences(advice),
        notices=warnings(advice),
        summary=[
            total_chart(advice, trial),
            Paragraph(
                f"Total time over the number of tasks, on {cores} (fewer if there are fewer tasks)."
                " The band holds 9 of 10 runs; the dotted line is the work without any overhead."
            ),
            TableBlock("", facts(_first(advice))),
            TableBlock(f"On up to {cores}", _points_table(advice), media=_IN_LINES),
        ],
        sections=[
            *([_maps_section(maps)] if maps else []),
            *([Section("tried", "Measured splits", trial_blocks(trial))] if trial else []),
            Section("time", "Where the time goes", _time_blocks(advice)),
            Section(
                "model",
                "The model",
                [
                    Paragraph(
                        "Every task is followed through client, processors, links and workers:"
                        f" {_shape(advice.model)}."
                    ),
                    TableBlock("The parameters of the model", _terms(advice.model), folded=True),
                ],
            ),
        ],
    )


def trial_document(trial: Trial) -> Document:
    """What splits took, and how good the advised one is among them, for a terminal."""
    return Document(
        kind="gridbench advise",
        title="gridbench advise",
        heading="Measured splits",
        sentences=trial_sentences(trial),
        notices=trial_warnings(trial),
        summary=[one for one in trial_blocks(trial) if "terminal" in media_of(one)],
    )


def trial_blocks(trial: Trial) -> list[Block]:
    """The measured splits, and those that were left out."""
    return [
        Bullets(trial_sentences(trial), media=WRITTEN),
        Bullets(trial_warnings(trial), media=WRITTEN),
        Paragraph(
            f"Each split was run {counted(trial.rounds, 'time')}, in random order. The table has"
            " medians, the smallest and the largest total, the difference from the expected total,"
            " and the ratio to the fastest split."
        ),
        TableBlock("Measured splits: medians and ranges", splits_table(trial), media=EVERYWHERE),
        Bullets([f"left out: {one}" for one in left_out(trial)], media=EVERYWHERE),
    ]


# ---- Tables


def _points_table(advice: Advice) -> Table:
    return table_of(
        [
            Column("tasks", lambda one: one.tasks),
            Column("total", lambda one: total_text(one.prediction)),
            Column("90 % interval", lambda one: between(one.prediction)),
            Column("without overhead", lambda one: rough(one.prediction.ideal)),
        ],
        advice.points,
        row_style=lambda one: ADVISED if one.tasks == advice.split.tasks else "",
    )


def splits_table(trial: Trial) -> Table:
    """A row for each split that was run."""
    best = trial.best
    return table_of(
        [
            Column("tasks", lambda one: one.tasks),
            Column("cores", lambda one: one.cores),
            Column("expected", lambda one: duration(one.expected)),
            Column("measured", lambda one: duration(one.median)),
            Column("from", lambda one: duration(one.smallest)),
            Column("to", lambda one: duration(one.largest)),
            Column("off by", lambda one: signed_percent(one.difference)),
            Column("ratio", lambda one: fixed(one.median / best, 2) if best else NOTHING),
        ],
        trial.tried,
        row_style=lambda one: ADVISED if one.advised else "",
    )


def _time_blocks(advice: Advice) -> list[Block]:
    total = advice.expected.total
    parts = table_of(
        [
            Column("part", lambda one: one[0], words=True),
            Column("time", lambda one: rough(one[1])),
            Column("share", lambda one: percent(one[1] / total, 0)),
        ],
        advice.parts,
    )
    helps = table_of(
        [
            Column("change", lambda one: one.what, words=True),
            Column("total", lambda one: rough(one.total)),
            Column("less", lambda one: percent(1 - one.total / total, 0)),
        ],
        advice.helps,
    )
    return [
        TableBlock("Parts of the total", parts, media=EVERYWHERE),
        TableBlock(
            "What would help",
            helps,
            "Each change alone, with the work divided as advised.",
            otherwise="No single change would help.",
        ),
    ]


def _terms(model: PipelineModel | Profiled) -> Table:
    if isinstance(model, PipelineModel):
        return estimates_table(model.fit.estimates)
    return table_of(
        [
            Column("what", lambda one: one.name, words=True),
            Column("value", lambda one: as_given(one.value, one.unit)),
            Column("where it is from", lambda one: one.source, words=True),
        ],
        model.system.given,
    )


# ---- Charts


def total_chart(advice: Advice, trial: Trial | None) -> Chart:
    """Total time over the number of tasks: expected, and of the splits that were run."""
    colour = engine_colours([advice.model.name])[advice.model.name]
    tasks = [one.tasks for one in advice.points]
    points = [one.prediction for one in advice.points]
    best = f"{advice.split.tasks:,} tasks: {rough(advice.expected.total)}"
    hidden = {"mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
    band = {"fill": "tonexty", "fillcolor": f"{colour}2e"}
    return figure(
        [
            {"x": tasks, "y": [one.low for one in points], **hidden},
            {"x": tasks, "y": [one.high for one in points], **hidden, **band},
            {
                "x": tasks,
                "y": [one.ideal for one in points],
                "name": "without overhead",
                "mode": "lines",
                "hoverinfo": "skip",
                "line": {"color": "var(--soft)", "width": 1.5, "dash": "dot"},
            },
            {
                "x": tasks,
                "y": [one.total for one in points],
                "name": "expected",
                "mode": "lines+markers",
                "line": {"color": colour, "width": 2},
                "marker": {"size": 6},
                "text": [
                    f"{n:,} tasks: {rough(p.total)}" for n, p in zip(tasks, points, strict=True)
                ],
                "hoverinfo": "text",
            },
            {
                "x": [advice.split.tasks],
                "y": [advice.expected.total],
                "name": f"best: {best}",
                "mode": "markers",
                "marker": {"size": 14, "symbol": "star", "color": "var(--ink)"},
                "text": [best],
                "hoverinfo": "text",
            },
            *(_measured_traces(advice, trial) if trial else []),
        ],
        x={"title": "tasks", "type": "log"},
        y={"title": "seconds", "type": "log"},
        label="Total time over the number of tasks",
        name="total",
        height=420,
        table=_points_table(advice),
    )


def _measured_traces(advice: Advice, trial: Trial) -> list[dict[str, Any]]:
    """Splits that were run on the advised cores, and those on all cores that there are."""
    own = [one for one in trial.tried if one.cores == min(one.tasks, advice.split.cores)]
    more = [one for one in trial.tried if one not in own]
    return [
        _measured_trace(f"measured on up to {counted(cores, 'core')}", splits, symbol)
        for cores, splits, symbol in (
            (advice.split.cores, own, "diamond"),
            (advice.work.cores, more, "square"),
        )
        if splits
    ]


def _measured_trace(name: str, splits: Sequence[TriedSplit], symbol: str) -> dict[str, Any]:
    return {
        "x": [one.tasks for one in splits],
        "y": [one.median for one in splits],
        "name": name,
        "mode": "markers",
        "marker": {"size": 9, "color": "var(--ink)", "symbol": symbol},
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [one.largest - one.median for one in splits],
            "arrayminus": [one.median - one.smallest for one in splits],
            "color": "var(--ink)",
            "thickness": 1.5,
            "width": 4,
        },
        "text": [
            f"{counted(one.tasks, 'task')} on {counted(one.cores, 'core')} took"
            f" {duration(one.median)}"
            for one in splits
        ],
        "hoverinfo": "text",
    }


def _maps_section(maps: Sequence[LimitsMap]) -> Section:
    about = Paragraph(
        "Tasks of one time, each with input of its own, four for each core. The colour is the part"
        " of the total that is largest. Empty squares are beyond what was measured."
    )
    charts = [map_chart(number, one) for number, one in enumerate(maps)]
    return Section("bottlenecks", "Bottlenecks by task time and data", [about, *charts])


def map_chart(number: int, one: LimitsMap) -> Chart:
    """A square for each task time and data of a task, coloured by the bottleneck."""
    table = table_of(
        [
            Column("task", lambda cell: duration(cell.seconds)),
            Column("data", lambda cell: size(cell.bytes_in)),
            Column("bottleneck", lambda cell: cell.limits),
            Column("share", lambda cell: percent(cell.share, 0)),
            Column("efficiency", lambda cell: percent(cell.efficiency, 0)),
            Column("measured", lambda cell: "" if cell.measured else "no"),
        ],
        one.cells,
    )
    colours = dict(zip((COMPUTING, *(what for what, _ in GROUPS)), SERIES, strict=False))
    sizes = [size(each) for each in dict.fromkeys(cell.bytes_in for cell in one.cells)]
    traces = [
        _map_trace(what, colour, [cell for cell in one.cells if cell.limits == what])
        for what, colour in colours.items()
    ]
    return figure(
        [trace for trace in traces if trace["x"]],
        x={"title": "seconds of a task", "type": "log"},
        y={
            "title": "data of a task",
            "type": "category",
            "categoryorder": "array",
            "categoryarray": sizes,
        },
        label=f"Bottleneck of {one.name}, by task time and data of a task",
        name=f"limits-{number}",
        title=f"{one.name} on {counted(one.cores, 'core')}, {one.tasks:,} tasks",
        height=420,
        table=table,
    )


def _map_trace(what: str, colour: str, cells: Sequence[LimitsCell]) -> dict[str, Any]:
    return {
        "x": [cell.seconds for cell in cells],
        "y": [size(cell.bytes_in) for cell in cells],
        "name": what,
        "mode": "markers",
        "marker": {
            "size": 22,
            "color": colour,
            "line": {"width": 3, "color": colour},
            "symbol": ["square" if cell.measured else "square-open" for cell in cells],
        },
        "text": [
            f"{duration(cell.seconds)}, {size(cell.bytes_in)}: {what} {percent(cell.share, 0)},"
            f" efficiency {percent(cell.efficiency, 0)}"
            f"{'' if cell.measured else ', beyond what was measured'}"
            for cell in cells
        ],
        "hoverinfo": "text",
    }


# ---- Texts


def _requested(work: DivisibleWork) -> str:
    known = work.roofline
    kind = "computes" if work.computes else "waits"
    units = "cores"
    if known.threads > 1:
        kind += f" with {known.threads:,} threads in each task"
        units = "workers"
    requested = f" of the {work.cores_asked:,} requested" if work.cores_asked else ""
    parts = [
        f"{duration(work.seconds)} of work that {kind}",
        f"up to {work.cores:,} {units}{requested}",
    ]
    for value, what in (
        (known.traffic, "through memory"),
        (work.bytes_in, "of input, divided"),
        (work.bytes_in_each, "of input in each task"),
        (work.bytes_shared, "of shared data"),
        (work.bytes_out, "of output, divided"),
        (work.bytes_out_each, "of output of each task"),
    ):
        parts += [f"{size(value)} {what}"] if value else []
    if work.uneven:
        parts.append(work.uneven.describe())
    return ", ".join([*parts, "warm start" if work.warm else "cold start"])


def _first(advice: Advice) -> list[tuple[str, str]]:
    """The figures that stand above all others."""
    expected, known = advice.expected, advice.work.roofline
    found = [
        ("Tasks", f"{advice.split.tasks:,}"),
        ("Cores" if known.threads == 1 else "Tasks at once", f"{advice.split.cores:,}"),
        ("Expected total", total_text(expected)),
        ("9 of 10 runs take", between(expected)),
        ("Without any overhead", rough(expected.ideal)),
        ("Bottleneck", advice.limit[0]),
    ]
    if known.threads > 1:
        found.append(("Threads of each task", f"{known.threads:,}"))
    if known.bandwidth:
        found.append(("Memory bandwidth", rate_text(advice.work)))
    return found


def _source(model: PipelineModel | Profiled) -> str:
    """The system or the measurements behind the advice."""
    return model.system.title if isinstance(model, Profiled) else model.fit.place.describe()


def _shape(model: PipelineModel | Profiled) -> str:
    return "a profile" if isinstance(model, Profiled) else model.fit.shape.describe()


# ---- JSON


def to_record(
    advice: Advice, trial: Trial | None = None, maps: Sequence[LimitsMap] = ()
) -> dict[str, Any]:
    """All of it; `tried` is None if nothing was."""
    reported = sentences(advice)
    return {
        "engine": advice.model.name,
        "work": _work(advice.work),
        "advised": asdict(advice.split),
        "expected": asdict(advice.expected),
        "within": asdict(advice.within) if advice.within else None,
        "origin": advice.origin or None,
        "parts": dict(advice.parts),
        "limits": advice.limit[0],
        "points": [{"tasks": one.tasks} | asdict(one.prediction) for one in advice.points],
        "helps": [asdict(one) for one in advice.helps],
        "sharing": asdict(advice.sharing) if advice.sharing else None,
        "from_where": asdict(advice.from_where) if advice.from_where else None,
        **answer_record(reported[0]),
        "sentences": reported,
        "warnings": warnings(advice),
        "undetermined": (
            [] if isinstance(advice.model, Profiled) else undetermined(advice.model.fit)
        ),
        "maps": [one.to_dict() for one in maps],
        "tried": None if trial is None else trial_record(trial),
    }


def _work(work: DivisibleWork) -> dict[str, Any]:
    """Without the time of each task of a log."""
    found = asdict(work)
    if isinstance(work.uneven, Recorded):
        del found["uneven"]["done"]
    return found


def trial_record(trial: Trial) -> dict[str, Any]:
    """Every run's total, in seconds, and what follows from them."""
    return {
        "rounds": trial.rounds,
        "seed": trial.seed,
        "splits": [_split(one) for one in trial.tried],
        "left_out": [asdict(one) for one in trial.left_out],
        "failed": [asdict(one) for one in trial.failed],
        "runs": trial.runs,
        "disturbed": trial.disturbed,
        "model_host": trial.model_host or None,
        "advised": None if trial.advised is None else _split(trial.advised),
        "rival": None if trial.rival is None else _split(trial.rival),
        "ratio": trial.ratio,
        "ratio_bounds": trial.bounds,
        "noise": trial.noise,
        "close": trial.close,
        "sentences": trial_sentences(trial),
        "warnings": trial_warnings(trial),
    }


def _split(one: TriedSplit) -> dict[str, Any]:
    names = ("median", "smallest", "largest", "difference")
    return asdict(one) | {name: getattr(one, name) for name in names}

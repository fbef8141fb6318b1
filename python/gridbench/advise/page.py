"""The advice as one HTML page; its picture is drawn by assets/advise.js."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gridbench.advise.advice import COMPUTING, GROUPS, Advice, LimitsMap
from gridbench.advise.profiled import Profiled
from gridbench.advise.prose import between, rate_told, sentences, total_told, warnings
from gridbench.advise.trial import Trial, TriedSplit
from gridbench.advise.trial_prose import HEAD, left_out, row, trial_sentences, trial_warnings
from gridbench.advise.work import DivisibleWork
from gridbench.atomic_write import write_file
from gridbench.formats import NOTHING, as_given, counted, duration, percent, rough, size
from gridbench.model.model import PipelineModel
from gridbench.model.terminal import place_told, term_value
from gridbench.pages import render as pages
from gridbench.pages.chart import Chart
from gridbench.pages.colours import SERIES
from gridbench.pages.table import Table


def write_advice(
    advice: Advice, path: Path, trial: Trial | None = None, maps: Sequence[LimitsMap] = ()
) -> None:
    """Write the page, completely or not at all. InputError if `path` cannot be written."""
    write_file(path, render(advice, trial, maps))


def render(advice: Advice, trial: Trial | None = None, maps: Sequence[LimitsMap] = ()) -> str:
    """The whole page as HTML; with what splits really took, if they were tried, and with maps of
    what limits, if there are any."""
    first, *others = sentences(advice)
    data = _data(advice) | {
        "tried": [] if trial is None else _groups(advice, trial),
        "maps": {str(number): _map(one) for number, one in enumerate(maps)},
    }
    return pages.render(
        "advise/advise.html",
        "gridbench advise",
        data,
        scripts=["advise/advise.js"],
        engines=[advice.model.name],
        kind="gridbench advise",
        heading=first,
        subheading=f"{_asked(advice.work)} · {_behind(advice.model)}",
        navigation=[],
        notices=warnings(advice),
        sentences=others,
        first=_first(advice),
        cores=counted(advice.split.cores, advice.work.unit),
        chart=Chart("total", "Total time over the number of tasks", table=_points(advice)),
        maps=[_drawn(number, one) for number, one in enumerate(maps)],
        trial=trial and _tried(trial),
        parts=_parts(advice),
        helps=_helps(advice),
        shape=_shape(advice.model),
        terms=_terms(advice.model),
    )


def _data(advice: Advice) -> dict[str, Any]:
    points = [point.prediction for point in advice.points]
    return {
        "tasks": [point.tasks for point in advice.points],
        "total": [one.total for one in points],
        "low": [one.low for one in points],
        "high": [one.high for one in points],
        "texts": [
            f"{point.tasks:,} tasks: {rough(point.prediction.total)}" for point in advice.points
        ],
        "best": advice.split.tasks,
        "best_text": f"{advice.split.tasks:,} tasks: {rough(advice.expected.total)}",
        "ideal": [one.ideal for one in points],
    }


def _asked(work: DivisibleWork) -> str:
    known = work.roofline
    kind = "computes" if work.computes else "waits"
    units = "cores"
    if known.threads > 1:
        kind += f" with {known.threads:,} threads in each task"
        units = "workers"
    asked = f" of the {work.cores_asked:,} asked for" if work.cores_asked else ""
    parts = [
        f"{duration(work.seconds)} of work that {kind}",
        f"up to {work.cores:,} {units}{asked}",
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
        parts.append(work.uneven.told())
    return ", ".join([*parts, "warm start" if work.warm else "cold start"])


def _first(advice: Advice) -> list[tuple[str, str]]:
    """The figures that stand above all others."""
    expected, known = advice.expected, advice.work.roofline
    found = [
        ("Tasks", f"{advice.split.tasks:,}"),
        ("Cores" if known.threads == 1 else "Tasks at once", f"{advice.split.cores:,}"),
        ("Expected total", total_told(expected)),
        ("9 of 10 runs take", between(expected)),
        ("Without any overhead", rough(expected.ideal)),
        ("Bottleneck", advice.limit[0]),
    ]
    if known.threads > 1:
        found.append(("Threads of each task", f"{known.threads:,}"))
    if known.bandwidth:
        found.append(("Memory bandwidth", rate_told(advice.work)))
    return found


def _tried(trial: Trial) -> dict[str, Any]:
    """What the template shows of splits that were run."""
    styles = ["advised" if one.advised else "" for one in trial.tried]
    return {
        "notices": trial_warnings(trial),
        "sentences": trial_sentences(trial),
        "rounds": counted(trial.rounds, "time"),
        "splits": Table(HEAD, [row(trial, one) for one in trial.tried], styles),
        "left_out": left_out(trial),
    }


def _groups(advice: Advice, trial: Trial) -> list[dict[str, Any]]:
    """For the picture: splits that were run on its cores, and those on all that there are."""
    own = [one for one in trial.tried if one.cores == min(one.tasks, advice.split.cores)]
    more = [one for one in trial.tried if one not in own]
    return [
        _group(f"measured on up to {counted(cores, 'core')}", splits)
        for cores, splits in ((advice.split.cores, own), (advice.work.cores, more))
        if splits
    ]


def _group(name: str, splits: Sequence[TriedSplit]) -> dict[str, Any]:
    return {
        "name": name,
        "tasks": [one.tasks for one in splits],
        "median": [one.median for one in splits],
        "smallest": [one.smallest for one in splits],
        "largest": [one.largest for one in splits],
        "texts": [
            f"{counted(one.tasks, 'task')} on {counted(one.cores, 'core')} took"
            f" {duration(one.median)}"
            for one in splits
        ],
    }


def _points(advice: Advice) -> Table:
    rows = [
        [
            f"{point.tasks:,}",
            total_told(point.prediction),
            between(point.prediction),
            rough(point.prediction.ideal),
        ]
        for point in advice.points
    ]
    return Table(["tasks", "total", "90 % interval", "without overhead"], rows)


def _parts(advice: Advice) -> Table:
    total = advice.expected.total
    rows = [[what, rough(part), percent(part / total, 0)] for what, part in advice.parts]
    return Table(["part", "time", "share"], [*rows, ["total", rough(total), ""]])


def _helps(advice: Advice) -> Table:
    total = advice.expected.total
    rows = [[one.what, rough(one.total), percent(1 - one.total / total, 0)] for one in advice.helps]
    return Table(["change", "total", "less"], rows)


def _drawn(number: int, one: LimitsMap) -> Chart:
    rows = [
        [
            duration(cell.seconds),
            size(cell.bytes_in),
            cell.limits,
            percent(cell.share, 0),
            percent(cell.efficiency, 0),
            "" if cell.measured else "no",
        ]
        for cell in one.cells
    ]
    return Chart(
        "limits",
        f"Bottleneck of {one.name}, by task time and data of a task",
        name=str(number),
        title=f"{one.name} on {counted(one.cores, 'core')}, {one.tasks:,} tasks",
        table=Table(["task", "data", "what limits", "share", "efficiency", "measured"], rows),
    )


def _map(one: LimitsMap) -> list[dict[str, Any]]:
    """For the picture: the cells, by what limits in them."""
    sizes = [size(each) for each in dict.fromkeys(cell.bytes_in for cell in one.cells)]
    kinds = [COMPUTING, *(what for what, _ in GROUPS)]
    found = []
    for number, what in enumerate(kinds):
        cells = [cell for cell in one.cells if cell.limits == what]
        texts = [
            f"{duration(cell.seconds)}, {size(cell.bytes_in)}: {what}"
            f" {percent(cell.share, 0)}, efficiency {percent(cell.efficiency, 0)}"
            f"{'' if cell.measured else ', beyond what was measured'}"
            for cell in cells
        ]
        found.append(
            {
                "name": what,
                "colour": SERIES[number],
                "seconds": [cell.seconds for cell in cells],
                "sizes": [size(cell.bytes_in) for cell in cells],
                "measured": [cell.measured for cell in cells],
                "all_sizes": sizes,
                "texts": texts,
            }
        )
    return found


def _behind(model: PipelineModel | Profiled) -> str:
    """What the advice is of."""
    return model.system.title if isinstance(model, Profiled) else place_told(model.fit.place)


def _shape(model: PipelineModel | Profiled) -> str:
    return "a profile" if isinstance(model, Profiled) else model.fit.shape.told()


def _terms(model: PipelineModel | Profiled) -> Table:
    if isinstance(model, Profiled):
        given = [
            [one.name, as_given(one.value, one.unit), one.source] for one in model.system.given
        ]
        return Table(["what", "value", "where it is from"], given)
    rows = []
    for one in model.fit.estimates:
        low, high = term_value(one.low, one.term.unit), term_value(one.high, one.term.unit)
        value = term_value(one.value, one.term.unit) if one.determined else NOTHING
        between = f"{low} to {high}" if one.determined else f"below {high}"
        rows.append([one.term.name, value, between, one.term.meaning])
    return Table(["term", "value", "95 % interval", "what it is"], rows)

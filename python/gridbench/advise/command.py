"""`gridbench advise`: from a work to a decision."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gridbench.advise.advice import Advice, advise
from gridbench.advise.calibration import calibrate
from gridbench.advise.page import write_advice
from gridbench.advise.prose import sentences, warnings
from gridbench.advise.work import Work
from gridbench.errors import InputError
from gridbench.model.command import model_of
from gridbench.model.fit import workers_for
from gridbench.model.model import Model
from gridbench.model.saved import load_models, save_models
from gridbench.model.source import read_source
from gridbench.model.terminal import place_told
from gridbench.report.text import duration, percent

_DEFAULT_ENGINE = "gridrpc-native"


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What the user asked for."""

    work: Work
    engine: str | None = None
    """None: the only one of `source`; without that, gridrpc-native."""
    source: Path | None = None
    """A saved model, or a folder of runs; None: calibrate."""
    folder: Path | None = None
    """None: one below `runs`, named after the time."""
    as_json: bool = False


def give_advice(request: Request) -> int:
    """Find a model, think, tell, and write the page. InputError for what makes no sense."""
    console = Console(stderr=True, highlight=False)
    model = _model(request, console)
    advice = advise(model, request.work)
    folder = request.folder or Path("runs", time.strftime("advice-%Y-%m-%dT%H-%M-%S"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot make the folder: {error.strerror}", file=folder, remedy="choose another --out"
        ) from None
    save_models([model], folder / "model.json")
    write_advice(advice, folder / "report.html")
    if request.as_json:
        click.echo(json.dumps(to_record(advice), indent=1, allow_nan=False))
    else:
        _print(advice)
    print(f"results: {folder}", file=sys.stderr)
    return 0


def to_record(advice: Advice) -> dict[str, Any]:
    """For JSON."""
    return {
        "engine": advice.model.fit.place.engine,
        "work": asdict(advice.work),
        "advised": asdict(advice.split),
        "expected": asdict(advice.expected),
        "parts": dict(advice.parts),
        "limits": advice.limit[0],
        "points": [{"tasks": one.tasks} | asdict(one.prediction) for one in advice.points],
        "helps": [asdict(one) for one in advice.helps],
        "sharing": asdict(advice.sharing) if advice.sharing else None,
        "sentences": sentences(advice),
        "warnings": warnings(advice),
    }


def _model(request: Request, console: Console) -> Model:
    if request.source is None:
        return calibrate(request.engine or _DEFAULT_ENGINE, request.work, console)
    if request.source.is_file():
        models = load_models(request.source)
    else:
        models = []
        places = read_source([request.source]).by_place()
        for place, observations in places.items():
            if request.engine in (None, place.engine):
                console.print(f"{place_told(place)}: fitting a model to {len(observations)} runs")
                with workers_for(observations) as executor:
                    models.append(model_of(observations, test=False, executor=executor))
    chosen = [model for model in models if request.engine in (None, model.fit.place.engine)]
    if len(chosen) == 1:
        return chosen[0]
    known = "; ".join(sorted({place_told(model.fit.place) for model in models}))
    if not chosen:
        raise InputError(
            f"there is no model of the engine `{request.engine}`"
            if request.engine
            else "there are no models",
            file=request.source,
            remedy=f"there are: {known}" if known else "give another --from",
        )
    raise InputError(
        f"there are models of several engines or places: {known}",
        file=request.source,
        remedy="choose one with --engine, or a folder that holds runs of one place",
    )


def _print(advice: Advice) -> None:
    console = Console(highlight=False)
    for number, text in enumerate(sentences(advice)):
        console.print(Text(text, style="bold" if number == 0 else ""))
    for text in warnings(advice):
        console.print(Text(text, style="yellow"))
    parts = Table(title="Where the time goes")
    for head in ("part", "time", "share"):
        parts.add_column(head, justify="left" if head == "part" else "right")
    for what, part in advice.parts:
        parts.add_row(what, duration(part), percent(part / advice.expected.total))
    console.print(parts)
    points = Table(title=f"On {advice.split.cores:,} cores")
    for head in ("tasks", "total", "90 % interval"):
        points.add_column(head, justify="right")
    for point in advice.points:
        one = point.prediction
        style = "bold" if point.tasks == advice.split.tasks else ""
        between = f"{duration(one.low)} to {duration(one.high)}"
        points.add_row(f"{point.tasks:,}", duration(one.total), between, style=style)
    console.print(points)

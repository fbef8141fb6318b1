"""The advice, and what came of trying it, in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from gridbench.advise.advice import Advice
from gridbench.advise.prose import between, sentences, total_told, warnings
from gridbench.advise.trial import Trial
from gridbench.advise.trial_prose import HEAD, left_out, row, trial_sentences, trial_warnings
from gridbench.formats import counted, percent, rough
from gridbench.terminal import new_table


def print_advice(console: Console, advice: Advice) -> None:
    """Sentences, where the time goes, and the total over the number of tasks."""
    for number, text in enumerate(sentences(advice)):
        console.print(Text(text, style="bold" if number == 0 else ""))
    for text in warnings(advice):
        console.print(Text(text, style="yellow"))
    parts = new_table("Where the time goes", words=("part",), numbers=("time", "share"))
    for what, part in advice.parts:
        parts.add_row(what, rough(part), percent(part / advice.expected.total, 0))
    console.print(parts)
    points = new_table(
        f"On up to {counted(advice.split.cores, advice.work.unit)}",
        numbers=("tasks", "total", "90 % interval"),
    )
    for point in advice.points:
        one = point.prediction
        style = "bold" if point.tasks == advice.split.tasks else ""
        points.add_row(f"{point.tasks:,}", total_told(one), between(one), style=style)
    console.print(points)


def print_trial(console: Console, trial: Trial) -> None:
    """What splits took, and how good the advised one is among them."""
    if trial.tried:
        table = new_table(
            "Tried: medians, from the smallest to the largest; ratio to the best", numbers=HEAD
        )
        for one in trial.tried:
            table.add_row(*row(trial, one), style="bold" if one.advised else "")
        console.print(table)
    for text in left_out(trial):
        console.print(Text(f"left out: {text}"))
    for text in trial_warnings(trial):
        console.print(Text(text, style="yellow"))
    for number, text in enumerate(trial_sentences(trial)):
        console.print(Text(text, style="bold" if number == 0 else ""))

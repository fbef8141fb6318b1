"""What scenarios answer, in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from gridbench.scenario.cases import cells_of
from gridbench.scenario.present.answers import QUESTIONS, answers
from gridbench.scenario.present.notes import COUNTS_HEAD, counts, measured_here
from gridbench.scenario.present.verdict import verdict
from gridbench.scenario.results import read_results
from gridbench.terminal import new_table, say


def print_answers(console: Console, folders: Sequence[Path]) -> None:
    """For each folder of results: the question, what each engine's cases answer, and counts."""
    for folder in folders:
        header, results = read_results(folder)
        scenario = int(header.options.get("scenario", 1))
        say(console, f"Scenario {scenario}. {QUESTIONS[scenario]}")
        cells = cells_of(results)
        say(console, verdict(cells))
        for engine, sentences in answers(scenario, cells, again=measured_here(header)):
            say(console, f"  {engine}")
            for sentence in sentences:
                say(console, f"  - {sentence}")
        table = new_table(words=COUNTS_HEAD[:1], numbers=COUNTS_HEAD[1:])
        for row in counts(results):
            table.add_row(*row)
        console.print(table)

"""`gridbench check`: each result of the sources against each rule of its kind."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from gridbench.command_line import CommandWithExamples
from gridbench.errors import InputError, print_warning
from gridbench.formats import counted
from gridbench.printing import json_option, print_json
from gridbench.result_kind import RUNS, model_rules, module_of, rules_for, rules_of
from gridbench.rules import Finding, Rules
from gridbench.terminal import new_console, new_table, printable

_STYLES = {"kept": "green", "broken": "bold red", "not known": "yellow"}


@dataclass(slots=True)
class _Judged:
    """The results of one kind."""

    rules: Rules[Any]
    results: list[Any] = field(default_factory=list)
    findings: dict[Path, list[Finding]] = field(default_factory=dict)
    """Of each, by where it lies."""


RulesFor = Callable[[Path], Rules[Any] | None]
"""The rules for a folder or file; None: it holds no results that they judge."""


def check_results(
    sources: Sequence[Path], *, as_json: bool, rules_for: RulesFor = rules_for
) -> int:
    """Print the findings of the rules; returns the exit status, 1 if one is broken. InputError if a
    source is not a result."""
    judged = _judge(sources, rules_for)
    together = [one for kind in judged for one in kind.rules.judge_together(kind.results)]
    findings = [one for kind in judged for own in kind.findings.values() for one in own]
    if as_json:
        print_json(_document(judged, together))
    else:
        console = new_console()
        for kind in judged:
            for place, own in kind.findings.items():
                _print(console, str(place), own)
        if together:
            _print(console, "all of them", together)
        console.print(Text(_describe([*findings, *together])))
    return int(any(one.outcome == "broken" for one in (*findings, *together)))


def _judge(sources: Sequence[Path], rules_for: RulesFor) -> list[_Judged]:
    """What the rules say of each result; one that is named twice is judged once. What lies below a
    source and is no result is left out with a warning. InputError if nothing else is there."""
    judged: dict[str, _Judged] = {}
    seen: set[tuple[str, Path]] = set()
    refused: InputError | None = None
    for source in sources:
        for rules, place, named in _results(source, rules_for):
            name = (rules.key, place.resolve())
            if name in seen:
                continue
            seen.add(name)
            try:
                result = rules.read(place)
            except InputError as error:
                if named:
                    raise
                refused = refused or error
                print_warning(f"left out: {error}")
                continue
            kind = judged.setdefault(rules.key, _Judged(rules))
            kind.results.append(result)
            kind.findings[place] = rules.judge(result)
    if refused and not judged:
        raise refused
    return list(judged.values())


def _results(source: Path, rules_for: RulesFor) -> list[tuple[Rules[Any], Path, bool]]:
    """What is to be judged in a source: rules, place, and whether the source itself is it, and not
    a folder above. InputError if that is nothing."""
    found = [
        (rules, place, folder == source)
        for folder in _with_folders_below(source)
        if (rules := rules_for(folder)) is not None
        for place in rules.places(folder)
    ]
    for rules in (rules_of(module_of(RUNS)), model_rules()):
        found += [(rules, place, place == source) for place in rules.places(source)]
    if not found:
        raise InputError(
            "holds no run, no model, and no results of another benchmark",
            file=source,
            remedy="give the folder or file that `--out` of a benchmark named, or one above it",
        )
    return found


def _with_folders_below(source: Path) -> Iterator[Path]:
    yield source
    if source.is_dir():
        yield from sorted(path for path in source.rglob("*") if path.is_dir())


def _document(judged: Sequence[_Judged], together: Sequence[Finding]) -> dict[str, object]:
    """What `--json` prints: the same as the tables."""
    by_kind = {
        kind.rules.key: {
            str(place): [asdict(one) for one in own] for place, own in kind.findings.items()
        }
        for kind in judged
    }
    return by_kind | {"all": [asdict(one) for one in together]}


def _print(console: Console, name: str, findings: Sequence[Finding]) -> None:
    table = new_table(name, words=("rule", "", "what was seen"))
    for one in findings:
        outcome = Text(one.outcome, style=_STYLES[one.outcome])
        table.add_row(one.rule, outcome, Text(printable(one.told)))
    console.print(table)


def _describe(findings: Sequence[Finding]) -> str:
    broken = sum(one.outcome == "broken" for one in findings)
    unknown = sum(one.outcome == "not known" for one in findings)
    if broken:
        return f"Nothing should be claimed from this: {counted(broken, 'rule')} broken."
    if unknown:
        return f"No rule is broken, but of {unknown} it is not known."
    return "All rules are kept."


@click.command(
    cls=CommandWithExamples,
    examples=(
        "gridbench check runs/2031-05-04T10-30-00",
        "gridbench check runs/first runs/second runs/third --json",
        "gridbench check runs/micro runs/sync-null",
    ),
)
@click.argument(
    "sources", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="DIR_OR_FILE..."
)
@json_option
def check(sources: tuple[Path, ...], as_json: bool) -> None:
    """Judge results by the rules of docs/rules.md, each kind by its own.

    A source is the folder of a run or scenario, of `gridbench micro`, `gridbench sync`, `gridbench
    data`, `gridbench data crossover` or `gridbench advise`, or a folder above these.

    Figures are recomputed from timestamps where possible. Exit status 1 says that a rule is
    broken, so that nothing should be claimed from the result.
    """
    sys.exit(check_results(sources, as_json=as_json))

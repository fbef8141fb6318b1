"""`gridbench check`: every run of the folders against every rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.text import Text

from gridbench.check.rules import Case, Finding, check_repetition, check_run, read_case
from gridbench.errors import InputError
from gridbench.formats import counted
from gridbench.printing import print_json
from gridbench.run.folders import runs_below
from gridbench.tables import new_table

_STYLES = {"kept": "green", "broken": "bold red", "not known": "yellow"}


def check(sources: Sequence[Path], *, as_json: bool) -> int:
    """Tell what the rules say. The exit status; 1: one is broken. InputError for what is no run."""
    places = [path for source in sources for path in _runs(source)]
    found: dict[str, list[Finding]] = {}
    cases: list[Case] = []
    for place in places:
        case = read_case(place)
        cases.append(case)
        found[str(place)] = check_run(case)
    whole = check_repetition(cases)
    if as_json:
        record = {name: [asdict(one) for one in own] for name, own in found.items()}
        print_json({"runs": record, "all": asdict(whole)})
    else:
        console = Console(highlight=False)
        for name, own in found.items():
            _print(console, name, own)
        _print(console, "all of them", [whole])
        console.print(Text(_told([one for own in found.values() for one in own] + [whole])))
    broken = whole.outcome == "broken" or any(
        one.outcome == "broken" for own in found.values() for one in own
    )
    return int(broken)


def _runs(source: Path) -> list[Path]:
    found = runs_below(source)
    if not found:
        raise InputError(
            "holds no run",
            file=source,
            remedy="give the folder of a run, as `gridbench run --out` made it, or one above it",
        )
    return found


def _print(console: Console, name: str, findings: Sequence[Finding]) -> None:
    table = new_table(name)
    for head in ("rule", "", "what was seen"):
        table.add_column(head, overflow="fold")
    for one in findings:
        table.add_row(one.rule, Text(one.outcome, style=_STYLES[one.outcome]), one.told)
    console.print(table)


def _told(findings: Sequence[Finding]) -> str:
    broken = sum(one.outcome == "broken" for one in findings)
    unknown = sum(one.outcome == "not known" for one in findings)
    if broken:
        return f"Nothing should be claimed from this: {counted(broken, 'rule')} broken."
    if unknown:
        return f"No rule is broken, but of {unknown} it is not known."
    return "All rules are kept."

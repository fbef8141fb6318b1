"""Judges files that `python -m benchmarks --out` has written.

python -m benchmarks.check FILE.json...
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from benchmarks.rules import RULES
from gridbench.results.check import check_results
from gridbench.rules import Rules
from gridbench.usage import run_command


def rules_for(source: Path) -> Rules[Any] | None:
    """The rules, if it is a file with tables of areas."""
    if source.suffix != ".json" or not source.is_file():
        return None
    try:
        record = json.loads(source.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    is_ours = isinstance(record, dict) and {"areas", "extent"} <= record.keys()
    return RULES if is_ours else None


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument(
    "files", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="FILE.json..."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.pass_context
def check_files(context: click.Context, files: tuple[Path, ...], as_json: bool) -> None:
    """Judge files of `python -m benchmarks --out` by the rules of docs/rules.md.

    Exit status 1 says that a rule is broken, so that nothing should be claimed from the file.
    """
    context.exit(check_results(files, as_json=as_json, rules_for=rules_for))


if __name__ == "__main__":
    run_command(check_files, "python -m benchmarks.check")

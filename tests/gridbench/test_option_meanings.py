"""An option has one meaning and one default, in whichever command it is."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

import click
import pytest

from gridbench.cli import COMMANDS

_DEFAULT = re.compile(r" *\[([^\]]*)\]$")
#: Options that differ, in what they may, and why.
EXCEPTIONS = {
    "--calls": ("default meaning", "`placement run` has the calls of all clients together"),
    "--case-limit": ("default", "`crossover` bounds runs that may hang, a grid has its --limit"),
    "--clients": ("default", "`linpack clients` has those of the paper"),
    "--cores": ("value default meaning", "grids of cases take a list of numbers, a run takes one"),
    "--duration": ("default", "`placement` has that of the scenario"),
    "--engine": ("default meaning", "`data` has data grids; `model` and `simulate` read results"),
    "--input": ("value default meaning", "of a job in `advise`, a file for programs in `compare`"),
    "--limit": ("default meaning", "rounds of a few engines or commands end after minutes"),
    "--members": ("value default meaning", "`crossover` has one cluster, a scenario several"),
    "--nodes": ("default", "`links` needs one node, `sync` a cluster, `scenario` none"),
    "--out": ("value default meaning", "commands write folders, pages, models or lists"),
    "--output": ("value default meaning", "as --input"),
    "--policies": ("default meaning", "of servers in `linpack clients`, else of clients"),
    "--profile": ("default", "`simulate` needs a system, and `advise` has engines"),
    "--rounds": ("value default meaning", "`sync` and `data` run a fixed number"),
    "--servers": ("default meaning", "kinds in `linpack clients`, numbers in `placement`"),
    "--sizes": ("default meaning", "each grid has its own"),
    "--tasks": ("default", "of a simulation, a run or a list"),
    "--time-scale": ("default meaning", "`ensemble` has no --quick, and scales links as well"),
    "--warm": ("default meaning", "clients of `crossover` only read"),
    "--work": ("value meaning", "`recommend` takes several jobs"),
}


def _commands(command: click.Command, *path: str) -> Iterator[tuple[str, click.Command]]:
    yield " ".join(path), command
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from _commands(inner, *path, name)


def _described(option: click.Option) -> dict[str, object]:
    """What users read of it."""
    help_text = option.help or ""
    found = _DEFAULT.search(help_text)
    meaning = _DEFAULT.sub("", help_text).strip()
    choices = option.type.choices if isinstance(option.type, click.Choice) else ()
    default = found[1] if found else "" if option.required else option.default
    if default is None or repr(default) == "Sentinel.UNSET" or default is False:
        default = ""
    value = "flag" if option.is_flag and not option.secondary_opts else option.metavar
    default = re.sub(r"\.0$", "", str(default).rpartition("default: ")[2])
    return {"value": (value, tuple(choices)), "default": str(default), "meaning": meaning}


def _options() -> dict[str, dict[str, dict[str, object]]]:
    """What each option is, by its name and the command."""
    found: dict[str, dict[str, dict[str, object]]] = defaultdict(dict)
    for name, entry in COMMANDS.items():
        for path, command in _commands(entry.load(), name):
            for parameter in command.params:
                if isinstance(parameter, click.Option):
                    found[parameter.opts[-1]][path] = _described(parameter)
    return found


OPTIONS = _options()


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_an_option_is_the_same_in_all_commands(name: str) -> None:
    free = EXCEPTIONS.get(name, ("", ""))[0].split()
    for what in ("value", "default", "meaning"):
        reported = {str(one[what]) for one in OPTIONS[name].values()}
        if what not in free:
            assert len(reported) == 1, {path: one[what] for path, one in OPTIONS[name].items()}


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_exceptions_are_needed(name: str) -> None:
    for what in EXCEPTIONS[name][0].split():
        assert len({str(one[what]) for one in OPTIONS[name].values()}) > 1, what


def test_every_option_is_explained() -> None:
    unsaid = [
        (path, name)
        for name, commands in OPTIONS.items()
        for path, one in commands.items()
        if not one["meaning"]
    ]
    assert unsaid == []

"""Commands to compare, and the record of one run: one line of compare.jsonl."""

from __future__ import annotations

import itertools
import re
import shlex
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from gridbench.errors import InputError
from gridbench.jsonl_store import ResultsForm

Phase = Literal["control", "compare"]
"""The A/A check, in which one command runs against itself; or the comparison."""

_SHELL_SYNTAX = re.compile(r"[|&;<>()$`*?\[\]~#\n]|^\s*\w+=")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command line with all parameters filled in."""

    name: str
    """What tables and pages call it."""
    line: str
    parameters: dict[str, str] = field(default_factory=dict)
    """Those that stand in it, with their values."""

    def words(self, *, shell: bool) -> list[str]:
        """Program and arguments. InputError for unbalanced quotes, or if there is no program."""
        if shell:
            return ["/bin/sh", "-c", self.line]
        try:
            words = shlex.split(self.line)
        except ValueError as error:
            raise InputError(
                f"`{self.line}`: {str(error).lower()}",
                remedy="balance the quotes, or add --shell",
            ) from None
        if not words:
            raise InputError("a command is empty", remedy="give a program and its arguments")
        return words


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What all runs of a comparison have in common; a folder is resumed with the same only."""

    commands: tuple[Command, ...]
    shell: bool
    prepare: str = ""
    """Command to run before each run, untimed; empty: none."""
    cleanup: str = ""
    """The same after each run."""
    input: str = ""
    """File for standard input; empty: nothing to read."""
    output: str = "null"
    """Where standard output goes: `null`, `pipe`, `inherit`, or a file."""
    ignore_failure: bool = False
    """Whether an exit status other than 0 counts as a run."""

    def options(self) -> dict[str, Any]:
        """For the header of the results."""
        # As JSON reads them back: a tuple would differ from its list.
        return asdict(self) | {"commands": [asdict(one) for one in self.commands]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """A single run of a command; seconds and bytes."""

    phase: Phase
    round: int
    """From 0."""
    place: int
    """In the order of its round, from 0."""
    command: str
    """Its name."""
    twin: bool = False
    """Of the A/A check: the second of two runs of the same command."""
    at: str
    """ISO 8601."""
    wall: float = 0.0
    user: float = 0.0
    system: float = 0.0
    memory: int = 0
    """Largest resident size of a process of the command."""
    exit_status: int = 0
    """128 + n if signal n ended it."""
    load: dict[str, Any] | None = None
    """What other programs did in its round: at least `judgement`."""

    @property
    def identity(self) -> tuple[Phase, int, str, bool]:
        """Of all records of a file, one has it."""
        return self.phase, self.round, self.command, self.twin


FORM: ResultsForm[Execution] = ResultsForm(
    kind="comparison of commands",
    of="comparison of commands",
    noun="run",
    record=Execution,
    file="compare.jsonl",
    command="gridbench compare",
)


def commands_of(
    lines: tuple[str, ...], names: tuple[str, ...], parameters: dict[str, tuple[str, ...]]
) -> tuple[Command, ...]:
    """Each command with each combination of the parameters that stand in it.

    InputError for a parameter that stands in no command, for names that do not match, and for
    fewer than two commands.
    """
    if names and len(names) != len(lines):
        raise InputError(
            f"--name is given {len(names)} times, for {len(lines)} commands",
            remedy="give a name for each command, in the same order, or none",
        )
    used = {name for line in lines for name in _PLACEHOLDER.findall(line)}
    if unused := [name for name in parameters if name not in used]:
        raise InputError(
            f"--parameter {unused[0]}: no command contains {{{unused[0]}}}",
            remedy=f"write {{{unused[0]}}} where its value belongs",
        )
    found: list[Command] = []
    for number, line in enumerate(lines):
        own = {name: parameters[name] for name in parameters if f"{{{name}}}" in line}
        for values in itertools.product(*own.values()):
            chosen = dict(zip(own, values, strict=True))
            text = filled(line, chosen)
            name = text
            if names:
                told = ", ".join(f"{key}={value}" for key, value in chosen.items())
                name = f"{names[number]} ({told})" if told else names[number]
            found.append(Command(name=name, line=text, parameters=chosen))
    if len(found) < 2:
        raise InputError(
            "one command cannot be compared",
            remedy="give two or more, or --parameter NAME=VALUE,VALUE with {NAME} in the command",
        )
    repeated = [one.name for one in found]
    if twice := next((name for name in repeated if repeated.count(name) > 1), None):
        raise InputError(
            f"two commands have the name `{twice}`", remedy="tell them apart by --name"
        )
    return tuple(found)


def filled(line: str, parameters: dict[str, str]) -> str:
    """The line with the value of each parameter; other braces stay."""
    return _PLACEHOLDER.sub(lambda match: parameters.get(match[1], match[0]), line)


def needs_shell(commands: tuple[Command, ...]) -> bool:
    """Whether a command has a pipe, a variable or the like. Then all run in a shell, so that its
    start is in all times."""
    return any(_SHELL_SYNTAX.search(one.line) for one in commands)

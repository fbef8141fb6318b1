"""Commands to compare, and the records of their runs: one line of compare.jsonl each.

A round runs each command once. Its runs are saved together, so that files have complete rounds.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gridbench.errors import InputError
from gridbench.jsonl_store import Header, PlannedCase, RecordFile, ResultsForm
from gridbench.records import RecordError, from_record

RoundKind = Literal["control", "compare"]
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
    """The parameters in it, with their values."""

    def words(self, *, shell: bool) -> list[str]:
        """Program and arguments. InputError for unbalanced quotes or an empty command."""
        if shell:
            return ["/bin/sh", "-c", self.line]
        try:
            words = shlex.split(self.line)
        except ValueError as error:
            raise InputError(
                f"`{self.line}`: {str(error).lower()}", remedy="balance the quotes, or add --shell"
            ) from None
        if not words:
            raise InputError("a command is empty", remedy="give a program and its arguments")
        return words


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """A single run of a command; seconds and bytes."""

    phase: RoundKind
    round: int
    """From 0."""
    place: int
    """Place in the order of its round, from 0."""
    command: str
    """Its name."""
    twin: bool = False
    """Whether it is the second of the two runs of an A/A check."""
    at: str
    """ISO 8601."""
    wall: float = 0.0
    user: float = 0.0
    system: float = 0.0
    memory: int = 0
    """Peak resident memory of the largest process."""
    exit_status: int = 0
    """128 + n if signal n ended it."""
    load: dict[str, Any] | None = None
    """Load by other programs during its round: at least `judgement`."""

    @property
    def identity(self) -> tuple[RoundKind, int, str, bool]:
        """Unique among the records of a file."""
        return self.phase, self.round, self.command, self.twin


FORM: ResultsForm[Execution] = ResultsForm(
    kind="comparison of commands",
    of="comparison of commands",
    noun="run",
    record=Execution,
    file="compare.jsonl",
    command="gridbench compare",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedComparisonRound(PlannedCase):
    """A round before it is run."""

    phase: RoundKind
    round: int
    """From 0."""

    def describe(self) -> str:
        """Its number, counted from 1."""
        check = "A/A check, " if self.phase == "control" else ""
        return f"{check}round {self.round + 1}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRound(PlannedComparisonRound):
    """A round with its runs."""

    runs: tuple[Execution, ...]

    @property
    def status(self) -> str:
        """A failed round is not kept."""
        return "done"

    @property
    def load(self) -> dict[str, Any] | None:
        """Load by other programs."""
        return self.runs[0].load


class ComparisonFile:
    """The file of a comparison, read and written round by round."""

    def __init__(self, file: RecordFile[Execution]) -> None:
        self._file = file
        self.records = rounds_in(file.records)
        self.earlier = len(self.records)
        """Number of rounds from earlier calls."""

    @property
    def runs(self) -> list[Execution]:
        """All runs."""
        return self._file.records

    def add(self, record: ComparisonRound) -> None:
        """Append the runs of a round."""
        self.records.append(record)
        for run in record.runs:
            self._file.add(run)

    def discard(self) -> None:
        """Remove the file."""
        self._file.discard()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def rounds_in(runs: Iterable[Execution]) -> list[ComparisonRound]:
    """The rounds of these runs."""
    found: dict[tuple[RoundKind, int], list[Execution]] = {}
    for run in runs:
        found.setdefault((run.phase, run.round), []).append(run)
    return [
        ComparisonRound(phase=phase, round=number, runs=tuple(own))
        for (phase, number), own in found.items()
    ]


@dataclass(frozen=True, slots=True)
class _Options:
    """Options in a header."""

    commands: tuple[Command, ...]


def commands_in(header: Header) -> tuple[Command, ...]:
    """The commands of a comparison. InputError if its header is damaged."""
    try:
        return from_record(_Options, header.options).commands
    except RecordError as error:
        raise InputError(f"is damaged: {error}") from None


def commands_of(
    lines: tuple[str, ...], names: tuple[str, ...], parameters: Mapping[str, tuple[str, ...]]
) -> tuple[Command, ...]:
    """Each command with each combination of the parameters in it.

    InputError for a parameter that no command has, for a wrong number of names, and for fewer than
    two commands.
    """
    if not lines:
        raise InputError("no command is given", remedy="give two or more, each in quotes")
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
                summary_text = ", ".join(f"{key}={value}" for key, value in chosen.items())
                name = f"{names[number]} ({summary_text})" if summary_text else names[number]
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

"""Profiles of one's own: a system as a TOML file, with the same parts as the built-in ones.

Times are seconds, sizes bytes, rates bytes per second; `link` is bits per second. What is left out
costs nothing, or has no bound.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gridbench.errors import InputError
from gridbench.formats import as_given
from gridbench.model.pipeline import PipelineParameters
from gridbench.read_config import parse_toml, read_text
from gridbench.records import RecordError, from_record
from gridbench.simulate.profiles import SYSTEMS, system
from gridbench.simulate.systems import GIGABIT, KINDS, StartUp, System, Throttling
from gridbench.workload.numbers import shown

_REMEDY = "`gridbench simulate --profile symphony --show` prints one to begin with"
_DIVISORS = ("link", "rate", "shared_rate", "most_at_once", "processors")
"""What cannot be 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ProfileFile:
    """What a file says; see `System`."""

    name: str = ""
    title: str = ""
    link: float = GIGABIT
    one_host: bool = False
    files_per_task: bool = False
    resolution: float = 0.0
    measured_cores: int | None = None
    parameters: PipelineParameters
    start_up: dict[str, Any]
    throttling: Throttling | None = None


def system_of(name: str) -> System:
    """The built-in system of this name, or that of the file. InputError if there is none."""
    is_file = name not in SYSTEMS and (name.endswith(".toml") or Path(name).exists())
    return read_profile(Path(name)) if is_file else system(name)


def read_profile(path: Path) -> System:
    """The system that a file describes. InputError says what in it is wrong."""
    table = _load(path)
    try:
        read = from_record(_ProfileFile, table)
        kind = read.start_up.pop("kind", None)
        if not isinstance(kind, str) or kind not in KINDS:
            known = ", ".join(KINDS)
            raise RecordError(f"start_up.kind is `{shown(str(kind))}`, not one of {known}")
        start_up: StartUp = from_record(KINDS[kind], read.start_up, "start_up")
        parts: dict[str, Any] = {
            "parameters": read.parameters,
            "throttling": read.throttling,
            "start_up": start_up,
        }
        for name in _unknown(table, read) or _unknown(read.start_up, start_up, "start_up."):
            raise RecordError(f"{shown(name)} is not known")
        for name, value in (*_numbers(read), *_numbers(start_up, "start_up.")):
            if value < 0 or (value == 0 and name.rpartition(".")[2] in _DIVISORS):
                raise RecordError(f"{name} is {as_given(value, '')}")
    except RecordError as error:
        raise InputError(f"is not a profile: {error}", file=path, remedy=_REMEDY) from None
    except InputError as error:  # what parts of the system refuse
        raise InputError(error.what, file=path, remedy=error.remedy or _REMEDY) from None
    own = {
        field.name: getattr(read, field.name)
        for field in dataclasses.fields(_ProfileFile)
        if field.name not in parts
    }
    own["name"] = read.name or path.stem
    own["title"] = read.title or f"from {path.name}"
    return System(**own, **parts)


def profile_text(system: System) -> str:
    """The system as such a file; the sources of its figures are comments."""
    lines = [f"# {system.title}", "#"]
    for given in system.given:
        lines.append(f"# {given.name}: {as_given(given.value, given.unit)} ({given.source})")
    lines.append("")
    for field in dataclasses.fields(_ProfileFile):
        value = getattr(system, field.name)
        if isinstance(value, bool | int | float | str):
            lines.append(f"{field.name} = {_toml(value)}")
    lines += _section("parameters", system.parameters)
    kind = next(name for name, of in KINDS.items() if isinstance(system.start_up, of))
    lines += _section("start_up", system.start_up, f'kind = "{kind}"')
    if system.throttling:
        lines += _section("throttling", system.throttling)
    return "\n".join(lines) + "\n"


def _section(name: str, part: Any, *first: str) -> list[str]:
    """What is not as it is by default, as a table and those below it."""
    lines = ["", f"[{name}]", *first]
    inner: list[str] = []
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if value is None or value == _default(field):
            continue
        if dataclasses.is_dataclass(value):
            inner += _section(f"{name}.{field.name}", value)
        else:
            lines.append(f"{field.name} = {_toml(value)}")
    return lines + inner


def _default(field: dataclasses.Field[Any]) -> Any:
    made = field.default_factory
    return field.default if made is dataclasses.MISSING else made()


def _toml(value: bool | float | str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return repr(value)


def _load(path: Path) -> dict[str, Any]:
    return parse_toml(path, read_text(path, "profile", _REMEDY), _REMEDY)


def _unknown(table: dict[str, Any], part: Any, place: str = "") -> list[str]:
    """Names in a table, and those below it, that what was read of it does not have."""
    if isinstance(part, dict) or part is None:
        return []
    known = {field.name for field in dataclasses.fields(part)}
    found = [place + name for name in table if name not in known]
    for name, inner in table.items():
        if name in known and isinstance(inner, dict):
            found += _unknown(inner, getattr(part, name), f"{place}{name}.")
    return found


def _numbers(part: Any, place: str = "") -> Iterator[tuple[str, float]]:
    """All numbers in a dataclass and those in it, with their names."""
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if dataclasses.is_dataclass(value):
            yield from _numbers(value, f"{place}{field.name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{place}{field.name}", value

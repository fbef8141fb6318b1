"""The built-in systems: each parameter with its source; an assumption is what nobody measured."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gridbench.errors import InputError
from gridbench.formats import as_given
from gridbench.model.pipeline import Link, Manager, PipelineParameters
from gridbench.model.profiles import SourcedFigure, ninfg, symphony
from gridbench.read_config import parse_toml, read_text
from gridbench.records import RecordError, from_record
from gridbench.simulate.systems import (
    ASSUMPTION,
    GIGABIT,
    KINDS,
    Batch,
    OneByOne,
    StartUp,
    System,
    Throttling,
    Waves,
)
from gridbench.workload.numbers import shown


def system(name: str) -> System:
    """The built-in system of this name. InputError if there is none."""
    if name not in SYSTEMS:
        raise InputError(
            f"there is no profile `{name}`",
            remedy=f"take one of {', '.join(SYSTEMS)}, or the name of a file (.toml)",
        )
    return SYSTEMS[name]()


# Platform Symphony. The second instance comes after the balance interval, and others in steps.

_FIRST = 0.479117
_SECOND = 5.08
_STEP = 0.5
_WAVE = 100
_MEMORY = 3.0 * 2**30
_DISK = 60.0 * 2**20
_PROACTIVE = 0.5
_SLOWER = 1.1


def _symphony() -> System:
    profile = symphony()
    return System(
        name="symphony",
        title="Platform Symphony: a central manager, data by two hops",
        parameters=profile.parameters,
        start_up=Waves(first=_FIRST, second=_SECOND, step=_STEP, most_at_once=_WAVE),
        throttling=Throttling(
            memory=_MEMORY, disk=_DISK, slower=_SLOWER, proactive=_PROACTIVE, until_done=True
        ),
        measured_cores=400,
        given=(
            *profile.given,
            SourcedFigure(
                "second instance", _SECOND, "s", "5.5.6-1: starts of 10 tasks, less a step"
            ),
            SourcedFigure(
                "instances in a step",
                _WAVE,
                "",
                f"{ASSUMPTION}; all but two of 100 come in one, and 400 need more than one (5.5.4)",
            ),
            SourcedFigure(
                "memory of the manager",
                _MEMORY / 2**30,
                "GB",
                f"{ASSUMPTION}: the address space of a process of 32 bits, as which it ran (5.4.1 "
                "(10)); the undisturbed 1,200 tasks of 1 MB fill 1.2 GB of it",
            ),
            SourcedFigure(
                "throttling begins at",
                _PROACTIVE,
                "of memory",
                f"{ASSUMPTION}; then 0.6, 0.75 and 0.85 of it in use, as in application profiles "
                "of Symphony (50, 40, 25 and 15 % of the address space left)",
            ),
            SourcedFigure(
                "disk for paging", _DISK / 2**20, "MB/s", f"{ASSUMPTION}: a disk of those days"
            ),
            SourcedFigure(
                "slower, in each of the first steps",
                _SLOWER,
                "x",
                f"{ASSUMPTION}: 570 Mbit/s of single tasks against 519 of 300 of 10 MB (slides)",
            ),
        ),
    )


# Ninf-G with Grid Engine: allocation by the batch system, then client and nodes alone.


def _ninfg() -> System:
    profile = ninfg()
    return System(
        name="ninfg",
        title="Ninf-G with Grid Engine: batch allocation, then client to node",
        parameters=profile.parameters,
        start_up=Batch(constant=4.2, per_worker=0.15),
        measured_cores=100,
        given=(
            *profile.given,
            SourcedFigure("allocation", 4.2, "s", "text of 5.5.3"),
            SourcedFigure("allocation, for each core", 0.15, "s", "text of 5.5.3"),
        ),
    )


# Condor. Of its own figures the sources give none but the resolution of its log; what it does is
# theirs: matching, then for each task a process and all files, from one machine to all others.

_MATCHING = 10.0
_MATCH = 0.01
_JOB = 0.08
_PROCESS = 0.5


def _condor() -> System:
    star = Link(rate=ninfg().parameters.to_workers.rate, sharing="evenly")
    return System(
        name="condor",
        title="Condor: matching, then a process and all files for each task",
        parameters=PipelineParameters(
            to_workers=star,
            from_workers=star,
            shared_rate=star.rate,
            submit_cost=_JOB,
            start_latency=_PROCESS,
        ),
        start_up=OneByOne(constant=_MATCHING, per_worker=_MATCH),
        files_per_task=True,
        resolution=1.0,
        given=(
            SourcedFigure(
                "matching",
                _MATCHING,
                "s",
                f"{ASSUMPTION}: half of the 20 s that lie between two negotiation cycles at least "
                "(manual of condor_reschedule); the report says seconds",
            ),
            SourcedFigure("matching, for each core", _MATCH, "s", ASSUMPTION),
            SourcedFigure(
                "start of a task, one after another",
                _JOB,
                "s",
                "HTCondor 23.9 on two cores: 100 tasks of 2 s take 20 s, 10 s of them matching",
            ),
            SourcedFigure("process of a task", _PROCESS, "s", ASSUMPTION),
            SourcedFigure(
                "all transfers together, from one machine",
                835.0,
                "Mbit/s",
                f"{ASSUMPTION}: as Ninf-G on the same network",
            ),
            SourcedFigure("stamps", 1.0, "s", "its log (report)"),
        ),
    )


# gridrpc, with native workers. What calls cost is from this project's own measurements on one
# machine (docs/performance.md); that many nodes behave as that one is not known.

_FRAME = 1448 / 1538
_ETHERNET = _FRAME * GIGABIT / 8
_CALL = 25e-6
_LATENCY = 1e-4
_START, _START_EACH = 0.115, 0.000243


def _gridrpc() -> System:
    link = Link(rate=_ETHERNET, sharing="evenly")
    return System(
        name="gridrpc",
        title="gridrpc with native workers on hosts, over TLS: client to worker",
        parameters=PipelineParameters(
            manager=Manager(inward=Link(), outward=Link()),
            to_workers=link,
            from_workers=link,
            shared_rate=_ETHERNET,
            submit_cost=_CALL,
            retrieve_cost=_CALL,
            start_latency=_LATENCY,
            return_latency=_LATENCY,
        ),
        start_up=OneByOne(constant=_START, per_worker=_START_EACH),
        measured_cores=5000,
        given=(
            SourcedFigure(
                "all transfers in one direction",
                _ETHERNET * 8 / 1e6,
                "Mbit/s (of 1,000,000 bits)",
                "1 Gbit/s; frames of 1,500 bytes leave 1448/1538 of it for data",
            ),
            SourcedFigure(
                "client submits a task, and takes its result",
                2 * _CALL,
                "s",
                "docs/scaling.md: 50 µs a call, 5,000 workers on 50 hosts, on one machine",
            ),
            SourcedFigure(
                "on the way, there and back", 2 * _LATENCY, "s", f"{ASSUMPTION}: Ethernet"
            ),
            SourcedFigure(
                "first worker",
                _START,
                "s",
                "docs/scaling.md: 100 native workers on 50 hosts in 139 ms",
            ),
            SourcedFigure(
                "each further worker",
                _START_EACH,
                "s",
                "docs/scaling.md: 5,000 native workers on 50 hosts in 1.33 s; on one machine",
            ),
        ),
    )


SYSTEMS: dict[str, Callable[[], System]] = {
    "symphony": _symphony,
    "ninfg": _ninfg,
    "condor": _condor,
    "gridrpc": _gridrpc,
}
"""By the name that one asks for them with."""


# ---- Profiles in files

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

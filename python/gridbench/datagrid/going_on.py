"""A folder of results that is opened to be added to: whether what is asked for may stand in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gridbench.datagrid.engines.engine import Engine
from gridbench.datagrid.record import FORM, Case
from gridbench.errors import InputError
from gridbench.formats import as_given, size
from gridbench.record_file import Header, RecordFile, load_records

_OPTIONS = {
    "warm_up": "--warm",
    "processes": "--processes",
    "member_memory": "--member-memory",
    "backups": "--backups",
    "where": "the hosts",
}
"""How users give what the header of results has."""
_REMEDY = (
    "give the same options, with which cases and data grids can be added; or choose another --out,"
    " or add --fresh to measure all of it anew"
)


def open_folder(
    folder: Path, header: Header, engines: Sequence[Engine], *, fresh: bool
) -> RecordFile[Case]:
    """The cases of a folder, or an empty file if it has none or `fresh`.

    InputError if it cannot be used or is damaged, or if what it holds was measured with other
    options, on another machine, or with an engine of the same name that is another one.
    """
    path = folder / FORM.file
    if not fresh and path.is_file() and path.stat().st_size:
        before, cases = load_records(path, FORM)
        _refuse_other_options(path, before.options, header.options)
        _refuse_other_engines(path, cases, engines)
    return FORM.open(folder, header, fresh=fresh)


def _refuse_other_options(
    path: Path, before: Mapping[str, object], now: Mapping[str, object]
) -> None:
    names = [name for name in dict(now) | dict(before) if before.get(name) != now.get(name)]
    if names:
        told = "; ".join(
            f"{_OPTIONS.get(name, name)}: it was {_told(name, before.get(name))},"
            f" and now is {_told(name, now.get(name))}"
            for name in names
        )
        raise InputError(f"holds cases with other options: {told}", file=path, remedy=_REMEDY)


def _refuse_other_engines(path: Path, cases: Iterable[Case], engines: Iterable[Engine]) -> None:
    known = {case.engine: case for case in cases}
    for engine in engines:
        case, now = known.get(engine.name), engine.described.stated
        if case is None or case.stated == now:
            continue
        if case.stated.get("version") != now["version"]:
            what = f"version {case.stated.get('version')} of {case.title}, and now it is"
            what += f" {now['version']}"
        else:
            what = f"{case.title} that was configured otherwise, as its engine.toml says"
        raise InputError(
            f"holds cases of {what}",
            file=path,
            remedy="choose another --out, or add --fresh to measure all of it anew",
        )


def _told(name: str, value: Any) -> str:
    """A value of the header in a user's words."""
    if name == "warm_up":
        return "none" if value is None else as_given(value["most"])
    if name == "where":
        return _where(value or {})
    if value is None:
        return "not given"
    return size(value) if name == "member_memory" else f"{value}"


def _where(value: Mapping[str, Any]) -> str:
    if value.get("emulated"):
        return f"{value['emulated']}, emulated on {value.get('nodes')} nodes"
    names = [*value.get("hosts", ()), *value.get("servers", ())]
    if value.get("grid"):
        names.append(value["grid"])
    return ", ".join(names) or "this machine"

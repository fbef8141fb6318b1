"""What a user asks of `gridbench sync`, from a file, from the environment, or from options.

A file is TOML with the names of the options as keys, or it has lines `NAME=value` as a shell reads
them, with the names that SMTEF gave to some. These names may stand in TOML as well, and in the
environment.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import os
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from gridbench.engines.servers import names_in
from gridbench.errors import InputError
from gridbench.hosts.hosts_file import Placement
from gridbench.small_file import read_text
from gridbench.sync.arguments import split
from gridbench.sync.lists import texts, worker_counts
from gridbench.sync.record import Start
from gridbench.workload.numbers import parse_real, parse_whole, shown

T = TypeVar("T")

OLD = {
    "WORKER_COUNT": "workers",
    "HOST_FILE": "hosts",
    "TASK_FILE": "task",
    "PARAMETER_ARRAY": "parameters",
    "ARGUMENTS": "arguments",
}
"""SMTEF's names of options."""
MOST_ROUNDS = 10_000
MOST_NODES = 250
"""Of an emulated cluster."""
LONGEST_TIME = 1e7
"""Seconds."""
STARTS: dict[str, tuple[Start, ...]] = {
    "entry": ("entry",),
    "exec": ("exec",),
    "both": ("entry", "exec"),
}
_REMEDY = 'give a file with lines such as `workers = [1, 2, 4]` and `task = "./task"`'
_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)=(.*)", re.ASCII)
_NOTHING = re.compile(r"\s*(?:#.*)?\Z")
_COMMENT = re.compile(r"(?:^|\s+)#.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Of each option what is said of it; None: nothing. See `OPTIONS` for the names."""

    task: str | None = None
    workers: tuple[int, ...] | None = None
    parameters: tuple[str, ...] | None = None
    arguments: tuple[str, ...] | None = None
    hosts: Path | None = None
    grid: Path | None = None
    servers: tuple[str, ...] | None = None
    emulate: str | None = None
    nodes: int | None = None
    placement: Placement | None = None
    oversubscribe: bool | None = None
    rounds: int | None = None
    start: tuple[Start, ...] | None = None
    timeout: float | None = None
    """Seconds."""
    chdir: str | None = None
    """With placeholders."""
    watch: tuple[str, ...] | None = None
    start_timeout: float | None = None
    out: Path | None = None

    def over(self, other: Setup) -> Setup:
        """What this one says, and the other where this one says nothing."""
        said = {name: value for name in _FIELDS if (value := getattr(self, name)) is not None}
        return replace(other, **said)


_FIELDS = tuple(field.name for field in dataclasses.fields(Setup))
_OF_ONE = {"servers": "server"}  # options that may be given several times
OPTIONS = {_OF_ONE.get(name, name.replace("_", "-")): name for name in _FIELDS}
"""Fields of `Setup` by the names of options."""


def setup_of_options(given: Mapping[str, Any]) -> Setup:
    """What is given for options, by the names of fields: texts as people write them, numbers, or
    lists; None, False and an empty tuple say nothing. InputError names the option."""
    found = {}
    for option, name in OPTIONS.items():
        value = given.get(name)
        if value is not None and value is not False and value != ():
            with _named(f"--{option}: "):
                found[name] = _value(option, value)
    return Setup(**found)


def setup_of_environment(environment: Mapping[str, str]) -> Setup:
    """What variables with SMTEF's names say; an empty one says nothing. InputError names it."""
    found = {}
    for variable, option in OLD.items():
        if value := environment.get(variable, "").strip():
            with _named(f"the variable {variable}: "):
                found[OPTIONS[option]] = _value(option, value)
    return Setup(**found)


def read_setup(path: Path) -> Setup:
    """What a file says; its paths are seen from its folder. InputError names file, line and
    remedy."""
    text = read_text(path, "configuration file", _REMEDY)
    given = _given(path, text)
    if not given:
        raise InputError("says nothing", file=path, remedy=_REMEDY)
    found: dict[str, Any] = {}
    names: dict[str, str] = {}
    for name, value, line in given:
        with _named("", path, line):
            option = _option(name)
            if option in names:
                raise InputError(
                    f"`{name}` is given twice"
                    if name == names[option]
                    else f"`{name}` and `{names[option]}` are the same option",
                    remedy="keep one of the two",
                )
            names[option] = name
            if value != "":
                with _named(f"`{name}`: "):
                    found[OPTIONS[option]] = _value(option, value, path.parent)
    return Setup(**found)


# ---- What is in a file


def _given(path: Path, text: str) -> list[tuple[str, Any, int | None]]:
    """Names, values, and in which lines they stand."""
    try:
        table = tomllib.loads(text, parse_float=str)
    except (ValueError, RecursionError) as error:
        lines = [line for line in text.splitlines() if not _NOTHING.match(line)]
        if lines and (_ASSIGNMENT.match(lines[0]) or _ASSIGNMENT.match(lines[-1])):
            return _assignments(path, text)
        where = re.search(r" \(at line ([0-9]+)", str(error))
        raise InputError(
            f"is neither TOML nor lines `NAME=value`: {error}",
            file=path,
            line=int(where[1]) if where else None,
            remedy=_REMEDY,
        ) from None
    return [(name, value, _line_of(text, name)) for name, value in table.items()]


def _line_of(text: str, name: str) -> int | None:
    """Where a key of a table stands, or where the table of that name begins."""
    key = rf"^[ \t]*\[*[ \t]*[\"']?{re.escape(name)}[\"']?[ \t]*[=.\]]"
    found = re.search(key, text, re.MULTILINE)
    return text.count("\n", 0, found.start()) + 1 if found else None


def _assignments(path: Path, text: str) -> list[tuple[str, str, int | None]]:
    found: list[tuple[str, str, int | None]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if _NOTHING.match(line):
            continue
        if not (parts := _ASSIGNMENT.match(line)):
            raise InputError(
                f"`{shown(line.strip())}` is no line `NAME=value`",
                file=path,
                line=number,
                remedy="begin comments with #; values of several lines need TOML",
            )
        found.append((parts[1], _unquoted(parts[2].strip()), number))
    return found


def _unquoted(value: str) -> str:
    """Without quotes around all of it, as a shell would have it, and without a comment behind."""
    if value[:1] in ("'", '"'):
        try:
            words = shlex.split(value, comments=True)
        except ValueError:
            words = []
        if len(words) == 1:
            return words[0]
    # Quotes elsewhere are those of an array or of single arguments.
    return _COMMENT.sub("", value)


def _option(name: str) -> str:
    """The option with this name, or with this name of SMTEF's."""
    if (option := OLD.get(name, name)) in OPTIONS:
        return option
    known = {one.lower(): one for one in (*OPTIONS, *OLD)}
    near = difflib.get_close_matches(name.lower().replace("_", "-"), known, n=1)
    near = near or difflib.get_close_matches(name.lower(), known, n=1)
    raise InputError(
        f"`{shown(name)}` is not known",
        remedy=f"did you mean `{known[near[0]]}`?" if near else f"known are {', '.join(OPTIONS)}",
    )


@contextlib.contextmanager
def _named(what: str, file: Path | None = None, line: int | None = None) -> Iterator[None]:
    """Have an InputError say where that is which it is about."""
    try:
        yield
    except InputError as error:
        raise InputError(
            what + error.what, file=file, line=line, remedy=error.remedy or _REMEDY
        ) from None


# ---- The values


def _value(option: str, value: Any, folder: Path | None = None) -> Any:
    """As a `Setup` has it. `folder`: from where paths are seen, if not the current one."""
    return _READ[option](value, folder)


def _text(value: Any) -> str:
    found = os.fspath(value) if isinstance(value, Path) else value
    if not isinstance(found, str) or not found or "\0" in found:
        raise InputError(f"must be a text, not `{shown(str(value))}`", remedy="put it in quotes")
    return found


def _texts(value: Any) -> str | list[str]:
    """A text that is a list, or a list of texts and numbers."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list | tuple) or not all(map(_is_scalar, value)):
        raise InputError(
            f"must be a list of texts or numbers, not `{shown(str(value))}`",
            remedy='write ["4k", "8k"]',
        )
    return [str(one) for one in value]


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _number(value: Any, parse: Callable[[str, T, T], T], low: T, high: T) -> T:
    try:
        if not _is_scalar(value):
            raise ValueError(f"must be a number, not `{shown(str(value))}`")
        return parse(str(value), low, high)
    except ValueError as error:
        raise InputError(str(error), remedy="write a number such as 3") from None


def _one_of(value: Any, known: Mapping[Any, T]) -> T:
    try:
        return known[value]
    except (KeyError, TypeError):  # arrays are no keys
        names = ", ".join(str(name) for name in known if isinstance(name, str))
        raise InputError(
            f"must be one of {names}, not `{shown(str(value))}`", remedy=f"write one of {names}"
        ) from None


def _names(value: Any, folder: Path | None) -> tuple[str, ...]:
    del folder
    return texts(_texts(value), "name")


def _servers(value: Any, folder: Path | None) -> tuple[str, ...]:
    del folder
    names = _texts(value)
    return texts(names_in([names] if isinstance(names, str) else names), "server")


def _path(value: Any, folder: Path | None) -> Path:
    return Path(_seen(value, folder))


def _seen(value: Any, folder: Path | None) -> str:
    """A path as it is written, but from the folder."""
    path = os.path.expanduser(_text(value))
    return path if folder is None else os.path.join(folder, path)


def _task(value: Any, folder: Path | None) -> str:
    """A path, or a file beside that of the set-up; other names are known elsewhere."""
    path = _seen(value, folder)
    is_path = "/" in value or (folder is not None and os.path.isfile(path))
    return path if is_path else str(value)


def _known(*names: T) -> Callable[[Any, Path | None], Any]:
    return lambda value, _: _one_of(value, {name: name for name in names})


def _real(value: Any, folder: Path | None) -> float:
    del folder
    return _number(value, parse_real, 1e-3, LONGEST_TIME)


_READ: dict[str, Callable[[Any, Path | None], Any]] = {
    "task": _task,
    "workers": lambda value, _: worker_counts(value if isinstance(value, int) else _texts(value)),
    "parameters": lambda value, _: texts(_texts(value), "parameter"),
    "arguments": lambda value, _: split(_texts(value)),
    "hosts": _path,
    "grid": _path,
    "server": _servers,
    "emulate": _known("ssh", "slurm", "gridengine"),
    "nodes": lambda value, _: _number(value, parse_whole, 1, MOST_NODES),
    "placement": _known("spread", "fill"),
    "oversubscribe": lambda value, _: _one_of(
        value, {True: True, False: False, "true": True, "false": False}
    ),
    "rounds": lambda value, _: _number(value, parse_whole, 1, MOST_ROUNDS),
    "start": lambda value, _: _one_of(value, STARTS),
    "timeout": _real,
    "chdir": _seen,
    "watch": _names,
    "start-timeout": _real,
    "out": _path,
}
"""How the value of each option is read."""

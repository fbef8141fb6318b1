"""Environment variables and working directory: of all workers, or of the calls of a function."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from gridrpc._wrapped import InEnvironment

T = TypeVar("T")


def variables(environment: Any) -> list[tuple[str, str]]:
    """Names and values of environment variables. Numbers, True and False become texts.

    Raises TypeError and ValueError.
    """
    if not isinstance(environment, Mapping):
        raise TypeError(
            f"`environment` is {environment!r}: give names and values, such as {{'NAME': 'value'}}"
        )
    return [(_name(name), _text(name, value)) for name, value in environment.items()]


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name or "=" in name or "\0" in name:
        raise ValueError(
            f"`environment` has the name {name!r}: write one with at least a letter and without `=`"
        )
    return name


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, (str, int, float)) or "\0" in str(value):
        raise ValueError(f"`environment` has {value!r} for {name}: give a text or a number")
    return str(value)


def with_environment(
    fn: Callable[..., T],
    environment: Mapping[str, str | int | float | None] | None = None,
    *,
    cwd: str | os.PathLike[str] | None = None,
) -> Callable[..., T]:
    """`fn`, called with these environment variables and in this folder.

    `environment`: variables that are set while a worker runs the function; None unsets one. `cwd`:
    the working directory, on the host that runs the call; a relative path starts at the worker's.
    Afterwards the worker has what it had before. Code in C sees the variables as well, except
    those that a library reads only when it is loaded. Raises TypeError for what cannot be called,
    and ValueError. A call raises OSError if the folder is missing.
    """
    if not callable(fn):
        raise TypeError(f"an object of type {type(fn).__name__} cannot be called: {fn!r}")
    given = {} if environment is None else environment
    unset = []
    if isinstance(given, Mapping):
        unset = [_name(name) for name, value in given.items() if value is None]
        given = {name: value for name, value in given.items() if value is not None}
    changed = {**dict(variables(given)), **dict.fromkeys(unset)}
    folder = "" if cwd is None else os.fspath(cwd)
    if not isinstance(folder, str) or "\0" in folder:
        raise ValueError(f"`cwd` is {cwd!r}: give the path of a folder")
    return InEnvironment(fn, changed, folder)

"""The arguments of a task, in which placeholders stand for what differs from worker to worker.

    -o {host}.{rank} -s {parameter}

`{{` and `}}` are braces.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gridbench.errors import InputError
from gridbench.quantities import Quantity, text_or_texts
from gridbench.workload.numbers import shown

KNOWN = ("parameter", "worker", "rank", "host", "round", "total")
"""The placeholders: the parameter of the round; the worker, and which of the workers of its host it
is; that host; which of the rounds with the same workers and parameter it is; and how many workers
there are. All are counted from 0."""

_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


def split(arguments: str | Sequence[str]) -> tuple[str, ...]:
    """Single arguments: of a text as a shell finds them, of a list as they are. What stands for a
    placeholder later divides none. InputError if a quote is not closed, or a placeholder not
    known."""
    if isinstance(arguments, str):
        try:
            found = shlex.split(arguments)
        except ValueError as error:
            raise InputError(
                f"the arguments `{shown(arguments)}` cannot be divided: {str(error).lower()}",
                remedy="close the quotes, or give the arguments as a list",
            ) from None
    else:
        found = list(arguments)
    for argument in found:
        if "\0" in argument:
            raise InputError(
                f"the argument `{shown(argument)}` holds a zero byte, which no program can be given"
            )
        list(_pieces(argument))
    return tuple(found)


class Arguments(Quantity[tuple[str, ...]]):
    """The arguments of a task: a text, or a list."""

    name = "arguments"

    def read(self, value: Any, folder: Path | None = None) -> tuple[str, ...]:
        """The single arguments."""
        del folder
        return split(text_or_texts(value))


def placeholders(arguments: Iterable[str]) -> frozenset[str]:
    """Those that occur."""
    return frozenset(name for one in arguments for _, name in _pieces(one) if name)


def expand(arguments: Iterable[str], values: Mapping[str, str]) -> list[str]:
    """The arguments of one worker; `values` has all that is KNOWN. InputError if a placeholder is
    not."""
    return [
        "".join(values[name] if name else text for text, name in _pieces(one)) for one in arguments
    ]


def _pieces(argument: str) -> Iterator[tuple[str, str]]:
    """In turn a text and nothing, or nothing and the name of a placeholder."""
    end = 0
    for piece in _PIECE.finditer(argument):
        yield argument[end : piece.start()], ""
        end = piece.end()
        if piece[0] in ("{{", "}}"):
            yield piece[0][0], ""
        elif piece[1] in KNOWN:
            yield "", piece[1]
        else:
            raise _unknown(argument, piece[0])
    yield argument[end:], ""


def _unknown(argument: str, piece: str) -> InputError:
    known = ", ".join(f"{{{name}}}" for name in KNOWN)
    what = "is a single brace" if len(piece) == 1 else "is not known"
    return InputError(
        f"`{shown(piece)}` in the argument `{shown(argument)}` {what}",
        remedy=f"known are {known}; a brace is written twice, as {{{{ or }}}}",
    )

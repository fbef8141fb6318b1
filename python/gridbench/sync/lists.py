"""Lists that people write as text: the parameters of rounds, and counts of workers.

["4k", "8k", 16]     arrays as in JSON or TOML
(4k 8k "16 k")       arrays as in a shell
4k, 8k 16k           without brackets, divided by commas or blanks
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from gridbench.errors import InputError
from gridbench.workload.numbers import parse_whole, shown
from gridbench.workload.setup_file import MOST_NODES as MOST_WORKERS

MOST = 10_000
"""Elements of a list; each of them is a round at least."""
LONGEST = 65_536
"""Characters of an element."""

T = TypeVar("T", str, int)

_CLOSING = {"[": "]", "(": ")"}
_TOKEN = re.compile(
    r"""
      (?P<blank> \s+ )
    | (?P<comma> , )
    | (?P<double> "(?:[^"\\]|\\.)*" )
    | '(?P<single> [^']* )'
    | (?P<bare> [^\s,"'\[\](){}]+ )
    """,
    re.VERBOSE | re.DOTALL,
)
_RANGE = re.compile(r"([0-9]+)-([0-9]+)(?::([0-9]+))?\Z")


def texts(given: str | Sequence[str], noun: str = "parameter") -> tuple[str, ...]:
    """Those of a text that is a list, numbers as they are written; or of a sequence, as they are.
    InputError says what is wrong. `noun`: what one of them is."""
    found = _elements(given) if isinstance(given, str) else given
    for one in found:
        if not one or "\0" in one or len(one) > LONGEST:
            raise InputError(
                f"a {noun} must have 1 to {LONGEST:,} characters and no zero byte, not"
                f" `{shown(one)}`",
                remedy=f"leave out what is no {noun}",
            )
    return _checked(found, noun)


def worker_counts(given: str | int | Sequence[str | int]) -> tuple[int, ...]:
    """How many workers rounds have: `56`, `1,2,4`, `2-7`, `7-56:7` (in steps of 7), or an array of
    such. InputError says what is wrong."""
    if isinstance(given, str):
        elements = _elements(given)
    else:
        elements = [str(given)] if isinstance(given, int) else [str(one) for one in given]
    return _checked((count for one in elements for count in _counts(one)), "count of workers")


def _counts(element: str) -> Sequence[int]:
    try:
        if not (found := _RANGE.match(element)):
            return [parse_whole(element, 1, MOST_WORKERS)]
        low, high, step = (parse_whole(number or "1", 1, MOST_WORKERS) for number in found.groups())
        if high < low:
            raise ValueError(f"must not end below its beginning, as `{element}` does")
    except ValueError as error:
        raise InputError(
            f"a count of workers {error}",
            remedy="write 56, or 1,2,4, or 2-7, or 7-56:7 for steps of 7",
        ) from None
    return range(low, high + 1, step)


def _checked(elements: Iterable[T], noun: str) -> tuple[T, ...]:
    """All of them, if there are some, not too many, and each once."""
    found: dict[T, None] = {}
    for one in elements:
        if one in found:
            raise InputError(f"the {noun} `{shown(str(one))}` occurs twice", remedy="name it once")
        found[one] = None
        if len(found) > MOST:
            raise InputError(
                f"the list has more than {MOST:,} elements ({noun})",
                remedy="measure in several runs",
            )
    if not found:
        raise InputError(f"no {noun} is named", remedy="name one, or leave the list out")
    return tuple(found)


def _elements(text: str) -> list[str]:
    """The texts in an array. In square brackets commas have to divide them."""
    text = text.strip()
    within, closing = text, _CLOSING.get(text[:1], "")
    if closing:
        if len(text) < 2 or not text.endswith(closing):
            raise _wrong(text, f"does not end with `{closing}`")
        within = text[1:-1]
    found: list[str] = []
    before = "comma"
    for kind, token in _tokens(within, text):
        if kind == "comma" and before.startswith("comma"):
            raise _wrong(text, "has a comma with nothing before it")
        if kind == "text":
            if before == "text" or (before == "text blank" and closing == "]"):
                raise _wrong(text, f"has no comma before `{shown(token)}`")
            found.append(token)
        before = f"{before} blank" if kind == "blank" else kind
    return found


def _tokens(within: str, text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(within):
        token = _TOKEN.match(within, at)
        if token is None:
            raise _wrong(text, f"cannot be read from `{shown(within[at:])}` on")
        at = token.end()
        if (kind := token.lastgroup) in ("blank", "comma"):
            yield str(kind), ""
        elif kind == "double":
            try:
                yield "text", json.loads(token[0], strict=False)
            except ValueError:
                raise _wrong(text, f"has `{shown(token[0])}`, which is no text of JSON") from None
        else:
            yield "text", token[str(kind)]


def _wrong(text: str, what: str) -> InputError:
    return InputError(
        f"the list `{shown(text)}` {what}",
        remedy='write ["4k", "8k"], or 4k, 8k; put what has blanks or brackets in quotes',
    )

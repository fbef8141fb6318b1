"""Quantities as people write them: numbers, times, sizes, counts, choices and lists.

A `Quantity` reads one kind of value, wherever it is written: as an option, in a configuration file
or in a variable. click takes a quantity as the type of an option.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import click

from gridbench.errors import InputError
from gridbench.formats import as_given, size
from gridbench.workload.numbers import (
    LARGEST_KB,
    LONGEST_TIME,
    MOST_CORES,
    parse_real,
    parse_whole,
    shown,
)

T = TypeVar("T")

KB, MB, GB = 1 << 10, 1 << 20, 1 << 30
UNITS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
MOST_ELEMENTS = 10_000
LONGEST_ELEMENT = 65_536
"""Characters."""
QUICK_SCALE = 0.01
"""What `--quick` multiplies times of tasks by."""
AUTO: Literal["auto"] = "auto"
"""As many rounds as the answer takes."""

_MOST_ROUNDS = 1000
_MOST_LETTERS = 40
_WORDS = {
    "millisecond": "ms",
    "second": "s",
    "sec": "s",
    "minute": "min",
    "hour": "h",
    "day": "d",
}
_TIME = re.compile(r"(-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?) ?([a-z]*)\Z")
_COUNT = re.compile(r"[0-9]{1,20}|[0-9]{1,20}(\.[0-9]{0,20})?[eE]\+?[0-9]{1,2}")
_BYTES = {"": 1, "B": 1, "KB": KB, "MB": MB, "GB": GB, "TB": 1 << 40}
_SIZE = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+) ?([A-Za-z]*)\Z")
_RANGE = re.compile(r"([0-9]+)-([0-9]+)(?::([0-9]+))?\Z")
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


class Quantity(click.ParamType[T]):
    """One kind of value."""

    name = "value"
    limits = ""
    """The range, for the help of an option."""

    def read(self, value: Any, folder: Path | None = None) -> T:
        """The value of a text, a number or a list; `folder`: where relative paths begin, if not in
        the current folder. InputError gives the problem, without its place."""
        raise NotImplementedError

    def parse(self, option: str, value: Any, folder: Path | None = None) -> T:
        """The same. InputError names `option`."""
        try:
            return self.read(value, folder)
        except InputError as error:
            if error.file is not None:
                raise
            raise InputError(f"{option}: {error.what}", remedy=error.remedy) from None

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> T:
        """The value of an option."""
        del ctx
        return self.parse(param.opts[-1] if param else self.name, value)


# ---- Single values


class Text(Quantity[str]):
    """Any text that is not empty."""

    name = "text"

    def read(self, value: Any, folder: Path | None = None) -> str:
        """The text itself."""
        del folder
        found = os.fspath(value) if isinstance(value, Path) else value
        if not isinstance(found, str) or not found or "\0" in found:
            raise InputError(
                f"must be a text, not `{shown(str(value))}`", remedy="put it in quotes"
            )
        return found


class Word(Quantity[str]):
    """A word of the command line as it is: what it names is looked up later."""

    name = "word"

    def read(self, value: Any, folder: Path | None = None) -> str:
        """The word itself."""
        del folder
        return str(value)


class PathText(Text):
    """A path, as a text that may have placeholders."""

    def read(self, value: Any, folder: Path | None = None) -> str:
        """The path as it is written, but from the folder."""
        path = os.path.expanduser(super().read(value))
        return path if folder is None else os.path.join(folder, path)


class FilePath(Quantity[Path]):
    """A file or a folder."""

    name = "path"

    def read(self, value: Any, folder: Path | None = None) -> Path:
        """The path, from the folder."""
        return Path(PathText().read(value, folder))


class Flag(Quantity[bool]):
    """Yes or no."""

    name = "flag"

    def read(self, value: Any, folder: Path | None = None) -> bool:
        """True or false."""
        return Choice({"true": True, "false": False}).read(
            {True: "true", False: "false"}[value] if isinstance(value, bool) else value, folder
        )


class Count(Quantity[int]):
    """A whole number within limits, such as `1000` or `1e3`."""

    name = "count"

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high
        self.limits = f"{low:,} to {high:,}"

    def read(self, value: Any, folder: Path | None = None) -> int:
        """The number."""
        del folder
        if not _is_scalar(value):
            raise InputError(f"must be a number, not `{shown(str(value))}`", remedy="write 3")
        text = str(value).strip()
        number = float(text) if _COUNT.fullmatch(text) else -1.0
        # Digits alone are exact, however many there are.
        count = int(text) if text.isascii() and text.isdecimal() and number >= 0 else int(number)
        if not (number.is_integer() and number >= 0 and self.low <= count <= self.high):
            example = "1000, or 1e3" if self.low <= 1000 <= self.high else f"{self.low}"
            raise InputError(
                f"`{shown(text)}` is not a whole number from {self.limits}",
                remedy=f"give a number such as {example}",
            )
        return count


class Duration(Quantity[float]):
    """A time in seconds, or with a unit: `100`, `100s`, `2.5h`, `200 ms` or
    `2 hours`."""

    name = "time"

    def __init__(self, low: float = -math.inf, high: float = math.inf) -> None:
        """Limits are included."""
        self.low, self.high = low, high

    def read(self, value: Any, folder: Path | None = None) -> float:
        """Seconds."""
        del folder
        text = str(value).strip()
        match = _TIME.match(text) if len(text) <= _MOST_LETTERS else None
        if isinstance(value, float):
            seconds = value
        elif match is None or (unit := _unit(match[2])) not in ("", *UNITS):
            raise InputError(
                f"`{shown(text)}` is not a time",
                remedy=f"give seconds, or a number with a unit ({', '.join(UNITS)})",
            )
        else:
            seconds = float(match[1]) * UNITS.get(unit, 1.0)
        if not self.low <= seconds <= self.high:
            low, high = as_given(self.low), as_given(self.high)
            raise InputError(
                f"must be from {low} to {high}, not `{shown(text)}`",
                remedy="give a time within these limits, such as 60 or 5min",
            )
        return seconds


class Size(Quantity[int]):
    """Bytes, such as `10KB`, `1 MB` or `0`; 1 MB is 1,024 KB."""

    name = "size"

    def __init__(self, low: int = 0, high: int = round(LARGEST_KB * KB)) -> None:
        self.low, self.high = low, high

    def read(self, value: Any, folder: Path | None = None) -> int:
        """The number of bytes."""
        del folder
        found = _bytes(str(value), LARGEST_KB * KB, "a terabyte")
        if not self.low <= found <= self.high:
            raise InputError(
                f"must be from {size(self.low)} to {size(self.high)}, not {shown(str(value))}",
                remedy="give a size within these limits",
            )
        return found


class Deviation(Quantity[tuple[float, float]]):
    """A standard deviation, such as `5`, `200ms` or `20%`: seconds and share of the mean;
    one is 0."""

    name = "deviation"

    def read(self, value: Any, folder: Path | None = None) -> tuple[float, float]:
        """Seconds, and share of the mean."""
        text = str(value)
        share = text.endswith("%")
        try:
            number = float(text.removesuffix("%")) if share else SECONDS.read(value, folder)
        except (ValueError, InputError):
            number = math.nan
        if not (math.isfinite(number) and 0 <= number <= (100.0 if share else LONGEST_TIME)):
            raise InputError(
                f"`{shown(text)}` is not a deviation",
                remedy="give a time, such as 5 or 200ms, or a share of the mean, such as 20%",
            )
        return (0.0, number / 100) if share else (number, 0.0)


class TimeScale(Quantity[float]):
    """A factor for the times of tasks, such as `0.01`."""

    name = "factor"

    def read(self, value: Any, folder: Path | None = None) -> float:
        """The factor."""
        del folder
        try:
            return parse_real(str(value), 0.0, 1e6)
        except ValueError:
            raise InputError(
                f"must be from 0 to 1,000,000, not `{shown(str(value))}`",
                remedy="0.01 makes every task sleep a hundredth of its time",
            ) from None


class Probability(Quantity[float]):
    """A number above 0, up to 1."""

    name = "probability"

    def read(self, value: Any, folder: Path | None = None) -> float:
        """The number."""
        del folder
        try:
            return parse_real(str(value), 1e-6, 1.0)
        except ValueError:
            raise InputError(
                f"must be above 0 and up to 1, not `{shown(str(value))}`", remedy="write 0.5"
            ) from None


class RoundCount(Quantity[int | Literal["auto"]]):
    """A number of rounds from 1 on, or `AUTO`."""

    name = "rounds"

    def read(self, value: Any, folder: Path | None = None) -> int | Literal["auto"]:
        """The number, or `AUTO`."""
        del folder
        text = str(value).strip()
        if text == AUTO:
            return AUTO
        if text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= _MOST_ROUNDS:
            return int(text)
        raise InputError(
            f"`{shown(text)}` is no number of rounds",
            remedy=f"give one from 1 to {_MOST_ROUNDS:,}, or {AUTO}: as many as the answer takes",
        )


class Choice(Quantity[T]):
    """One of several words, each of which stands for a value."""

    name = "choice"

    def __init__(self, values: Mapping[str, T]) -> None:
        self.values = values

    def read(self, value: Any, folder: Path | None = None) -> T:
        """What the word stands for."""
        del folder
        if isinstance(value, str) and value in self.values:
            return self.values[value]
        names = ", ".join(self.values)
        raise InputError(
            f"must be one of {names}, not `{shown(str(value))}`", remedy=f"write one of {names}"
        )


def words(*names: str) -> Choice[str]:
    """One of these words, which stands for itself."""
    return Choice({name: name for name in names})


TEXT = Text()
FLAG = Flag()
PATH = FilePath()
SECONDS = Duration()
DEVIATION = Deviation()
TIME_SCALE = TimeScale()
SIZE = Size()
CORES = Count(1, MOST_CORES)
ROUNDS = RoundCount()
parse_seconds = SECONDS.parse
parse_size = SIZE.parse
parse_stddev = DEVIATION.parse
parse_cores = CORES.parse


def parse_count(option: str, text: str, low: int, high: int) -> int:
    """A whole number from `low` to `high`. InputError names `option`."""
    return Count(low, high).parse(option, text)


def parse_bytes(option: str, text: str, most: float, most_told: str) -> int:
    """A size of up to `most` bytes, which are called `most_told`. InputError names `option`."""
    try:
        return _bytes(text, most, most_told)
    except InputError as error:
        raise InputError(f"{option}: {error.what}", remedy=error.remedy) from None


def exact_size(count: int) -> str:
    """Bytes in the largest unit that gives a whole number: no two sizes look alike."""
    for unit in ("GB", "MB", "KB"):
        if count and count % _BYTES[unit] == 0:
            return f"{count // _BYTES[unit]}{unit}"
    return f"{count}B"


def _unit(word: str) -> str:
    return _WORDS.get(word.removesuffix("s") if len(word) > 2 else word, word)


def _bytes(text: str, most: float, most_told: str) -> int:
    match = _SIZE.match(text)
    remedy = "give a size such as 0, 10KB, 1.5MB or 1GB"
    if match is None or match[2].upper() not in _BYTES or len(text) > _MOST_LETTERS:
        below = re.match(r"-[0-9.]", text)
        what = "is below 0" if below else "is not a size"
        raise InputError(f"`{shown(text)}` {what}", remedy=remedy)
    found = round(float(match[1]) * _BYTES[match[2].upper()])
    if found > most:
        raise InputError(f"{shown(text)} is more than {most_told}", remedy=remedy)
    return found


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


# ---- Lists
#
# ["4k", "8k", 16]     arrays as in JSON or TOML
# (4k 8k "16 k")       arrays as in a shell
# 4k, 8k 16k           without brackets, divided by commas or blanks


class ListOf(Quantity[tuple[T, ...]]):
    """Values with commas between them, such as `1,10,100`, without repetitions."""

    name = "list"

    def __init__(self, each: Quantity[T], *, ascending: bool = False) -> None:
        self.each, self.ascending = each, ascending

    def read(self, value: Any, folder: Path | None = None) -> tuple[T, ...]:
        """The values."""
        parts = [part.strip() for part in value.split(",")] if isinstance(value, str) else [*value]
        if not parts or "" in parts:
            raise InputError(
                f"must be a list of values with commas between them, not `{shown(str(value))}`",
                remedy="write them as in 1,10,100",
            )
        found: list[Any] = list(dict.fromkeys(self.each.read(part, folder) for part in parts))
        return tuple(sorted(found) if self.ascending else found)


class Each(Quantity[tuple[T, ...]]):
    """Several values, each of them an argument or an option of its own."""

    name = "list"

    def __init__(self, one: Quantity[T]) -> None:
        """`one`: the quantity of each."""
        self.one = one

    def read(self, value: Any, folder: Path | None = None) -> tuple[T, ...]:
        """The values."""
        return tuple(self.one.read(each, folder) for each in value)


class Texts(Quantity[tuple[str, ...]]):
    """A list of texts, numbers as they are written, each once."""

    name = "list"

    def __init__(self, noun: str) -> None:
        """`noun`: what one of them is."""
        self.noun = noun

    def read(self, value: Any, folder: Path | None = None) -> tuple[str, ...]:
        """The texts."""
        del folder
        given = text_or_texts(value)
        found = _elements(given) if isinstance(given, str) else given
        for one in found:
            if not one or "\0" in one or len(one) > LONGEST_ELEMENT:
                raise InputError(
                    f"each {self.noun} must have 1 to {LONGEST_ELEMENT:,} characters and no zero"
                    f" byte, not `{shown(one)}`",
                    remedy="leave that one out",
                )
        return _checked(found, self.noun)


class Counts(Quantity[tuple[int, ...]]):
    """Numbers, or ranges of them: `56`, `1,2,4`, `2-7`, `7-56:7` (in steps of 7), or an array of
    such."""

    name = "list"

    def __init__(self, noun: str, high: int = MOST_CORES) -> None:
        """`noun`: what one of them is; `high`: the largest."""
        self.noun, self.high = noun, high

    def read(self, value: Any, folder: Path | None = None) -> tuple[int, ...]:
        """The numbers, in the order in which they are written."""
        del folder
        given = str(value) if isinstance(value, int) else text_or_texts(value)
        elements = _elements(given) if isinstance(given, str) else given
        return _checked((count for one in elements for count in self._counts(one)), self.noun)

    def _counts(self, element: str) -> Sequence[int]:
        try:
            if not (found := _RANGE.match(element)):
                return [parse_whole(element, 1, self.high)]
            low, high, step = (parse_whole(part or "1", 1, self.high) for part in found.groups())
            if high < low:
                raise ValueError(f"must not end below its beginning, as `{element}` does")
        except ValueError as error:
            raise InputError(
                f"each {self.noun} {error}",
                remedy="write 56, or 1,2,4, or 2-7, or 7-56:7 for steps of 7",
            ) from None
        return range(low, high + 1, step)


def parse_list(option: str, text: str, parse: Callable[[str, str], T]) -> list[T]:
    """The values of a list such as `1,10,100`, without repetitions. InputError names `option`."""
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise InputError(
            f"{option} is a list of values with commas between them, not `{shown(text)}`",
            remedy=f"for example {option} 1,10,100",
        )
    return list(dict.fromkeys(parse(option, part) for part in parts))


def text_or_texts(value: Any) -> str | list[str]:
    """A text that is a list, or the texts of a list of texts and numbers."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list | tuple) or not all(map(_is_scalar, value)):
        raise InputError(
            f"must be a list of texts or numbers, not `{shown(str(value))}`",
            remedy='write ["4k", "8k"]',
        )
    return [str(one) for one in value]


def _checked(elements: Iterable[T], noun: str) -> tuple[T, ...]:
    """All of them, if there are some, not too many, and each once."""
    found: dict[T, None] = {}
    for one in elements:
        if one in found:
            raise InputError(f"the {noun} `{shown(str(one))}` occurs twice", remedy="name it once")
        found[one] = None
        if len(found) > MOST_ELEMENTS:
            raise InputError(
                f"the list has more than {MOST_ELEMENTS:,} elements ({noun})",
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

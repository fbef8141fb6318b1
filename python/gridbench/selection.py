"""Choosing numbered things on the command line: `3`, `startup`, `1-3`, `1,startup` or `all`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence

from gridbench.errors import InputError
from gridbench.workload.numbers import shown

_RANGE = re.compile(r"([0-9]{1,9})-([0-9]{1,9})\Z")


def parse_selection(words: Sequence[str], known: Mapping[int, str], noun: str) -> list[int]:
    """The numbers that the words choose, in their order. `known` gives the name of each number,
    and `noun` says what they are. InputError for a word that chooses none, or one again."""
    chosen: list[int] = []
    for word in (part.strip() for one in words for part in one.split(",")):
        for number in _numbers(word, known, noun):
            if number in chosen:
                raise InputError(
                    f"{noun} {number} ({known[number]}) is given twice", remedy="give it once"
                )
            chosen.append(number)
    return chosen


def _numbers(word: str, known: Mapping[int, str], noun: str) -> Sequence[int]:
    if word.lower() == "all":
        return list(known)
    for number, name in known.items():
        if word.lower() == name or (word.isascii() and word == str(number)):
            return [number]
    if found := _RANGE.match(word):
        first, last = int(found[1]), int(found[2])
        if first in known and last in known and first <= last:
            return [number for number in known if first <= number <= last]
    near = difflib.get_close_matches(word.lower(), known.values(), n=1)
    listed = ", ".join(f"{number} {name}" for number, name in known.items())
    raise InputError(
        f"unknown {noun} `{shown(word)}`",
        remedy=(f"did you mean `{near[0]}`? " if near else "")
        + f"known are {listed}; `all` and ranges such as {min(known)}-{max(known)} work as well",
    )

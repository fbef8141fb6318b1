"""Signs that the encoding of a terminal does not have."""

from __future__ import annotations

import codecs
import io
from typing import TextIO

_PLAIN = str.maketrans({
    "µ": "u", "×": "x", "±": "+-", "≤": "<=", "≥": ">=", "–": "-", "─": "-", "…": "...",
})  # fmt: skip
_NAME = "gridbench-plain"


def replace_missing_signs(stream: TextIO) -> None:
    """Write what stands for them, `us` for `µs` for example, instead of raising an error."""
    codecs.register_error(_NAME, _plain)
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors=_NAME)


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(_PLAIN)
    return "".join(sign if sign.isascii() else "?" for sign in text), error.end

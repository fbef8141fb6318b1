"""Colours for blocks in the interface description language."""

from __future__ import annotations

from collections.abc import Iterator

from pygments.lexers.c_cpp import CLexer
from pygments.token import Error, Keyword, Name, Punctuation, _TokenType

_WORDS = {
    "Module", "Globals", "CompileOptions", "Library", "Compiler", "Linker", "FortranFormat",
    "FortranStringConvention", "Dialect", "Define", "DefClass", "DefState", "DefMethod", "Required",
    "Backend", "Shrink", "Language", "CalcOrder", "Idempotent", "Calls",
    "IN", "OUT", "INOUT", "WORK",
}  # fmt: skip


class InterfaceLexer(CLexer):  # type: ignore[misc]
    """C, as bodies of functions are in it, with the words of interfaces."""

    name = "gridrpc IDL"
    aliases = ("idl",)
    filenames = ("*.idl",)

    def get_tokens_unprocessed(
        self, text: str, stack: tuple[str, ...] = ("root",)
    ) -> Iterator[tuple[int, _TokenType, str]]:
        for at, token, value in super().get_tokens_unprocessed(text, stack):
            if token in Name and value in _WORDS:
                yield at, Keyword, value
            else:
                # A directive of the preprocessor in braces on one line is none to C's lexer.
                yield at, Punctuation if token is Error else token, value

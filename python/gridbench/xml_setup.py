"""Set-up files in XML: one root with tags, each with a value, once, in any order.

They are read event by event, because a message has to name the line.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from pathlib import Path
from xml.parsers import expat

from gridbench.errors import InputError
from gridbench.read_config import read_bytes
from gridbench.workload.numbers import parse_real, parse_whole, shown


class SetupReader:
    """Takes the parser's events and collects the values, refusing all that does not belong."""

    def __init__(
        self,
        path: Path,
        *,
        root: str,
        tags: Sequence[str],
        example: str,
        optional: Collection[str] = (),
    ) -> None:
        """`tags`: those that may be in `root`; only `optional` ones may be missing.
        `example`: the path of a file to compare with. InputError names file, line and remedy."""
        self._path = path
        self._root = root
        self._tags = tags
        self._example = example
        self._open: list[str] = []
        self._text: list[str] = []
        self._values: dict[str, tuple[str, int]] = {}
        self._last_line = 1
        # The parser alone: `xml.sax` imports an HTTP client as well.
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._refuse_document_type
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text.append
        remedy = f"give the path of an XML set-up file, such as {example}"
        self._read(read_bytes(path, "set-up file", remedy))
        missing = [tag for tag in tags if tag not in self._values and tag not in optional]
        if missing:
            names = ", ".join(f"<{tag}>" for tag in missing)
            word = "tag is" if len(missing) == 1 else "tags are"
            raise self.error(
                f"{word} missing: {names}", f"add {names} inside <{root}>", self._last_line
            )

    # The values.

    def __contains__(self, tag: str) -> bool:
        """Whether the file has the tag."""
        return tag in self._values

    def whole(self, tag: str, low: int, high: int, remedy: str) -> int:
        """A whole number from `low` to `high`."""
        text, line = self._value(tag)
        try:
            return parse_whole(text, low, high)
        except ValueError as error:
            raise self.error(f"<{tag}> {error}", remedy, line) from None

    def real(self, tag: str, low: float, high: float, remedy: str) -> float:
        """A number from `low` to `high`."""
        text, line = self._value(tag)
        try:
            return parse_real(text, low, high)
        except ValueError as error:
            raise self.error(f"<{tag}> {error}", remedy, line) from None

    def text(self, tag: str, longest: int, what: str, remedy: str) -> str:
        """A text on one line. `what` it has to be: `the name of a file`."""
        text, line = self._value(tag)
        if len(text) > longest or not text.isprintable():
            raise self.error(f"<{tag}> is not {what}: `{shown(text)}`", remedy, line)
        return text

    def error(self, what: str, remedy: str, line: int | None = None) -> InputError:
        """That something is wrong in the line, by default in that of the parser."""
        return InputError(what, file=self._path, line=line or self._line(), remedy=remedy)

    def _value(self, tag: str) -> tuple[str, int]:
        text, line = self._values[tag]
        if not text:
            raise self.error(f"<{tag}> is empty", "write its value between the tags", line)
        return text, line

    # The whole document.

    def _read(self, contents: bytes) -> None:
        try:
            self._parser.Parse(contents, True)
        except expat.ExpatError as error:
            raise self.error(
                f"is not well-formed XML: {expat.ErrorString(error.code)}",
                f"compare it with {self._example}",
                error.lineno,
            ) from None
        except (LookupError, ValueError) as error:
            raise self.error(
                f"has an encoding that cannot be read: {error}", "save the file as UTF-8"
            ) from None

    # The parser's events.

    def _refuse_document_type(self, *_: object) -> None:
        """Entities can only be declared there: they could name other files, or become very long."""
        raise self.error(
            "must not declare a document type or entities",
            "remove the <!DOCTYPE ...> part and write the values out",
        )

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        """An opening tag."""
        if attributes:
            first = shown(next(iter(attributes)))
            raise self.error(
                f"<{shown(name)}> has an attribute `{first}`, but tags of a set-up file have none",
                "write the value between the tags",
            )
        if not self._open:
            if name != self._root:
                raise self.error(
                    f"starts with <{shown(name)}> instead of <{self._root}>",
                    f"put all tags into <{self._root}>",
                )
        elif len(self._open) > 1:
            raise self.error(
                f"<{shown(name)}> stands inside <{self._open[-1]}>",
                f"close <{self._open[-1]}> first; its value is plain text",
            )
        else:
            self._refuse_text(f"between the tags of <{self._root}>")
            self._refuse_wrong_tag(name)
        self._open.append(name)
        self._text.clear()

    def _end(self, name: str) -> None:
        """A closing tag: the text since the opening one is the value."""
        self._last_line = self._line()
        self._open.pop()
        if self._open:
            self._values[name] = ("".join(self._text).strip(), self._last_line)
        else:
            self._refuse_text(f"at the end of <{self._root}>")
        self._text.clear()

    def _refuse_wrong_tag(self, name: str) -> None:
        if name not in self._tags:
            near = difflib.get_close_matches(name.lower(), [tag.lower() for tag in self._tags], n=1)
            best = next((tag for tag in self._tags if near and tag.lower() == near[0]), None)
            hint = f"did you mean <{best}>?" if best else f"known tags: {', '.join(self._tags)}"
            raise self.error(f"unknown tag <{shown(name)}>", hint)
        if name in self._values:
            raise self.error(
                f"<{name}> is given twice, first in line {self._values[name][1]}",
                "keep one of the two",
            )

    def _refuse_text(self, where: str) -> None:
        if text := "".join(self._text).strip():
            raise self.error(f"text `{shown(text)}` {where}", "remove it, or make it a comment")

    def _line(self) -> int:
        return self._parser.CurrentLineNumber or 1

"""The XML set-up file of the compute-grid benchmark.

    <BenchmarkSetup>
    <NTasks>         200              </NTasks>
    <NNodes>         100              </NNodes>
    <InputFile>      input.200.1.0.1  </InputFile>
    <TaskDataSize>   10               </TaskDataSize>
    <SharedDataSize> 1024             </SharedDataSize>
    <WriteDataSize>  10               </WriteDataSize>
    </BenchmarkSetup>

Sizes are real numbers of KB of 1024 bytes. Values may be padded with blanks. The file is
read event by event, because a message has to name the line.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax import SAXParseException
from xml.sax.handler import ContentHandler
from xml.sax.xmlreader import AttributesImpl, Locator

import defusedxml
import defusedxml.sax

from gridbench.errors import InputError
from gridbench.small_file import read_bytes
from gridbench.workload.numbers import parse_real, parse_whole, shown

ROOT = "BenchmarkSetup"
TAGS = ("NTasks", "NNodes", "InputFile", "TaskDataSize", "SharedDataSize", "WriteDataSize")
MOST_TASKS = 10_000_000
MOST_NODES = 100_000
LARGEST_KB = 1024.0**3
"""One terabyte: anything above is a slip of the pen, not a benchmark."""
_LONGEST_NAME = 1000
_REMEDY = "give the path of an XML set-up file, such as examples/compute/setup.xml"
_BYTES_PER_KB = 1024


@dataclass(frozen=True, slots=True)
class Setup:
    """What the set-up file asks for."""

    path: Path
    """The set-up file itself."""
    ntasks: int
    nnodes: int
    """Cores, one task at a time each."""
    input_file: str
    """The list of task times, as written in the file."""
    task_kb: float
    shared_kb: float
    write_kb: float

    @property
    def times_path(self) -> Path:
        """Where the list of task times lies: `input_file` seen from the set-up file's folder."""
        return self.path.parent / self.input_file

    @property
    def task_bytes(self) -> int:
        """Data passed to each task."""
        return round(self.task_kb * _BYTES_PER_KB)

    @property
    def shared_bytes(self) -> int:
        """Data common to all tasks."""
        return round(self.shared_kb * _BYTES_PER_KB)

    @property
    def write_bytes(self) -> int:
        """Data that each task returns."""
        return round(self.write_kb * _BYTES_PER_KB)

    def to_dict(self) -> dict[str, Any]:
        """As stored in run.json, under the names of the set-up file."""
        return {
            "NTasks": self.ntasks,
            "NNodes": self.nnodes,
            "InputFile": self.input_file,
            "TaskDataSize": self.task_kb,
            "SharedDataSize": self.shared_kb,
            "WriteDataSize": self.write_kb,
        }


def read_setup(path: Path) -> Setup:
    """Read the set-up file at `path`; InputError names file, line and remedy."""
    reader = _Reader(path)
    reader.read(read_bytes(path, "set-up file", _REMEDY))
    return reader.setup()


class _Reader(ContentHandler):
    """Takes the parser's events and collects the values, refusing all that does not belong."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._locator: Locator | None = None
        self._open: list[str] = []
        self._text: list[str] = []
        self._values: dict[str, tuple[str, int]] = {}
        self._last_line = 1

    def read(self, contents: bytes) -> None:
        """Parse the whole document; InputError at the first thing that is wrong."""
        try:
            defusedxml.sax.parseString(contents, self, forbid_dtd=True)
        except SAXParseException as error:
            line = error.getLineNumber()
            raise self._error(
                f"is not well-formed XML: {error.getMessage()}",
                "compare it with examples/compute/setup.xml",
                line,
            ) from None
        except defusedxml.DefusedXmlException:
            raise self._error(
                "must not declare a document type or entities",
                "remove the <!DOCTYPE ...> part and write the values out",
            ) from None
        except (LookupError, ValueError) as error:
            raise self._error(
                f"has an encoding that cannot be read: {error}", "save the file as UTF-8"
            ) from None

    def setup(self) -> Setup:
        """The values as numbers, after `read`."""
        missing = [tag for tag in TAGS if tag not in self._values]
        if missing:
            names = ", ".join(f"<{tag}>" for tag in missing)
            word = "tag is" if len(missing) == 1 else "tags are"
            raise self._error(
                f"{word} missing: {names}", f"add {names} inside <{ROOT}>", self._last_line
            )
        return Setup(
            path=self._path,
            ntasks=self._whole("NTasks", MOST_TASKS),
            nnodes=self._whole("NNodes", MOST_NODES),
            input_file=self._name("InputFile"),
            task_kb=self._kilobytes("TaskDataSize"),
            shared_kb=self._kilobytes("SharedDataSize"),
            write_kb=self._kilobytes("WriteDataSize"),
        )

    # The parser's events. Their names are given by the standard library.

    def setDocumentLocator(self, locator: Locator) -> None:
        """Keep the parser's position, for the line numbers."""
        self._locator = locator

    def startElement(self, name: str, attrs: AttributesImpl) -> None:
        """An opening tag."""
        if len(attrs):
            first = shown(next(iter(attrs.keys())))
            raise self._error(
                f"<{shown(name)}> has an attribute `{first}`, but tags of a set-up file have none",
                "write the value between the tags",
            )
        if not self._open:
            if name != ROOT:
                raise self._error(
                    f"starts with <{shown(name)}> instead of <{ROOT}>",
                    f"put all tags into <{ROOT}>",
                )
        elif len(self._open) > 1:
            raise self._error(
                f"<{shown(name)}> stands inside <{self._open[-1]}>",
                f"close <{self._open[-1]}> first; its value is plain text",
            )
        else:
            self._refuse_text(f"between the tags of <{ROOT}>")
            self._refuse_wrong_tag(name)
        self._open.append(name)
        self._text.clear()

    def endElement(self, name: str) -> None:
        """A closing tag: the text since the opening one is the value."""
        self._last_line = self._line()
        self._open.pop()
        if self._open:
            self._values[name] = ("".join(self._text).strip(), self._last_line)
        else:
            self._refuse_text(f"at the end of <{ROOT}>")
        self._text.clear()

    def characters(self, content: str) -> None:
        """Text, in pieces of any size."""
        self._text.append(content)

    def _refuse_wrong_tag(self, name: str) -> None:
        if name not in TAGS:
            near = difflib.get_close_matches(name.lower(), [tag.lower() for tag in TAGS], n=1)
            best = next((tag for tag in TAGS if near and tag.lower() == near[0]), None)
            hint = f"did you mean <{best}>?" if best else f"known tags: {', '.join(TAGS)}"
            raise self._error(f"unknown tag <{shown(name)}>", hint)
        if name in self._values:
            raise self._error(
                f"<{name}> is given twice, first in line {self._values[name][1]}",
                "keep one of the two",
            )

    def _refuse_text(self, where: str) -> None:
        if text := "".join(self._text).strip():
            raise self._error(f"text `{shown(text)}` {where}", "remove it, or make it a comment")

    # The values.

    def _whole(self, tag: str, high: int) -> int:
        text, line = self._value(tag)
        try:
            return parse_whole(text, 1, high)
        except ValueError as error:
            raise self._error(
                f"<{tag}> {error}", "write a whole number such as 100", line
            ) from None

    def _kilobytes(self, tag: str) -> float:
        text, line = self._value(tag)
        try:
            return parse_real(text, 0.0, LARGEST_KB)
        except ValueError as error:
            raise self._error(
                f"<{tag}> {error}", "write the size in KB; 1 MB is 1024, no data is 0", line
            ) from None

    def _name(self, tag: str) -> str:
        text, line = self._value(tag)
        if len(text) > _LONGEST_NAME or not text.isprintable():
            raise self._error(
                f"<{tag}> is not the name of a file: `{shown(text)}`",
                "write the path of the list of task times, on one line",
                line,
            )
        return text

    def _value(self, tag: str) -> tuple[str, int]:
        text, line = self._values[tag]
        if not text:
            raise self._error(f"<{tag}> is empty", "write its value between the tags", line)
        return text, line

    def _line(self) -> int:
        number = self._locator.getLineNumber() if self._locator else None
        return number or 1

    def _error(self, what: str, remedy: str, line: int | None = None) -> InputError:
        return InputError(what, file=self._path, line=line or self._line(), remedy=remedy)

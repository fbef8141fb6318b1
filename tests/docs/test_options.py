"""Commands and options of gridbench that the text of pages names, outside of blocks, are there."""

from __future__ import annotations

import re

import click
import pytest
from blocks import pages, prose_of

from gridbench.cli import COMMANDS
from gridbench.datagrid.options import DefaultToRun

#: `gridbench scenario --rounds`
SPAN = re.compile(r"`gridbench (\w[\w-]*)([^`]*)`")
NAMED = [
    pytest.param(found[1], found[2].split(), id=f"{page}: {' '.join(found[0].split())}")
    for page in pages()
    for found in SPAN.finditer(prose_of(page))
]


def test_pages_name_commands() -> None:
    assert len(NAMED) > 30


@pytest.mark.parametrize(("name", "words"), NAMED)
def test_command_is_there(name: str, words: list[str]) -> None:
    command: click.Command = COMMANDS[name].load()
    if isinstance(command, DefaultToRun) and words:
        words = command.with_command(words)
    if isinstance(command, click.Group) and words and not words[0].startswith("-"):
        command = command.commands[words.pop(0)]
    there = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("-")} <= there

"""The directive `program-help`: what a program says of itself and its commands with `--help`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

from gridbench.cli import cli

#: As gridbench lists groups of commands, click and clap all of them, and argparse does.
_COMMANDS = re.compile(
    r"^(?:Start here:|Special:|Laboratory:|Help:|Commands:|  COMMAND)\n(?P<lines>(?:  .*\n)+)",
    re.MULTILINE,
)
#: `  run         Measure the workload of SETUP.xml.`; what it says may continue in further lines.
_COMMAND = re.compile(r"^ {2,4}(?P<name>[\w-]+)(?:  |$)", re.MULTILINE)


def help_of(words: list[str]) -> str:
    """What a command prints, on a terminal of 80 columns."""
    program = Path(sys.executable).with_name(words[0])
    # Whatever the terminal of the build, or the reader of the site: no colours and one width.
    variables = {**os.environ, "COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1"}

    def printed(option: str) -> str:
        command = [program, *words[1:], option]
        if words[0] == "gridbench":  # 60 times Python and what it imports take longer than the page
            # Click leaves two columns of a terminal empty.
            settings = {"prog_name": words[0], "terminal_width": 78}
            called = CliRunner(env=variables).invoke(cli, command[1:], **settings)
            if called.exit_code != 0:
                raise ExtensionError(f"`{' '.join(map(str, command))}`: {called.output}")
            text = called.stdout
        else:
            text = subprocess.run(
                command, env=variables, capture_output=True, text=True, check=True
            ).stdout
        return "\n".join(line.rstrip() for line in text.strip().splitlines()) + "\n"

    text = printed("--help")
    return printed("--help-all") if "\n  --help-all " in text else text


def commands_of(text: str) -> list[str]:
    """The names of the commands that a help lists."""
    names = [
        command["name"]
        for group in _COMMANDS.finditer(text)
        for command in _COMMAND.finditer(group["lines"])
    ]
    return [name for name in names if name != "help"]


class ProgramHelp(SphinxDirective):
    """`.. program-help:: gridbench`: a section for each command, and for those of each group."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        program = self.arguments[0]
        text = help_of([program])
        return [self._block(text), *(self._section([program, name]) for name in commands_of(text))]

    def _section(self, words: list[str]) -> nodes.section:
        text = help_of(words)
        title = " ".join(words)
        section = nodes.section(ids=[nodes.make_id(title)], names=[title])
        section += nodes.title(title, title)
        section += self._block(text)
        for name in commands_of(text):
            section += self._section([*words, name])
        self.state.document.note_explicit_target(section)
        return section

    def _block(self, text: str) -> nodes.literal_block:
        return nodes.literal_block(text, text, language="text")


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("program-help", ProgramHelp)
    return {"parallel_read_safe": True}

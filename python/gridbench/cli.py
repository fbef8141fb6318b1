"""The program `gridbench`.

`COMMANDS` lists the commands. The module of a command is imported when the command is used, and
what the command needs when it runs, so that help comes at once.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import NamedTuple

import click

from gridbench.command_line import run_command
from gridbench.errors import InputError


class Entry(NamedTuple):
    """A command: its group in the help, `module:object` in gridbench, and a summary of one line."""

    group: str
    where: str
    summary: str

    def load(self) -> click.Command:
        """Import the command."""
        module, _, name = self.where.partition(":")
        command: click.Command = getattr(importlib.import_module(f"gridbench.{module}"), name)
        return command


START, SPECIAL, LABORATORY, HELP = "Start here", "Special", "Laboratory", "Help"

# One entry for each command, in the order of the help.
COMMANDS = {
    "run": Entry(START, "run.options:run", "Run one workload on engines, and compare them."),
    "micro": Entry(
        START,
        "micro.options:micro",
        "Measure calls, arrays, start-up and memory of all engines.",
    ),
    "scenario": Entry(
        START, "scenario.options:scenario", "Answer one question about engines with a grid of runs."
    ),
    "advise": Entry(
        START, "advise.options:advise", "Say how to divide a job, and on how many cores to run it."
    ),
    "compare": Entry(
        START, "compare.options:compare", "Compare your own commands: which is faster, by how much?"
    ),
    "recommend": Entry(
        START,
        "recommend.options:recommend",
        "Write a one-page recommendation from any results.",
    ),
    "report": Entry(
        START, "results.command:report", "Make a page, a table or a comparison of results."
    ),
    "engines": Entry(
        START, "engines.commands:engines", "List the engines, and install or remove them."
    ),
    "sync": Entry(
        SPECIAL, "sync.options:sync", "Run a program on all workers at the same instant."
    ),
    "data": Entry(
        SPECIAL, "datagrid.options:data", "Measure data grids: tasks read and update objects."
    ),
    "placement": Entry(
        SPECIAL,
        "placement.options:placement",
        "Choose among servers of a network: compare policies.",
    ),
    "linpack": Entry(
        SPECIAL, "linpack.options:linpack", "Solve linear systems here and on a server."
    ),
    "ensemble": Entry(
        SPECIAL,
        "ensemble.options:ensemble",
        "Run a weather ensemble on emulated clusters.",
    ),
    "simulate": Entry(
        SPECIAL, "simulate.options:simulate", "Simulate a workload on systems that you don't have."
    ),
    "check": Entry(
        LABORATORY, "results.check:check", "Check results against the rules for valid claims."
    ),
    "model": Entry(
        LABORATORY,
        "model.options:model",
        "Fit a performance model to results, and report its error.",
    ),
    "links": Entry(
        LABORATORY,
        "links.options:links",
        "Emulate network links on this machine, and measure them.",
    ),
    "services": Entry(
        LABORATORY, "services:services", "Start servers and file systems to put under load."
    ),
    "published": Entry(
        LABORATORY,
        "published.options:published",
        "Show the figures of the original report, recomputed.",
    ),
    "list-times": Entry(
        LABORATORY, "workload.options:list_times", "Write a list of task times for a set-up file."
    ),
    "help": Entry(HELP, "cli:help_", "Show the help of a command."),
    "completion": Entry(HELP, "completion:completion", "Print the completion script of a shell."),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point."""
    run_command(cli, "gridbench", arguments)


class Program(click.Group):
    """The program: commands in groups, each imported when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the names in the order of the help."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        del ctx
        entry = COMMANDS.get(cmd_name)
        return entry and entry.load()

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the first word names. InputError if there is none."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            raise no_such_command(name, "gridbench", list(COMMANDS))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups of commands, without importing any."""
        del ctx
        for group in dict.fromkeys(entry.group for entry in COMMANDS.values()):
            with formatter.section(group):
                formatter.write_dl(
                    [
                        (f"{name:10}", entry.summary)
                        for name, entry in COMMANDS.items()
                        if entry.group == group
                    ]
                )


def no_such_command(name: str, program: str, known: Sequence[str]) -> InputError:
    """The error for a command that does not exist."""
    import difflib

    near = difflib.get_close_matches(name.lower(), known, n=1)
    hint = f"did you mean `{near[0]}`? " if near else ""
    return InputError(
        f"{program} has no command `{name[:80]}`",
        remedy=f"{hint}`{program} --help` lists the commands",
    )


def _print_version(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    del parameter
    if value and not context.resilient_parsing:
        from importlib import metadata

        try:
            click.echo(f"gridbench {metadata.version('gridrpc')}")
        except metadata.PackageNotFoundError:
            click.echo("gridbench, not installed")
        context.exit()


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """Run the same workload on several engines, and see which is fastest and why.

    `gridbench run` compares engines with a small workload. `gridbench help COMMAND` shows the
    options of a command, with examples.
    """


@click.command("help")
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def help_(context: click.Context, words: tuple[str, ...]) -> None:
    """Show the help of a command, such as `gridbench help data run`."""
    shown = context.find_root()
    for word in words:
        group = shown.command
        found = group.get_command(shown, word) if isinstance(group, click.Group) else None
        if found is None:
            known = group.list_commands(shown) if isinstance(group, click.Group) else []
            raise no_such_command(word, shown.command_path, known)
        shown = click.Context(found, info_name=word, parent=shown)
    click.echo(shown.get_help())

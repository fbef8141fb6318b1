"""Running a command: help with examples, errors in one style, and signs that a terminal lacks."""

from __future__ import annotations

import codecs
import io
import re
import signal
import sys
from collections.abc import Sequence
from typing import Any, TextIO

import click

from gridbench.errors import InputError, print_error


class CommandWithExamples(click.Command):
    """A command whose help ends with examples, kept as they are written.

    With `basic`, names of options, `--help` shows these alone, the first paragraph and the first
    examples; `--help-all` shows everything.
    """

    def __init__(
        self, *args: Any, examples: Sequence[str] = (), basic: Sequence[str] = (), **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._examples = examples
        self._basic = basic
        self._all = not basic
        if basic:
            self.params.append(
                click.Option(
                    ["--help-all"],
                    is_flag=True,
                    is_eager=True,
                    expose_value=False,
                    callback=self._show_all,
                    help="Show all options and exit.",
                )
            )

    def _show_all(self, context: click.Context, parameter: click.Parameter, value: bool) -> None:
        del parameter
        if value and not context.resilient_parsing:
            self._all = True
            click.echo(context.get_help())
            context.exit()

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the command does."""
        whole = self.help
        try:
            if not self._all and self.help:
                self.help = self.help.partition("\n\n")[0]
            super().format_help_text(ctx, formatter)
        finally:
            self.help = whole

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options."""
        shown = [
            record
            for parameter in self.get_params(ctx)
            if self._all or {*self._basic, "--help", "--help-all"} & {*parameter.opts}
            if (record := parameter.get_help_record(ctx)) is not None
        ]
        with formatter.section("Options"):
            formatter.write_dl(shown)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        del ctx
        examples = self._examples if self._all else self._examples[:3]
        if examples:
            with formatter.section("Examples"):
                for example in examples:
                    formatter.write(f"  {example}\n")


_QUOTED = re.compile(r"(?<!\w)'([^']*)'(?!\w)")


def run_command(command: click.Command, name: str, arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit: status 2 for bad input and 3 for a busy machine, with one message and
    no traceback."""
    for stream in (sys.stdout, sys.stderr):
        replace_missing_signs(stream)
    try:
        sys.exit(command.main(args=arguments, prog_name=name, standalone_mode=False))
    except InputError as error:
        print_error(error)
        sys.exit(error.exit_status)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except click.UsageError as error:
        print_error(usage_error(error))
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        # Click itself would exit with 1, the status of a run in which something failed.
        print("gridbench: interrupted", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)


def usage_error(error: click.UsageError) -> InputError:
    """Click's error about a command line, with a remedy."""
    return InputError(_what(error), remedy=_remedy(error))


def _what(error: click.UsageError) -> str:
    if isinstance(error, click.NoSuchOption):
        return f"{_command_of(error)} has no option `{error.option_name}`"
    if isinstance(error, click.MissingParameter):
        text = error.format_message()
    elif isinstance(error, click.BadParameter) and error.param is not None:
        named = (error.param.opts or [""])[-1]
        if isinstance(error.param, click.Argument):
            named = error.param.make_metavar(error.ctx or click.get_current_context())
        text = f"{named}: {error.message}"
    else:
        text = error.format_message()
    text = _QUOTED.sub(r"`\1`", text).rstrip(".")
    first, _, rest = text.partition(" ")
    return f"{first.lower()} {rest}" if first.istitle() else text


def _remedy(error: click.UsageError) -> str:
    near: list[str] = []
    if isinstance(error, click.NoSuchOption) and error.ctx:
        import difflib

        known = [name for one in error.ctx.command.params for name in one.opts if name[:2] == "--"]
        near = difflib.get_close_matches(error.option_name, known, n=1, cutoff=0.7)
    hint = f"did you mean `{near[0]}`? " if near else ""
    return f"{hint}`{_command_of(error)} --help` lists the options"


def _command_of(error: click.UsageError) -> str:
    return error.ctx.command_path if error.ctx else "gridbench"


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

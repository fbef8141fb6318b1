"""Running a command, with errors of the command line in the style of all others."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Sequence

import click

from gridbench.encodings import replace_missing_signs
from gridbench.errors import InputError, print_error

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
    """What Click has found wrong with a command line, and what to do."""
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

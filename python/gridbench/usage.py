"""Errors of the command line in the style of all others."""

from __future__ import annotations

import re

import click

from gridbench.errors import InputError

_QUOTED = re.compile(r"(?<!\w)'([^']*)'(?!\w)")


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

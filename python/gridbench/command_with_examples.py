"""Commands whose help ends with examples, and may be short."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click


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

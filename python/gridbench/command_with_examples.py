"""Commands whose help ends with examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click


class CommandWithExamples(click.Command):
    """A command whose help ends with examples, kept as they are written."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        del ctx
        if self._examples:
            with formatter.section("Examples"):
                for example in self._examples:
                    formatter.write(f"  {example}\n")

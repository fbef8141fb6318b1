"""The options of all commands that go on with what an earlier call has measured.

One rule holds for them: what has a value is not measured again. What failed is kept with its
reason, and not tried again unless that is asked for. What other programs disturbed when it failed
is, as they may be the reason; what was cut off is not kept, and so is missing.
"""

from __future__ import annotations

from collections.abc import Callable

import click

retry_failed_option = click.option(
    "--retry-failed", is_flag=True, help="Try again what has failed in an earlier call."
)


def going_on_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options, as its arguments `fresh` and `retry_failed`."""
    fresh = click.option("--fresh", is_flag=True, help="Forget the results that DIR holds.")
    return fresh(retry_failed_option(command))

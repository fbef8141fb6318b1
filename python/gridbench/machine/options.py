"""Options of all commands that measure: the policy if other programs use the machine."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from gridbench.errors import BusyMachine
from gridbench.formats import as_given

WAIT = 30.0
"""Default seconds to wait for a busy machine."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Policy for other programs, before and after measuring."""

    accept: bool = False
    """Measure anyway; disturbed runs claim nothing, and the exit status is 0."""
    wait: float = WAIT
    """Seconds to wait for a quiet machine; infinite: without a limit."""

    def exit_status(self, *, claims: bool) -> int:
        """The exit status of a command without other failures."""
        return 0 if claims or self.accept else BusyMachine.exit_status


def _seconds(context: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    del context, parameter
    try:
        seconds = None if value is None else float(value)
    except ValueError:
        seconds = math.nan
    if seconds is not None and not seconds >= 0:
        raise click.BadParameter(
            f"`{value}` is not a time: write --wait-for-quiet=60, or put it last without a value."
        )
    return seconds


_accept = click.option(
    "--accept-load",
    is_flag=True,
    envvar="GRIDBENCH_ACCEPT_LOAD",
    help="Measure although other programs use the machine; disturbed runs then claim nothing.",
)
_wait = click.option(
    "--wait-for-quiet",
    is_flag=False,
    flag_value="inf",
    metavar="[S]",
    callback=_seconds,
    help="Wait until no other programs use the machine, for S seconds at most, or as long as it"
    f" takes. [default: {as_given(WAIT)}, then stop with exit status 3]",
)


def load_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command both options, as its argument `policy`."""

    @functools.wraps(command)
    def with_policy(*, accept_load: bool, wait_for_quiet: float | None, **others: Any) -> None:
        wait = wait_for_quiet
        if wait is None:
            wait = 0.0 if accept_load else WAIT
        command(policy=Policy(accept=accept_load, wait=wait), **others)

    return _accept(_wait(with_policy))

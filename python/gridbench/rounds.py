"""The option --rounds: how often something is measured, or as often as its answer takes."""

from __future__ import annotations

from typing import Literal

import click

from gridbench.errors import InputError
from gridbench.workload.numbers import shown

AUTO: Literal["auto"] = "auto"
"""As many rounds as it takes."""
_MOST = 1000


class _Rounds(click.ParamType[int | Literal["auto"]]):
    """A number from 1 on, or `AUTO`."""

    name = "rounds"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | Literal["auto"]:
        del ctx
        text = str(value).strip()
        if text == AUTO:
            return AUTO
        if text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= _MOST:
            return int(text)
        raise InputError(
            f"{param.opts[-1] if param else 'rounds'}: `{shown(text)}` is no number of rounds",
            remedy=f"give one from 1 to {_MOST:,}, or {AUTO}: as many as the answer takes",
        )


ROUNDS = _Rounds()
"""The type of options of a number of rounds."""

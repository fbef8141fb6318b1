"""Bars of progress that only a terminal shows."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich import progress as bars
from rich.console import Console


class TerminalBars:
    """Draws bars on a terminal while it is active. Nothing is drawn but when it is asked to."""

    def __init__(
        self, console: Console, *columns: bars.ProgressColumn, transient: bool = False
    ) -> None:
        self._console = console
        self._bars = bars.Progress(
            *columns, console=console, auto_refresh=False, transient=transient
        )

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._console.is_terminal:
            self._bars.stop()

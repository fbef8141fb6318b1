"""Errors of users: problem, place and remedy."""

from __future__ import annotations

from pathlib import Path


class InputError(Exception):
    """Bad input: problem, place and remedy. The program prints it, and exits with
    `exit_status`."""

    exit_status = 2

    def __init__(
        self,
        what: str,
        *,
        file: str | Path | None = None,
        line: int | None = None,
        remedy: str = "",
    ) -> None:
        self.what = what
        self.file = file
        self.line = line
        self.remedy = remedy
        super().__init__(str(self))

    def __str__(self) -> str:
        where = "" if self.file is None else f"{self.file}: "
        if self.file is not None and self.line is not None:
            where = f"{self.file}:{self.line}: "
        hint = f"\nhint: {self.remedy}" if self.remedy else ""
        return f"{where}{self.what}{hint}"

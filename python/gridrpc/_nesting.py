"""Grids that processes of other grids open: refused where they would open others without end."""

from __future__ import annotations

import sys

from gridrpc.errors import NestingError


def check_imports() -> None:
    """Raise NestingError in a spawner or worker that is importing a module.

    Workers import a module to find its functions. If that opened a grid, the workers of that grid
    would import the module as well, and so on.
    """
    worker = sys.modules.get("gridrpc._worker")
    if worker is None or not worker.serving:
        return
    importing = module_being_imported()
    if importing is not None:
        raise NestingError(
            f"the module `{importing}` opens a grid while a worker imports it, and the workers of "
            "that grid would import it again: open the grid in a function that workers do not "
            'call, or below `if __name__ == "__main__":`'
        )


def module_being_imported() -> str | None:
    """The innermost module whose import this thread is in; None if it is in none."""
    frame = sys._getframe(1)
    name = None
    while frame is not None:
        code = frame.f_code
        if name is None and code.co_name == "<module>":
            name = frame.f_globals.get("__name__", "?")
        if code.co_filename == "<frozen importlib._bootstrap>":
            return name or "?"
        frame = frame.f_back  # type: ignore[assignment]
    return None

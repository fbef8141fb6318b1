"""Programs that contain Python: frozen ones, as PyInstaller makes them, and others that embed it.

Their `sys.executable` may be the program itself. Started as an interpreter, it would run as a whole
again, open its grid again, and so on.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as in `__init__`

if TYPE_CHECKING:
    from gridrpc.errors import ConfigError

#: The environment variable that marks a process as the spawner of a grid, until it serves.
SPAWNER = "GRIDRPC_SPAWNER"
#: The module that a rank of MPI runs.
RANK = "gridrpc._rank"

#: Whether the program has called `freeze_support`.
_supported = False


def freeze_support() -> None:
    """Let a frozen program start workers. Call it first in the main program.

    A program that PyInstaller or another tool has frozen contains no Python interpreter that
    workers could run, so the program itself is started again. In that process this function runs
    the workers and does not return. Everywhere else it returns at once.
    """
    global _supported
    _supported = True
    if SPAWNER in os.environ:
        from gridrpc._worker import main

        main()
        sys.exit()
    if _is_frozen() and RANK in sys.argv:
        from gridrpc._rank import main as run_rank

        run_rank()
        sys.exit()


def check_program() -> None:
    """Raise ConfigError in a program that was started as a spawner, but runs its main program."""
    if SPAWNER in os.environ:
        raise _config_error(
            f"{sys.executable!r} was started to run the workers of a grid, but runs its main "
            "program: call gridrpc.freeze_support() first in the main program, or name a Python "
            "interpreter, as in Grid(python=...)"
        )


def interpreter(python: str) -> str:
    """The program that runs Python workers: the setting `python`, or the client's own.

    Raises ConfigError if it is no program, or one that does not run Python workers.
    """
    if python:
        if not _is_program(python):
            raise _config_error(
                f"`python` is {python!r}, which is not a program: name a Python interpreter"
            )
        return python
    if _is_frozen() and not _supported:
        raise _config_error(
            "this program is frozen, so its workers need its help: call gridrpc.freeze_support() "
            "first in the main program, or name a Python interpreter, as in Grid(python=...)"
        )
    # Programs that embed Python may leave it empty.
    own: str | None = sys.executable
    if not own or not _is_program(own):
        raise _config_error(
            f"`sys.executable` is {own!r}, which is not a program, so no worker can be started: "
            "name a Python interpreter, as in Grid(python=...)"
        )
    return own


def _config_error(message: str) -> ConfigError:
    # Workers load this module, and hardly any of them needs the errors.
    from gridrpc.errors import ConfigError

    return ConfigError(message)


def _is_frozen() -> bool:
    return bool(getattr(sys, "frozen", False))


def _is_program(name: str) -> bool:
    if os.sep in name:
        return os.path.isfile(name) and os.access(name, os.X_OK)
    import shutil  # takes some milliseconds: hardly anybody names a program without its folder

    return shutil.which(name) is not None

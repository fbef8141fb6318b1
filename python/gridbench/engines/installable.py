"""What is installed into a folder of its own, by one process at a time.

The folders are in `$GRIDBENCH_ENGINES`, by default in `share/gridbench/engines` of this Python.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gridbench.errors import InputError

PLACE = "GRIDBENCH_ENGINES"
"""The environment variable that says where the folders are."""


@dataclass(frozen=True, slots=True)
class State:
    """Whether an installation can be used."""

    kind: Literal["installed", "missing", "half installed", "other version"]
    version: str = ""
    """That of the engine's own package, where there is one."""
    what: str = ""
    """What is wrong, unless it is installed."""
    remedy: str = ""


class Installable(ABC):
    """One of them, be it installed or not."""

    commands: str
    """The command below which it is installed and removed."""
    kind: str
    """What is made, in words."""

    def __init__(self, root: Path, name: str) -> None:
        self.name = name
        self.root = root
        self.folder = root / name
        self.log = root / f"{name}.log"
        """What making it has printed."""
        self._lock = root / f".{name}.lock"

    @abstractmethod
    def state_unlocked(self) -> State:
        """As `state`, for who keeps others from changing it."""

    @abstractmethod
    def require_tools(self) -> None:
        """Raise InputError if the machine has not what it takes to install and to use it."""

    def state(self) -> State:
        """Whether it can be used, as far as can be seen without running anything."""
        if self._is_locked():
            what = "is being installed or removed by another process"
            return State("half installed", what=what, remedy="wait until that process has ended")
        return self.state_unlocked()

    def require(self) -> None:
        """Raise InputError unless it is installed."""
        state = self.state()
        if state.kind != "installed":
            raise InputError(f"the engine `{self.name}` {state.what}", remedy=state.remedy)

    @property
    def remedy(self) -> str:
        """What to do if it is not installed."""
        return f"run `{self.commands} install {self.name}`"

    @contextlib.contextmanager
    def locked(self, *, wait: bool) -> Iterator[int | None]:
        """Keep others from changing it; a descriptor that processes can inherit to go on with that.

        None if another process has it and `wait` is not wanted. OSError if there can be no file.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        with self._lock.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                yield None
            else:
                yield file.fileno()

    def _is_locked(self) -> bool:
        try:
            with self._lock.open() as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:  # no file: nobody has ever installed it
            return False
        return False


def environments_folder() -> Path:
    """Where all folders are."""
    default = Path(sys.prefix, "share", "gridbench", "engines")
    return Path(os.environ.get(PLACE) or default).absolute()

"""What tests do with sessions."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from grids import PROGRAM
from processes import LONG, environment


def command(*words: str, cwd: Path, status: int = 0) -> str:
    """What `gridrpc session` says."""
    ran = subprocess.run(
        [PROGRAM, "session", *words], cwd=cwd, env=environment(), capture_output=True, text=True,
        timeout=LONG, check=False,
    )  # fmt: skip
    assert ran.returncode == status, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


@contextmanager
def session(name: str, folder: Path) -> Iterator[Path]:
    """A session with two workers, and no other, while the context lasts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        command("start", name, "--workers", "2", cwd=folder)
        try:
            yield folder
        finally:
            command("stop", name, "--forget", cwd=folder)


def ran(folder: Path) -> list[int]:
    file = folder / "ran"
    return [int(line) for line in file.read_text().splitlines()] if file.exists() else []


def at(folder: Path, items: Iterable[int]) -> tuple[list[str], list[int]]:
    """Arguments of the functions of noting.py."""
    items = list(items)
    return [str(folder)] * len(items), items

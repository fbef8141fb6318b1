"""Copies of the checkout, in which the sources can be changed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from .changes import ROOT


def copy_checkout(folder: Path) -> None:
    """What is under version control or will be, and what was built below python/."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in (*_listed("--cached"), *_listed("--ignored", "python")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    # A mutant may be as long as what it replaces, and of the same second.
    compiling = (sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash")
    subprocess.run((*compiling, folder / "python", folder / "tests"), check=True)


def _listed(*options: str) -> list[str]:
    """Files of the checkout, as git tells them."""
    told = subprocess.run(
        ("git", "ls-files", "-z", *options, "--exclude-standard", "--others"),
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    return [name for name in told.split("\0") if name and "__pycache__" not in name]

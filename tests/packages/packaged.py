"""How the tests of packages run commands: in an environment of its own, outside of the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECONDS = 900
#: What is tested is what the packages have, not how fast it is. What is built stays for the next
#: time.
QUICK_BUILD = {
    "CARGO_PROFILE_RELEASE_LTO": "off",
    "CARGO_PROFILE_RELEASE_OPT_LEVEL": "1",
    "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
    "CARGO_PROFILE_RELEASE_DEBUG": "0",
    "CARGO_TARGET_DIR": str(ROOT / "target" / "packages"),
    "PYO3_PYTHON": sys.executable,
    # The environment of the tests has what builds packages.
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
}


def run(
    *command: str | os.PathLike[str],
    cwd: Path,
    environment: dict[str, str] | None = None,
    expected: int = 0,
) -> str:
    """What a command prints, on either stream."""
    ran = subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ran.returncode == expected, f"{command}:\n{ran.stdout}"
    return ran.stdout


def build_sdist(sources: Path, folder: Path) -> None:
    code = f"import backend; backend.build_sdist({str(folder)!r})"
    environment = {**os.environ, **QUICK_BUILD, "PYTHONPATH": str(sources / "packaging")}
    run(sys.executable, "-c", code, cwd=sources, environment=environment)


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and how commands are run with it activated."""

    prefix: Path

    def run(self, *command: str | os.PathLike[str], cwd: Path, expected: int = 0) -> str:
        """What a command prints."""
        return run(*command, cwd=cwd, environment=self.variables(), expected=expected)

    def variables(self) -> dict[str, str]:
        """As after `source bin/activate` in a new login."""
        kept = ("HOME", "LANG", "TMPDIR", "USER")
        return {
            **{name: os.environ[name] for name in kept if name in os.environ},
            "PATH": f"{self.prefix}/bin:/usr/local/bin:/usr/bin:/bin",
            "VIRTUAL_ENV": str(self.prefix),
        }

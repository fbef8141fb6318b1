"""What the user wants of a machine that other programs use."""

from __future__ import annotations

from dataclasses import dataclass

from gridbench.errors import BusyMachine

WAIT = 30.0
"""Seconds that a busy machine is waited for unless the user says otherwise."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What to do about it before and after measuring."""

    accept: bool = False
    """Go on; what is disturbed claims nothing, and that is no failure."""
    wait: float = WAIT
    """Seconds to wait for it to become quiet; infinite: as long as it takes."""

    def exit_status(self, *, claims: bool) -> int:
        """That of a command whose measurements were otherwise well."""
        return 0 if claims or self.accept else BusyMachine.exit_status

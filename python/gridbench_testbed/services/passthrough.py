"""A file system of FUSE that hands everything on to a local disk: what FUSE alone costs.

with Passthrough(mounts=2) as passthrough:
    (passthrough.mounts[0] / "file").write_text("there")
"""

from __future__ import annotations

from pathlib import Path

from gridbench_testbed.daemons import lacking
from gridbench_testbed.services.mounts import Mounts, why_no_fuse


def why_not() -> str:
    """Why there can be none here; empty if there can."""
    if program := lacking("bindfs", "setpriv"):
        return f"`{program}` is not installed: scripts/ensure-gfarm does that"
    return why_no_fuse()


class Passthrough(Mounts):
    """One folder of a local disk, mounted several times by bindfs."""

    def __init__(
        self, mounts: int = 1, *, directory: Path | None = None, mounts_in: Path | None = None
    ) -> None:
        """`directory`: where the folder is made, on the disk that is to be used."""
        super().__init__("passthrough", directory, mounts_in)
        served = self.folder / "served"
        served.mkdir()
        try:
            self._mount(mounts, "bindfs", "-f", "-o", "fsname=passthrough", str(served))
        except BaseException:
            self.close()
            raise

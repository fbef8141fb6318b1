"""Where gridbench's own data grids are built, and whether they are.

What Maven makes of a data grid is in `datagrid/NAME` of the folder with all engines: its file
engine.toml, and target/lib with its class path. A marker tells from which sources it was made.
"""

from __future__ import annotations

from pathlib import Path

from gridbench.datagrid.engines.java import java, maven
from gridbench.datagrid.engines.sources import CORE, digest, module_of
from gridbench.engines.installable import Installable, State, environments_folder

MARKER = "gridbench-built.txt"
"""Written last: the digest of the sources."""
LIBRARIES = Path("target", "lib")


class Build(Installable):
    """A data grid, built or not."""

    commands = "gridbench data engines"
    kind = "build"

    def __init__(self, name: str) -> None:
        super().__init__(environments_folder() / "datagrid", name)
        self.module = module_of(name)
        """What Maven builds for it."""

    def state_unlocked(self) -> State:
        """As `state`, for who keeps others from changing it."""
        if not self.folder.exists():
            return State("missing", what="is not installed", remedy=self.remedy)
        marker = self.folder / MARKER
        if not marker.is_file():
            what = "is half installed: its build was cut off"
            return State("half installed", "", what, f"{self.remedy}, which builds it anew")
        if not any((self.folder / LIBRARIES).glob("*.jar")):
            what = f"is half installed: {self.folder / LIBRARIES} is empty"
            return State("half installed", "", what, f"{self.remedy}, which builds it anew")
        if marker.read_text(encoding="ascii") != digest(self.name):
            what = "is of another version: its sources have changed since it was built"
            return State("other version", "", what, self.remedy)
        return State("installed")

    def require_tools(self) -> None:
        """Raise InputError if Java or Maven is missing."""
        java()
        maven()


def build_of(name: str) -> Build:
    """What the data grid `name` of gridbench's own lives in."""
    return Build(CORE if module_of(name) == "core" else name)

"""The sources of gridbench's own data grids: in a checkout, or as the package brings them along."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from gridbench.errors import InputError

FILE = "engine.toml"
"""What describes a data grid, in its folder."""
CORE = "embedded"
"""The data grid that is nothing but the core; what else lives in the core is built with it."""

_PACKAGE = Path(__file__).resolve().parents[1]
_LEFT_OUT = ("target", "test")


def sources() -> Path:
    """The folder with Maven's project. InputError if there is none."""
    places = (_PACKAGE / "java", _PACKAGE.parents[2] / "datagrid")
    for place in places:
        if (place / "pom.xml").is_file():
            return place
    raise InputError(
        "the sources of the data grids are missing",
        file=places[0],
        remedy="install the package gridrpc again, which gridbench is part of",
    )


def known_engines() -> dict[str, Path]:
    """The file of each data grid that comes with gridbench, by name, sorted."""
    return {file.parent.name: file for file in sorted(sources().glob(f"engines/*/{FILE}"))}


def module_of(name: str) -> str:
    """What is built for a data grid: a folder below the sources."""
    module = f"engines/{name}"
    return module if (sources() / module / "pom.xml").is_file() else "core"


def digest(name: str) -> str:
    """Tells whether the sources that a data grid is built from are the same."""
    root = sources()
    found = hashlib.sha256()
    for path in _files(root):
        place = path.relative_to(root).as_posix()
        if place == "pom.xml" or place.startswith(("core/", f"engines/{name}/")):
            content = path.read_bytes()
            found.update(f"{place}\0{len(content)}\0".encode())
            found.update(content)
    return found.hexdigest()


def copy_sources(folder: Path) -> None:
    """Copy them all, without tests and what was built. OSError if it cannot be done."""
    root = sources()
    for path in _files(root):
        copy = folder / path.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in _LEFT_OUT:
            continue
        if path.is_dir():
            yield from _files(path)
        else:
            yield path

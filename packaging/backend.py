"""The build backend that pyproject.toml names: maturin's wheel, and beside it all the rest.

A wheel of maturin's holds the Python packages and the native module. What `make install-c` installs
for C and Fortran programs, and the program `gridrpc` that native workers run, are added to it: as
scripts, and as data, which installers put below the environment's prefix. So an environment looks
the same as the PREFIX of `make install-c`, and has what shells complete besides. The static library
alone is as large as all the rest, and few programs link it: it has a wheel of its own.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import platform
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import maturin
from maturin import (
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_static_wheel",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

ROOT = Path(__file__).resolve().parents[1]

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: Compression of wheels: a level of zlib, or `zopfli`. Level 1 takes a third of the time of 6 for
#: 14 % more, and zopfli some thirty times as long for 4 % less.
COMPRESSION = os.environ.get("GRIDRPC_WHEEL_COMPRESSION", "6")
#: The library that programs link statically, below the prefix.
STATIC_LIBRARY = "lib/libgridrpc.a"

#: What a source distribution has: all that is built, and what the README points to first.
SOURCES = (
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CITATION.cff",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE",
    "Makefile",
    "README.md",
    "SECURITY.md",
    "constraints.txt",
    "crates",
    "datagrid",
    "examples",
    "packaging",
    "pyproject.toml",
    "python",
    "scripts",
)
#: What building and running leaves in these folders.
LEFT = re.compile(
    r"(^|/)(__pycache__|target|\.[^/]*)(/|$)|\.(so|o|pyc)$"
    r"|/plotly-basic\.min\.js$|/native/gridbench-task$"
)

#: Java of gridbench, which its users build.
DATA_GRIDS = re.compile(r"datagrid/(?!.*/src/test/)")

Settings = Mapping[str, str] | None


def prepare_metadata_for_build_wheel(folder: str, settings: Settings = None) -> str:
    """The metadata of the wheel, whose description works outside of the repository."""
    name: str = maturin.prepare_metadata_for_build_wheel(folder, settings)
    file = Path(folder, name, "METADATA")
    file.write_text(_with_absolute_links(file.read_text()))
    return name


#: The packages that are used where they lie have the same.
prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_wheel(folder: str, settings: Settings = None, metadata: str | None = None) -> str:
    """A wheel with everything but the static library."""
    with tempfile.TemporaryDirectory() as work:
        name = maturin.build_wheel(work, settings, metadata)
        return _complete(Path(work), name, Path(folder))


def build_editable(folder: str, settings: Settings = None, metadata: str | None = None) -> str:
    """The same, but for the Python sources, which are used where they lie."""
    with tempfile.TemporaryDirectory() as work:
        name = maturin.build_editable(work, settings, metadata)
        return _complete(Path(work), name, Path(folder), ROOT / "python")


def build_static_wheel(folder: str) -> str:
    """The wheel `gridrpc-static`, with the library that C and C++ programs link statically."""
    with tempfile.TemporaryDirectory() as work:
        stage = Path(work)
        _stage_library(stage)
        library = (stage / STATIC_LIBRARY).read_bytes()
        tag = f"py3-none-{_platform(_staged(stage))}"
    version = PROJECT["version"]
    stem = f"gridrpc_static-{version}"
    metadata = (
        "Metadata-Version: 2.4\nName: gridrpc-static\n"
        f"Version: {version}\nSummary: The static library of gridrpc, for C and C++ programs\n"
        f"License-Expression: {PROJECT['license']}\n"
        f"Requires-Python: {PROJECT['requires-python']}\nRequires-Dist: gridrpc=={version}\n"
    )
    kind = f"Wheel-Version: 1.0\nGenerator: gridrpc\nRoot-Is-Purelib: false\nTag: {tag}\n"
    contents = {
        f"{stem}.data/data/{STATIC_LIBRARY}": (library, 0o644),
        f"{stem}.dist-info/METADATA": (metadata.encode(), 0o644),
        f"{stem}.dist-info/WHEEL": (kind.encode(), 0o644),
    }
    return _write_wheel(Path(folder, f"{stem}-{tag}.whl"), contents, f"{stem}.dist-info/RECORD")


def build_sdist(folder: str, settings: Settings = None) -> str:
    """The sources, also those that maturin does not know of."""
    with tempfile.TemporaryDirectory() as work:
        metadata = Path(work, prepare_metadata_for_build_wheel(work, settings), "METADATA")
        text = metadata.read_bytes()
    stem = f"{PROJECT['name']}-{PROJECT['version']}"
    with tarfile.open(Path(folder, f"{stem}.tar.gz"), "w:gz", format=tarfile.PAX_FORMAT) as archive:
        entry = tarfile.TarInfo(f"{stem}/PKG-INFO")
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text))
        for name in sorted(_sources()):
            archive.add(ROOT / name, f"{stem}/{name}", recursive=False, filter=_anonymous)
    return f"{stem}.tar.gz"


def _sources() -> Iterator[str]:
    """The files of a source distribution: those that git knows, if this is a checkout."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", *SOURCES],
            cwd=ROOT,
            check=True,
            capture_output=True,
        )
        names = listed.stdout.decode().split("\0")
        yield from (name for name in names if name and (ROOT / name).is_file())
        return
    for source in SOURCES:
        top = ROOT / source
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            name = path.relative_to(ROOT).as_posix()
            if path.is_file() and not LEFT.search(name):
                yield name


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def _complete(work: Path, name: str, folder: Path, packages: Path | None = None) -> str:
    """Adds the C library and the programs to the wheel in `work`, and names it by what it needs.

    So it does with the packages' compiled modules, with the program of gridbench's built-in tasks,
    with the part of plotly.js that pages need, and with the sources of its data grids, if
    `packages` does not say where they lie. Binaries lose what only debuggers read, which is most of
    them; the native module of packages that are used where they lie is not in the wheel.
    """
    stage = work / "stage"
    _stage_library(stage)
    (stage / STATIC_LIBRARY).unlink()
    _stage_completion(stage)
    modules = packages or work / "modules"
    subprocess.run(
        [ROOT / "scripts/build-modules", stage / "bin/gridrpc", modules],
        stdout=sys.stderr,
        check=True,
    )
    for script in ("build-task", "fetch-plotly-basic"):
        subprocess.run(
            [ROOT / "scripts" / script, modules.resolve()], stdout=sys.stderr, check=True
        )
    contents: dict[str, tuple[bytes, int]] = {}
    with zipfile.ZipFile(work / name) as wheel:
        for entry in wheel.infolist():
            contents[entry.filename] = (wheel.read(entry), entry.external_attr >> 16 or 0o644)
    if packages is None:
        for path in filter(Path.is_file, modules.rglob("*")):
            mode = 0o755 if os.access(path, os.X_OK) else 0o644
            contents[path.relative_to(modules).as_posix()] = (path.read_bytes(), mode)
        for source in filter(DATA_GRIDS.match, _sources()):
            place = source.replace("datagrid", "gridbench/datagrid/java", 1)
            contents[place] = ((ROOT / source).read_bytes(), 0o644)
    (record,) = (entry for entry in contents if entry.endswith(".dist-info/RECORD"))
    information = record.rpartition("/")[0]
    data = information.removesuffix(".dist-info") + ".data"
    contents |= {f"{data}/{path}": file for path, file in _staged(stage).items()}
    contents = {
        path: (_stripped(content, work), mode) for path, (content, mode) in contents.items()
    }

    tag = "-".join((*name.removesuffix(".whl").split("-")[2:4], _platform(contents)))
    text = contents[f"{information}/WHEEL"][0].decode()
    text = re.sub(r"^Tag: .*$", f"Tag: {tag}", text, flags=re.MULTILINE)
    contents[f"{information}/WHEEL"] = (text.encode(), 0o644)
    text = _with_absolute_links(contents[f"{information}/METADATA"][0].decode())
    contents[f"{information}/METADATA"] = (text.encode(), 0o644)
    return _write_wheel(folder / "-".join((*name.split("-")[:2], f"{tag}.whl")), contents, record)


def _write_wheel(file: Path, contents: dict[str, tuple[bytes, int]], record: str) -> str:
    """Writes a wheel of these files and of the record of them, and returns its name."""
    contents[record] = (_record(contents, record), 0o644)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, (content, mode) in contents.items():
            entry = zipfile.ZipInfo(path)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            if COMPRESSION == "zopfli":
                entry.file_size = len(content)
                with wheel.open(entry, "w") as stream:
                    # zipfile offers no other way to choose the compressor.
                    stream._compressor = _Zopfli()  # type: ignore[attr-defined]
                    stream.write(content)
            else:
                wheel.writestr(entry, content, compresslevel=int(COMPRESSION))
    return file.name


class _Zopfli:
    """Compressor with the methods of zlib's, whose deflate streams are smaller."""

    def __init__(self) -> None:
        self._content: list[bytes] = []

    def compress(self, content: bytes) -> bytes:
        self._content.append(content)
        return b""

    def flush(self) -> bytes:
        # `make wheel` has it; other builds need no small wheels.
        import zopfli.zlib

        stream: bytes = zopfli.zlib.compress(b"".join(self._content), numiterations=5)
        # Zip files have neither the header nor the checksum of zlib.
        return stream[2:-4]


def _with_absolute_links(metadata: str) -> str:
    """The metadata with links of the README that work outside of the repository."""
    repository = PROJECT["urls"]["Repository"]

    def absolute(link: re.Match[str]) -> str:
        kind = "raw" if link["image"] else "blob"
        return f"{link['image']}{link['text']}({repository}/{kind}/main/{link['path']})"

    relative = r"(?P<image>!?)(?P<text>\[[^\]]*\])\((?P<path>(?!#|\w+:)[^)\s]+)\)"
    return re.sub(relative, absolute, metadata)


def _stripped(content: bytes, work: Path) -> bytes:
    """A program or shared library without what only debuggers read; anything else as it is."""
    if not content.startswith(b"\x7fELF"):
        return content
    file = work / "binary"
    file.write_bytes(content)
    subprocess.run(["strip", "--strip-unneeded", file], check=True)
    return file.read_bytes()


def _stage_library(stage: Path) -> None:
    """What C and Fortran programs are built with, and the program `gridrpc`."""
    # Modules of Fortran are for one compiler, so their source goes along, and no module.
    subprocess.run(
        [ROOT / "scripts/build-capi", stage],
        env={**os.environ, "FC": ""},
        stdout=sys.stderr,
        check=True,
    )


def _stage_completion(stage: Path) -> None:
    """Completion scripts of both programs; gridbench is not installed yet."""
    commands = {
        "gridrpc": [stage / "bin/gridrpc", "completion"],
        "gridbench": [sys.executable, "-m", "gridbench.completion"],
    }
    # Isolated builds find the packages that they need by this variable.
    path = os.pathsep.join(filter(None, (str(ROOT / "python"), os.environ.get("PYTHONPATH"))))
    for program, command in commands.items():
        subprocess.run(
            [ROOT / "scripts/build-completion", stage, program, *command],
            env={**os.environ, "PYTHONPATH": path},
            stdout=sys.stderr,
            check=True,
        )


def _staged(stage: Path) -> dict[str, tuple[bytes, int]]:
    """What has been installed there, by its place in the data of a wheel."""
    files = {}
    for path in sorted(stage.rglob("*")):
        if path.is_dir():
            continue
        place = path.relative_to(stage).as_posix()
        if path.is_symlink():
            # Wheels have no links. Programs ask for libgridrpc.so.0, which becomes the library
            # itself; linkers follow the one line in libgridrpc.so.
            target = os.readlink(path)
            if place.endswith(".so"):
                files[f"data/{place}"] = (f"INPUT({target})\n".encode(), 0o644)
            else:
                files[f"data/{place}"] = (path.read_bytes(), 0o755)
        elif not re.search(r"\.so\.\d+\.", place):
            kind = "scripts" if place.startswith("bin/") else "data"
            place = place.removeprefix("bin/")
            files[f"{kind}/{place}"] = (path.read_bytes(), path.stat().st_mode & 0o777)
    return files


def _platform(contents: Mapping[str, tuple[bytes, int]]) -> str:
    """The tag of the oldest C library that all programs and libraries in the wheel run with."""
    machine = platform.machine()
    if platform.libc_ver()[0] != "glibc":
        return f"linux_{machine}"
    needed = 17
    for content, _ in contents.values():
        # Names of versions are in a file as texts. Those of archives are not versioned yet.
        if content.startswith(b"\x7fELF"):
            needed = max(needed, *map(int, re.findall(rb"GLIBC_2\.(\d+)", content)))
    return f"manylinux_2_{needed}_{machine}"


def _record(contents: Mapping[str, tuple[bytes, int]], record: str) -> bytes:
    lines = []
    for path, (content, _) in contents.items():
        if path != record:
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
            lines.append(f"{path},sha256={digest.decode()},{len(content)}\n")
    return "".join([*lines, f"{record},,\n"]).encode()

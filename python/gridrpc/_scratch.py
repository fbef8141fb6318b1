"""Calls that each run in a new working directory."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeAlias, TypeVar

from gridrpc._wrapped import Wrapped

T = TypeVar("T")

Contents: TypeAlias = Mapping[str, str | bytes]
Keep = Literal["never", "failed", "always"]

#: Folders of calls that run, of calls that are about to, and of those that have ended and stay.
RUNNING, NEW, KEPT = "gridrpc-scratch-", "gridrpc-new-", "gridrpc-kept-"

#: Where this process has looked for folders of lost workers.
_tidied: set[str] = set()


def in_scratch_folder(
    fn: str | Callable[..., T],
    files: Contents | Callable[..., Contents] | None = None,
    *,
    parent: str | os.PathLike[str] | None = None,
    keep: Keep = "never",
) -> Callable[..., T]:
    """`fn`, called in a new working directory, which is removed after the call.

    Give it to `submit`, `map` or `sweep` in place of `fn`. `files`: texts and bytes by the
    names of files, which are there when `fn` begins; or a function that the worker calls with the
    arguments of the call and that returns them. `parent`: an existing folder of the worker's host
    for the directories, by default that for temporary files. `keep`: "failed" leaves the directory
    if `fn` raises an error, and a note in the error names it; "always" leaves each.

    Directories of workers that were killed are removed by the next call there. Raises TypeError and
    ValueError for invalid arguments; a call raises OSError if its directory cannot be made.
    """
    if not callable(fn) and not isinstance(fn, str):
        raise TypeError(f"an object of type {type(fn).__name__} cannot be called: {fn!r}")
    if keep not in ("never", "failed", "always"):
        raise ValueError(f'`keep` is {keep!r}: give "never", "failed" or "always"')
    if files is not None and not callable(files):
        files = checked(files)
    place = None if parent is None else os.path.abspath(parent)
    return InScratchFolder(fn, files, place, keep)


def checked(files: Contents) -> dict[str, str | bytes]:
    """Files that lie below the folder. Raises TypeError and ValueError."""
    if not isinstance(files, Mapping):
        raise TypeError(
            f"`files` is of type {type(files).__name__}: give a dict of contents by name"
        )
    for name, contents in files.items():
        if not isinstance(name, str):
            raise TypeError(f"`files` has the name {name!r}: give texts")
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.name or "\0" in name:
            raise ValueError(f"`files` has {name!r}, which is no name of a file below the folder")
        if not isinstance(contents, (str, bytes)):
            raise TypeError(
                f"`files[{name!r}]` is of type {type(contents).__name__}: give a text or bytes"
            )
    return dict(files)


class InScratchFolder(Wrapped):
    """Calls a function in a new working directory."""

    def __init__(
        self,
        function: str | Callable[..., Any],
        files: dict[str, str | bytes] | Callable[..., Contents] | None,
        parent: str | None,
        keep: Keep,
    ) -> None:
        super().__init__(function)
        self._files = files
        self._parent = parent
        self._keep = keep

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = self.resolved()
        files = self._files
        contents = checked(files(*args, **kwargs)) if callable(files) else files or {}
        parent = self._parent or tempfile.gettempdir()
        if parent not in _tidied:
            _remove_stale(parent)
            _tidied.add(parent)
        before = os.open(".", os.O_PATH | os.O_DIRECTORY)
        try:
            folder, lock = _made(parent)
        except BaseException:
            os.close(before)
            raise
        has_failed = True
        try:
            for name, content in contents.items():
                file = Path(folder, name)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content.encode() if isinstance(content, str) else content)
            os.chdir(folder)
            value = function(*args, **kwargs)
            has_failed = False
        except Exception as error:
            if self._keep != "never":
                with suppress(Exception):  # it may refuse to be changed
                    error.add_note(f"gridrpc: the files of the call are in {_retained(folder)}")
            raise
        finally:
            os.fchdir(before)
            os.close(before)
            if self._keep == "always" or (has_failed and self._keep == "failed"):
                os.rename(folder, _retained(folder))
            else:
                shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)
        return value


def _made(parent: str) -> tuple[str, int]:
    """A new folder, and the descriptor whose lock says that its call runs."""
    new = tempfile.mkdtemp(prefix=NEW, dir=parent)
    lock = os.open(new, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = os.path.join(parent, RUNNING + os.path.basename(new).removeprefix(NEW))
        os.rename(new, folder)
    except BaseException:
        os.close(lock)
        shutil.rmtree(new, ignore_errors=True)
        raise
    return folder, lock


def _retained(folder: str) -> str:
    parent, name = os.path.split(folder)
    return os.path.join(parent, KEPT + name.removeprefix(RUNNING))


def _remove_stale(parent: str) -> None:
    """Remove this user's folders whose calls have ended without a chance to remove them."""
    with os.scandir(parent) as found:
        stale = [one.path for one in found if one.name.startswith(RUNNING)]
    for folder in stale:
        with suppress(OSError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(lock).st_uid == os.getuid():
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)

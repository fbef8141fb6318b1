"""Paths: how they travel in messages, and whether other users can change what is there.

Texts in messages are UTF-8, as paths need not be: a path has a character for each byte.
"""

from __future__ import annotations

import functools
import os
import stat
from pathlib import Path

#: What unpickles functions that came by value, with cloudpickle, which takes as long to load as two
#: workers to start. A spawner that gets only its name loads it when the first workers are there.
BY_VALUE = "gridrpc._by_value"


def on_the_wire(path: str) -> str:
    """A path as it is sent, a character for each of its bytes: it need not be UTF-8."""
    return os.fsencode(path).decode("latin-1")


def from_the_wire(sent: str) -> str:
    """What `on_the_wire` was given."""
    return os.fsdecode(sent.encode("latin-1"))


def distrust(path: str | os.PathLike[str]) -> str | None:
    """Why a file or folder cannot be trusted: which part of its path another user can change.

    None: only this user and root can. Raises OSError.
    """
    ends = os.path.abspath(path), os.path.realpath(path)
    for end in ends:
        for part in (end, *map(str, Path(end).parents)):
            reason = distrust_status(os.lstat(part), is_parent=part not in ends)
            if reason is not None:
                return f"{part} {reason}"
    return None


def distrust_status(status: os.stat_result, *, is_parent: bool = False) -> str | None:
    """Why a file or folder of this status cannot be trusted; for a parent, why not its names."""
    if status.st_uid not in _trusted_users(is_parent):
        return f"belongs to {user_name(status.st_uid)}"
    mode = status.st_mode
    # In a folder with the sticky bit, others cannot replace what is not theirs.
    if stat.S_ISLNK(mode) or (is_parent and mode & stat.S_ISVTX):
        return None
    if mode & stat.S_IWOTH or (mode & stat.S_IWGRP and not _is_own_group(status.st_gid)):
        return f"can be changed by other users (mode {stat.S_IMODE(mode):o})"
    return None


def user_name(uid: int) -> str:
    """The name of a user, or the number if there is none."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _trusted_users(is_parent: bool) -> set[int]:
    users = {0, os.geteuid()}
    if is_parent and (unmapped := _unmapped_user()) is not None:
        users.add(unmapped)
    return users


@functools.cache
def _unmapped_user() -> int | None:
    """In a user namespace, the owner of files whose users have no number there, as root."""
    try:
        if Path("/proc/self/uid_map").read_text("ascii").split() == ["0", "0", "4294967295"]:
            return None
        return int(Path("/proc/sys/kernel/overflowuid").read_text("ascii"))
    except OSError:
        return None


def _is_own_group(gid: int) -> bool:
    """Whether a group is root's, or has no other member than this user."""
    import grp
    import pwd

    if gid == 0:
        return True
    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    name = user.pw_name
    return user.pw_gid == gid and group.gr_name == name and set(group.gr_mem) <= {name}

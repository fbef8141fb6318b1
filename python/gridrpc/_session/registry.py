"""Registry of sessions: a folder for each, with the record of its process.

Only its user can access a session's folder. `session.json` is the record of its process, `socket`
is where programs connect, and `session.log` is the output of the process and its workers. Each map
has the files `KEY.function`, `KEY.items` and `KEY.journal`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from gridrpc._paths import distrust, user_name
from gridrpc.errors import NoSession, SessionEnded, SessionError, SessionRefused

RECORD, SOCKET, LOG, LOCK = "session.json", "socket", "session.log", "lock"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

State = Literal["running", "ended", "stale", "elsewhere"]


def root() -> Path:
    """The folder of all sessions, `gridrpc/sessions` in $XDG_STATE_HOME or ~/.local/state.

    Raises SessionError if there is neither.
    """
    state = os.environ.get("XDG_STATE_HOME")
    if not state:
        try:
            state = os.path.join(Path.home(), ".local/state")
        except RuntimeError:
            raise SessionError(
                "there is no place for sessions: neither XDG_STATE_HOME nor HOME is set, and user "
                f"{os.geteuid()} has no home directory in /etc/passwd. Set XDG_STATE_HOME to a "
                "folder that only you can write to"
            ) from None
    return Path(state, "gridrpc", "sessions")


def checked(name: str, what: str) -> str:
    """A name that can be part of a file name. Raises ValueError."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} is not a valid name of a {what}: give letters, digits, `.`, `_` and `-`, "
            "with a letter or a digit at the beginning, 100 at most"
        )
    return name


def folder_of(name: str) -> Path:
    """The folder of a session, which may not exist."""
    return root() / checked(name, "session")


def python_version() -> str:
    """The version of Python; processes of one version can exchange functions and results."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


@dataclass
class SessionRecord:
    """The process of a session, as recorded in the session's folder."""

    name: str
    pid: int
    #: When the process started, in ticks since boot, and the identity of that boot.
    started: int
    boot: str
    host: str
    gridrpc: str
    python: str
    #: Seconds since 1970; `until` is the time limit, if there is one.
    since: float
    until: float | None
    #: Why it ended; empty while it runs.
    ended: str = ""

    @staticmethod
    def of_this_process(name: str, limit: float | None) -> SessionRecord:
        """The record of a session that this process runs; `limit`: seconds from now."""
        import gridrpc

        pid, now = os.getpid(), time.time()
        started = started_at(pid)
        assert started is not None, "this process is there"
        return SessionRecord(
            name=name, pid=pid, started=started, boot=boot(), host=socket.gethostname(),
            gridrpc=gridrpc.__version__, python=python_version(), since=now,
            until=None if limit is None else now + limit,
        )  # fmt: skip

    def write(self) -> None:
        """Write it to the session's folder, atomically."""
        file = folder_of(self.name) / RECORD
        new = file.with_suffix(".new")
        new.write_text(json.dumps(asdict(self)), encoding="utf-8")
        new.replace(file)

    def state(self) -> State:
        """The state of its process."""
        if self.ended:
            return "ended"
        if self.host != socket.gethostname():
            return "elsewhere"
        exists = self.boot == boot() and started_at(self.pid) == self.started
        return "running" if exists else "stale"

    def fate(self) -> str:
        """Why it ended, in words."""
        if self.ended:
            return self.ended
        if self.boot != boot():
            return "the machine has been started again since then"
        return f"its process {self.pid} is gone, killed perhaps"

    def error(self) -> SessionEnded:
        """The error for programs that need the session to run."""
        state = "has ended" if self.ended else "is stale"
        return SessionEnded(
            f"session `{self.name}` {state}: {self.fate()}. What results it had are kept: "
            f"`gridrpc session start {self.name}` continues from there, and "
            f'gridrpc.attach("{self.name}", ended=True).results(KEY) reads them as they are',
            self.name,
        )


def known() -> list[str]:
    """The names of all sessions."""
    try:
        return sorted(one.name for one in root().iterdir() if (one / RECORD).is_file())
    except OSError:
        return []


def record_of(name: str) -> SessionRecord:
    """The record of a session. Raises NoSession, and SessionRefused for another user's session."""
    folder = folder_of(name)
    try:
        owner = folder.stat().st_uid
        if owner != os.geteuid():
            raise SessionRefused(
                f"session `{name}` belongs to {user_name(owner)}: only that user can attach to it",
                name,
                "user",
            )
        _refuse_foreign(folder, name)
        values: dict[str, Any] = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        return SessionRecord(**values)
    except FileNotFoundError:
        names = ", ".join(f"`{other}`" for other in known())
        hint = f"there are {names} (`gridrpc session list`)"
        if not names:
            hint = "there is none: `gridrpc session start NAME` starts one"
        raise NoSession(f"there is no session `{name}`; {hint}", name) from None
    except PermissionError:
        raise SessionRefused(
            f"session `{name}` is in {folder}, which cannot be read: it is another user's",
            name,
            "user",
        ) from None
    except (OSError, ValueError, TypeError) as error:
        raise SessionError(
            f"session `{name}`: {folder / RECORD} cannot be read: {error}. "
            "`gridrpc session start` rewrites it",
            name,
        ) from None


def running(name: str) -> SessionRecord:
    """The record of a session that runs on this machine.

    Raises NoSession, SessionEnded, SessionRefused.
    """
    record = record_of(name)
    state = record.state()
    if state == "elsewhere":
        raise SessionRefused(
            f"session `{name}` runs on {record.host}, and this is {socket.gethostname()}: run the "
            f"program there",
            name,
            "host",
        )
    if state != "running":
        raise record.error()
    return record


def make(name: str) -> Path:
    """Create the folder of a session, or use the existing one.

    Raises SessionError, SessionRefused.
    """
    folder = folder_of(name)
    try:
        for part in (*reversed(folder.parents), folder):
            if not part.exists():
                part.mkdir(mode=0o700, exist_ok=True)
        if folder.stat().st_uid != os.geteuid():
            record_of(name)
        _refuse_foreign(folder, name)
        folder.chmod(0o700)
    except OSError as error:
        raise SessionError(f"{folder} cannot be used: {error.strerror}", name) from None
    return folder


def _refuse_foreign(folder: Path, name: str) -> None:
    """Raise SessionRefused if other users can change files in the folder.

    Pickles are loaded from it, and processes are killed by the numbers in it.
    """
    if reason := distrust(folder):
        raise SessionRefused(
            f"session `{name}` is in {folder}, but {reason}. Take that away by chmod or chown, or "
            "set XDG_STATE_HOME to a folder that only you can write to",
            name,
            "user",
        )


def forget(name: str) -> None:
    """Remove the folder of a session."""
    shutil.rmtree(folder_of(name))


def keys_in(folder: Path) -> list[str]:
    """The keys of the maps of a session."""
    return sorted(file.name.removesuffix(".function") for file in folder.glob("*.function"))


def listed(keys: Iterable[str], most: int = 20) -> str:
    """Keys in a message."""
    first = [f"`{key}`" for key in keys]
    more = f" and {len(first) - most:,} others" if len(first) > most else ""
    return (", ".join(first[:most]) or "none") + more


def boot() -> str:
    """The identity of the current boot of this machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def started_at(pid: int) -> int | None:
    """When a process started, in ticks since boot; None: it does not run."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name of the program comes first, and may contain anything.
    fields = status.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])

"""Where sessions are kept, and what is known of each without asking its process.

A session has a folder, which only its user can look into: `session.json` tells what process it is,
`socket` is where programs attach, `session.log` has what the process and its workers say, and of
each map there are the files `KEY.function`, `KEY.items` and `KEY.journal`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import time
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
    """A name that can be that of a file. Raises ValueError."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} is not a valid name of a {what}: give letters, digits, `.`, `_` and `-`, "
            "with a letter or a digit at the beginning, 100 at most"
        )
    return name


def folder_of(name: str) -> Path:
    """The folder of a session, which need not be there."""
    return root() / checked(name, "session")


@dataclass
class Record:
    """What a session tells of itself in its folder."""

    name: str
    pid: int
    #: When the process began, in ticks since the machine was started; and which start that was.
    started: int
    boot: str
    host: str
    gridrpc: str
    python: str
    #: Seconds since 1970; `until`: when its limit is reached, if it has one.
    since: float
    until: float | None
    #: How it has ended, if it has.
    ended: str = ""

    @staticmethod
    def of_this_process(name: str, limit: float | None) -> Record:
        """The record of a session that this process is to be."""
        import gridrpc

        pid, now = os.getpid(), time.time()
        started = started_at(pid)
        assert started is not None, "this process is there"
        return Record(
            name=name,
            pid=pid,
            started=started,
            boot=boot(),
            host=socket.gethostname(),
            gridrpc=gridrpc.__version__,
            python=python_version(),
            since=now,
            until=None if limit is None else now + limit,
        )

    def write(self) -> None:
        """Put it into the session's folder, in one step."""
        file = folder_of(self.name) / RECORD
        new = file.with_suffix(".new")
        new.write_text(json.dumps(asdict(self)), encoding="utf-8")
        new.replace(file)

    def state(self) -> State:
        """Whether its process is there."""
        if self.ended:
            return "ended"
        if self.host != socket.gethostname():
            return "elsewhere"
        there = self.boot == boot() and started_at(self.pid) == self.started
        return "running" if there else "stale"

    def fate(self) -> str:
        """How it has ended, in words."""
        if self.ended:
            return self.ended
        if self.boot != boot():
            return "the machine has been started again since then"
        return f"its process {self.pid} is gone, killed perhaps"


def known() -> list[str]:
    """The names of all sessions that have a folder."""
    try:
        return sorted(one.name for one in root().iterdir() if (one / RECORD).is_file())
    except OSError:
        return []


def record_of(name: str) -> Record:
    """What is known of a session. Raises NoSession, and SessionRefused if it is another user's."""
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
        return Record(**values)
    except FileNotFoundError:
        raise NoSession(f"there is no session `{name}`; {_those_there()}", name) from None
    except PermissionError:
        raise SessionRefused(
            f"session `{name}` is in {folder}, which cannot be read: it is another user's",
            name,
            "user",
        ) from None
    except (OSError, ValueError, TypeError) as error:
        raise SessionError(
            f"session `{name}`: {folder / RECORD} cannot be read: {error}. "
            "`gridrpc session start` writes it anew",
            name,
        ) from None


def running(name: str) -> Record:
    """A session whose process is there, on this machine.

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
        raise ended(record)
    return record


def ended(record: Record) -> SessionEnded:
    """The error that tells of a session that is no more."""
    state = "has ended" if record.ended else "is stale"
    return SessionEnded(
        f"session `{record.name}` {state}: {record.fate()}. What results it had are kept: "
        f"`gridrpc session start {record.name}` goes on from there, and "
        f'gridrpc.attach("{record.name}", ended=True).results(KEY) reads them as they are',
        record.name,
    )


def _those_there() -> str:
    names = known()
    if not names:
        return "there is none: `gridrpc session start NAME` starts one"
    return "there are " + ", ".join(f"`{one}`" for one in names) + " (`gridrpc session list`)"


def make(name: str) -> Path:
    """The folder of a session, made if it is not there. Raises SessionError, SessionRefused."""
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
    """Raise SessionRefused if other users can change what is in the folder: pickles are loaded from
    it, and processes ended by their numbers."""
    if reason := distrust(folder):
        raise SessionRefused(
            f"session `{name}` is in {folder}, but {reason}. Take that away by chmod or chown, or "
            "set XDG_STATE_HOME to a folder that only you can write to",
            name,
            "user",
        )


def forget(name: str) -> None:
    """Remove all that a session has left."""
    shutil.rmtree(folder_of(name))


def keys_in(folder: Path) -> list[str]:
    """The keys of the maps of a session."""
    return sorted(file.name.removesuffix(".function") for file in folder.glob("*.function"))


# ---- Processes


def boot() -> str:
    """Which start of the machine this is."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def started_at(pid: int) -> int | None:
    """When a process began, in ticks; None: it is not there, or has ended."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # Behind the name of the program, which may have anything in it.
    fields = status.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def python_version() -> str:
    """Of which functions and results can be exchanged."""
    import sys

    return f"{sys.version_info.major}.{sys.version_info.minor}"

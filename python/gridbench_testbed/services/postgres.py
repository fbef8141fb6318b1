"""A PostgreSQL of its own on this machine, reached by a Unix socket alone.

The server is that of the system, from the newest version that is installed, with a new database
cluster in one temporary folder. It runs as an ordinary user, as it refuses to be root's.

    with Postgres() as postgres:
        postgres.sql("select 1")
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from gridbench_testbed.daemons import Daemons, lacking

USER = "gridbench"
"""The role that owns everything in it."""
_PLACES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin")


def why_not() -> str:
    """Why there can be none here; empty if there can."""
    if lacking("setpriv"):
        return "`setpriv` is not installed: it comes with util-linux"
    if programs() is None:
        return "PostgreSQL's server is not installed: scripts/ensure-postgres does that"
    return ""


def programs() -> Path | None:
    """The folder that has the server and what comes with it, of the newest version; None if there
    is none. Distributions keep it out of PATH."""
    found = [place for pattern in _PLACES for place in Path("/").glob(pattern.lstrip("/"))]
    if in_path := shutil.which("postgres"):
        found.append(Path(in_path).resolve().parent)
    found = [place for place in found if os.access(place / "initdb", os.X_OK)]
    return max(found, key=_version, default=None)


def _version(place: Path) -> int:
    number = re.search(r"\d+", str(place))
    return int(number[0]) if number else 0


class Postgres(Daemons):
    """A PostgreSQL."""

    # Without a checkpoint, as the files are removed.
    _ends: ClassVar[Mapping[str, signal.Signals]] = {"postgres": signal.SIGQUIT}

    def __init__(self, directory: Path | None = None) -> None:
        """`directory`: where its folder is made, if others than root can reach it."""
        super().__init__("postgres", directory)
        self.socket_folder = self.folder / "data"
        """What clients give as the host."""
        self.port = 5432
        """What clients give as the port: it is part of the socket's name."""
        try:
            self._make()
        except BaseException:
            self.close()
            raise

    def sql(self, query: str, database: str = "postgres") -> str:
        """What a query answers: a line for each row, with `|` between columns."""
        return self._psql(database, "--command", query)

    def sql_file(self, file: Path, database: str = "postgres") -> None:
        """Run the commands of a file."""
        self._psql(database, "--set=ON_ERROR_STOP=1", "--file", str(file))

    def _psql(self, database: str, *options: str) -> str:
        return self.run(
            str(self._programs / "psql"), "--no-psqlrc", "--quiet", "--tuples-only", "--no-align",
            f"--host={self.socket_folder}", f"--port={self.port}", f"--username={USER}",
            f"--dbname={database}", *options,
        ).strip()  # fmt: skip

    def _make(self) -> None:
        found = programs()
        if found is None:
            raise RuntimeError(why_not())
        self._programs = found
        data = self.folder / "data"
        data.mkdir(0o700)
        lower: list[str] = []
        if os.geteuid() == 0:
            user = _ordinary_user()
            os.chown(data, user.pw_uid, user.pw_gid)
            lower = [
                "setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups",
                # It is lost with the change of the user.
                "--pdeathsig", "QUIT",
            ]  # fmt: skip
        self.run(
            *lower, str(found / "initdb"), f"--pgdata={data}", f"--username={USER}", "--auth=trust",
            "--no-locale", "--encoding=SQL_ASCII", "--data-checksums", "--no-sync",
        )  # fmt: skip
        command = [*lower, str(found / "postgres"), "-D", str(data), "-k", str(data)]
        self._start("postgres", *command, "-h", "", "-p", str(self.port))
        self._until(self._answers, "PostgreSQL does not answer")

    def _answers(self) -> bool:
        try:
            return self.sql("select 1") == "1"
        except RuntimeError:
            return False


def _ordinary_user() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError("PostgreSQL refuses to run as root, and there is no user postgres or nobody")

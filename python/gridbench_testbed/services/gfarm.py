"""A private Gfarm on this machine: a metadata server, file system nodes, and mounts.

The rig starts gfmd, a gfsd for each node and a gfarm2fs for each mount, on free ports of the
loopback device, with all files in one temporary folder. Everything runs as the current user, in
Gfarm's private mode. gfmd always listens on all addresses of the machine, and requires the key in
the folder.

    with Gfarm(backend="postgresql", journal=True, mounts=2) as gfarm:
        (gfarm.mounts[0] / "file").write_text("for all")
        (gfarm.mounts[1] / "file").read_text()

gfmd has all metadata in memory, and handles one request for them at a time. It also stores:

- with `backend="none"`, nothing; with "postgresql", a database. gfmd writes to it from a queue,
  after it has answered, in one transaction per operation. Clients wait for the database once the
  queue is full, at 65,536 records: 8,192 times `mkdir`.
- with `journal=True`, a file of all records, written before each answer. This is Gfarm's
  replication of metadata (`metadb_replication`), which works without a second server. The database
  is written from it, and clients wait once 32 MiB are behind: some 85,000 times `mkdir`.
- with `synchronous=True`, Gfarm's default, `fdatasync` of the file before each answer, for which
  the next request waits too.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shutil
import signal
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal

from gridbench_testbed.daemons import Daemons, free_ports, lacking
from gridbench_testbed.services.mounts import Mounts, why_no_fuse

USER = "gridbench"
"""The role that owns the database."""
_PLACES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin")


def why_no_postgres() -> str:
    """Why PostgreSQL cannot start here; empty if it can."""
    if lacking("setpriv"):
        return "`setpriv` is not installed: it comes with util-linux"
    if programs() is None:
        return "PostgreSQL's server is not installed: scripts/ensure-postgres does that"
    return ""


def programs() -> Path | None:
    """The folder of the newest server's programs, which distributions keep out of PATH; None if
    there is none."""
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

    # Without a checkpoint: the files are removed.
    _ends: ClassVar[Mapping[str, signal.Signals]] = {"postgres": signal.SIGQUIT}

    def __init__(self, directory: Path | None = None) -> None:
        """`directory`: the parent of its folder, which other users than root can reach."""
        super().__init__("postgres", directory)
        self.socket_folder = self.folder / "data"
        """The clients' host."""
        self.port = 5432
        """The clients' port, part of the socket's name."""
        with self._making():
            self._make()

    def sql(self, query: str, database: str = "postgres") -> str:
        """Run a query; a line for each row, with `|` between columns."""
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
            raise RuntimeError(why_no_postgres())
        self._programs = found
        data = self.folder / "data"
        data.mkdir(0o700)
        lower: list[str] = []
        if os.geteuid() == 0:
            user = _ordinary_user()
            os.chown(data, user.pw_uid, user.pw_gid)
            lower = [
                "setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups",
                # Lost with the change of user.
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


Backend = Literal["none", "postgresql"]

_ALL = """\
metadb_server_host 127.0.0.1
metadb_server_port {port}
auth enable sharedsecret *
shared_key_file {folder}/key
sockopt keepalive
minimum_free_disk_space 1M
"""
_SERVERS = "local_user_map {folder}/users\n"
_METADATA = """\
admin_user {user}
metadb_replication {journal}
synchronous_journaling {synchronous}
metadb_journal_dir {folder}/journal
"""
_DATABASE = """\
postgresql_server_host {host}
postgresql_server_port {port}
postgresql_dbname gfarm
postgresql_user {user}
"""
_SCHEMA = Path("/usr/share/gfarm/config/gfarm.sql")
_LIFETIME = 365 * 24 * 3600  # of the key, in seconds


def why_not(backend: Backend = "none") -> str:
    """Why Gfarm cannot start here; empty if it can."""
    program = lacking("gfmd", "gfsd", "gfhost", "gfkey", "gfsched", "gfarm2fs", "setpriv")
    if program:
        return f"`{program}` is not installed: scripts/ensure-gfarm does that"
    return why_no_fuse() or (why_no_postgres() if backend == "postgresql" else "")


class Gfarm(Mounts):
    """A Gfarm."""

    # It would first write its queue to the database, which is removed.
    _ends: ClassVar[Mapping[str, signal.Signals]] = {"gfmd": signal.SIGKILL}

    def __init__(
        self,
        backend: Backend = "none",
        journal: bool = False,
        mounts: int = 1,
        *,
        nodes: int = 1,
        synchronous: bool = True,
        directory: Path | None = None,
        mounts_in: Path | None = None,
    ) -> None:
        """`nodes`: number of file system nodes. `directory`: the parent of its folder, on the disk
        to use. `mounts_in`: the folder of the mounts, by default that folder."""
        super().__init__("gfarm", directory, mounts_in)
        self.postgres: Postgres | None = None
        """The server of the database `gfarm`, if any."""
        self.journal = self.folder / "journal"
        """The folder of the journal, empty without one."""
        self.variables["GFARM_CONFIG_FILE"] = str(self.folder / "gfarm2.conf")
        with self._making():
            if backend == "postgresql":
                self.postgres = self._make_database()
            self._make(nodes, journal, synchronous)
            self._mount(mounts, "gfarm2fs", "-f", "-o", "loglevel=err")

    def close(self) -> None:
        """Unmount, end all daemons, and remove the files; may be called again."""
        try:
            super().close()
        finally:
            if self.postgres is not None:
                self.postgres.close()

    def spool(self, number: int) -> Path:
        """The folder of files of node `number`, from 0."""
        return self.folder / f"spool-{number}"

    def _make_database(self) -> Postgres:
        database = Postgres(self.folder.parent)
        try:
            database.sql("create database gfarm")
            database.sql_file(_SCHEMA, "gfarm")
            # The journal's first number, as `config-gfarm` sets it.
            database.sql("insert into SeqNum (name, value) values ('', '1')", "gfarm")
        except BaseException:
            database.close()
            raise
        return database

    def _make(self, nodes: int, journal: bool, synchronous: bool) -> None:
        user = pwd.getpwuid(os.geteuid()).pw_name
        metadata_port, *node_ports = free_ports(1 + nodes)
        everybody = _ALL.format(port=metadata_port, folder=self.folder)
        servers = everybody + _SERVERS.format(folder=self.folder)
        metadata = servers + _METADATA.format(
            user=user, folder=self.folder, journal=_validity(journal),
            synchronous=_validity(synchronous),
        )  # fmt: skip
        if self.postgres is not None:
            metadata += _DATABASE.format(
                host=self.postgres.socket_folder, port=self.postgres.port, user=USER
            )
        self.journal.mkdir(0o700)
        # All of Gfarm's users of servers are this user.
        (self.folder / "users").write_text(f"_gfarmfs {user}\n_gfarmmd {user}\n")
        for name, text in (("gfarm2", everybody), ("gfsd", servers), ("gfmd", metadata)):
            (self.folder / f"{name}.conf").write_text(text)
        self.run("gfkey", "-f", "-p", str(_LIFETIME))
        level = ("-d", "-L", "notice")
        self._start("gfmd", "gfmd", *level, "-f", str(self.folder / "gfmd.conf"))
        self._until(lambda: _listens(metadata_port), "gfmd does not answer")
        for number, port in enumerate(node_ports):
            address = f"127.0.0.{number + 1}"
            self.spool(number).mkdir(0o700)
            self.run("gfhost", "-c", "-a", "linux", "-p", str(port), "-n", "1", address)
            self._start(
                f"gfsd-{number}", "gfsd", *level, "-f", str(self.folder / "gfsd.conf"),
                "-h", address, "-l", address, "-r", str(self.spool(number)),
            )  # fmt: skip
        self._until(lambda: self._nodes() == nodes, "file system nodes are not up")

    def _nodes(self) -> int:
        """Number of nodes that accept files."""
        with contextlib.suppress(RuntimeError):
            return len(self.run("gfsched").split())
        return 0


def _validity(on: bool) -> str:
    return "enable" if on else "disable"


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False

"""A Gfarm of its own on this machine: a metadata server, file system nodes, and mounts.

The rig starts gfmd, a gfsd for each node and a gfarm2fs for each mount, on free ports of the
loopback device, with all files in one temporary folder. Everything runs as whoever starts it, in
what Gfarm calls the private mode. gfmd itself listens at all addresses of the machine, which it
cannot be talked out of; it talks to nobody who does not know the key that the folder holds.

    with Gfarm(backend="postgresql", journal=True, mounts=2) as gfarm:
        (gfarm.mounts[0] / "file").write_text("for all")
        (gfarm.mounts[1] / "file").read_text()

gfmd has all metadata in memory, and works on one request for them at a time. What it keeps besides:

- With `backend="none"`, nothing. With "postgresql", a database that it writes to from a queue,
  after it has answered its clients, in one transaction for each operation. Clients wait for the
  database once the queue is full, which takes 65,536 records: 8,192 times `mkdir`.
- With `journal=True`, a file that it writes all records to before it answers: this is what Gfarm
  has for the replication of metadata (`metadb_replication`), and works without another server too.
  From there they go on to the database, and clients wait for it once 32 MiB have not: some 85,000
  times `mkdir`.
- With `synchronous=True`, the file is also brought to the disk (`fdatasync`) before each answer,
  which is Gfarm's default. The next request waits for that too.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal

from gridbench_testbed.daemons import free_ports, lacking
from gridbench_testbed.services import postgres
from gridbench_testbed.services.mounts import Mounts, why_no_fuse
from gridbench_testbed.services.postgres import Postgres

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
    """Why there can be no rig here; empty if there can."""
    program = lacking("gfmd", "gfsd", "gfhost", "gfkey", "gfsched", "gfarm2fs", "setpriv")
    if program:
        return f"`{program}` is not installed: scripts/ensure-gfarm does that"
    return why_no_fuse() or (postgres.why_not() if backend == "postgresql" else "")


class Gfarm(Mounts):
    """A Gfarm."""

    # It would first empty its queue into the database, which is removed with it.
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
        """`nodes`: how many have files. `directory`: where the folder of all files is made, on the
        disk that is to be used. `mounts_in`: where the mounts are, if not in that folder.
        """
        super().__init__("gfarm", directory, mounts_in)
        self.postgres: Postgres | None = None
        """The database, if there is one; Gfarm's tables are in its database `gfarm`."""
        self.journal = self.folder / "journal"
        """The folder of the journal; empty if there is none."""
        self.variables["GFARM_CONFIG_FILE"] = str(self.folder / "gfarm2.conf")
        try:
            if backend == "postgresql":
                self.postgres = self._make_database()
            self._make(nodes, journal, synchronous)
            self._mount(mounts, "gfarm2fs", "-f", "-o", "loglevel=err")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Unmount, end all daemons, and remove the files; may be called again."""
        try:
            super().close()
        finally:
            if self.postgres is not None:
                self.postgres.close()

    def spool(self, number: int) -> Path:
        """Where node `number`, from 0, has its files."""
        return self.folder / f"spool-{number}"

    def _make_database(self) -> Postgres:
        database = Postgres(self.folder.parent)
        try:
            database.sql("create database gfarm")
            database.sql_file(_SCHEMA, "gfarm")
            # As `config-gfarm` does: the journal's first number.
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
                host=self.postgres.socket_folder, port=self.postgres.port, user=postgres.USER
            )
        self.journal.mkdir(0o700)
        # Gfarm's own users for its servers are all this one.
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
        """How many take files."""
        with contextlib.suppress(RuntimeError):
            return len(self.run("gfsched").split())
        return 0


def _validity(on: bool) -> str:
    return "enable" if on else "disable"


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False

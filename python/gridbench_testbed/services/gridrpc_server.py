"""`gridrpc server` and `gridrpc directory`, with an authority and one user."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gridbench_testbed.daemons import Daemons, free_ports

_PROGRAM = str(Path(sys.prefix, "bin", "gridrpc"))
_NAME, _DIRECTORY, _USER = "server", "directory", "bench"


class GridrpcAuthority:
    """Signs certificates of servers and of one user, with commands that these daemons run."""

    def __init__(self, daemons: Daemons) -> None:
        self._daemons = daemons
        self._run("init", "--name", _USER)
        self.user = daemons.folder / "user"
        """Folder with certificate, key and authority of the user."""
        user, signed = str(self.user), str(daemons.folder / "signed.pem")
        daemons.run(_PROGRAM, "ca", "request", _USER, "--out", user)
        self._run("sign", f"{user}/request.pem", "--out", signed)
        daemons.run(_PROGRAM, "ca", "install", signed, "--out", user)

    def server(self, folder: Path, hosts: Sequence[str]) -> None:
        """Make the credentials of a server with these names and addresses in a new folder."""
        names = [word for host in hosts for word in ("--host", host)]
        self._run("server", _USER, *names, "--out", str(folder))

    def _run(self, *words: str) -> None:
        self._daemons.run(
            _PROGRAM, "ca", *words, "--folder", str(self._daemons.folder / "authority")
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryTable:
    """The table `[directory]` of a server: how it announces itself."""

    directory: str
    """URL."""
    interval: float
    """Seconds between two announcements."""
    speed: float
    """Operations per second."""


class GridrpcDirectory(Daemons):
    """A directory, and the authority of all servers that announce themselves to it."""

    def __init__(self, addresses: Sequence[str] = ()) -> None:
        """`addresses`: where it listens beside the loopback. RuntimeError if it does not start."""
        super().__init__(_DIRECTORY)
        (self._port,) = free_ports(1)
        self._addresses = ("127.0.0.1", *addresses)
        with self._making():
            self.authority = GridrpcAuthority(self)
            self.authority.server(self.folder / "tls", ("localhost", *self._addresses))
            self.start()

    def url(self, address: str = "localhost") -> str:
        """Its URL at one of its addresses."""
        return f"https://{address}:{self._port}"

    @property
    def client_url(self) -> str:
        """URL for `gridrpc.Grid(directory=...)` of the user."""
        return f"{self.url()}?credentials={self.authority.user}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        places = [word for address in self._addresses for word in ("--address", address)]
        self._start(
            _DIRECTORY, _PROGRAM, "directory", "start", "--state", str(self.folder / "state"),
            "--port", str(self._port), "--credentials", str(self.folder / "tls"), *places,
        )  # fmt: skip
        self._until(self._is_ready, "the directory is not ready")

    def wait_for(self, servers: int) -> None:
        """Wait until so many servers have announced themselves. TimeoutError if they do not."""
        self._until(lambda: self._heard() >= servers, f"the directory lists no {servers} servers")

    def _is_ready(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
        except OSError:
            return False
        return True

    def _heard(self) -> int:
        place = ("--directory", self.url(), "--credentials", str(self.authority.user))
        status = json.loads(self.run(_PROGRAM, "directory", "status", "--json", *place))
        return sum(not one["is_silent"] for one in status["servers"])


class GridrpcServer(Daemons):
    """A server with compiled modules, whose workers are ready."""

    def __init__(
        self,
        modules: Sequence[str | Path],
        workers: int,
        *,
        tls: bool = False,
        http: bool = False,
        cores: int | Literal["all"] = 1,
        address: str = "127.0.0.1",
        namespace: Path | None = None,
        directory: Path | None = None,
        name: str = _USER,
        authority: GridrpcAuthority | None = None,
        announced: DirectoryTable | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """With `tls` it listens on a port as well, with `http` for the Open Inference Protocol
        without TLS; not with both. `cores`: processors of each call. `namespace`: the network
        namespace that it runs in, which has the `address`. `authority`: that of its certificate; by
        default its own. `announced`: to a directory, which needs `tls`. `variables`: of its
        environment. RuntimeError if it does not start."""
        super().__init__(_NAME, directory)
        self.name = name
        self._authority = authority
        self._announced = announced
        self.variables.update(variables or {})
        self._workers = workers
        self._cores = cores
        self._address = address
        self._namespace = namespace
        # A restarted server keeps its port.
        (self.port,) = free_ports(1)
        self._config = self.folder / "server.toml"
        with self._making():
            if tls:
                self._enrol()
            self._config.write_text(self._tables(modules, tls=tls, http=http), encoding="utf-8")
            self.start()

    @property
    def socket(self) -> str:
        """URL of its Unix socket."""
        return f"gridrpc+unix://{self.folder / 'state' / 'socket'}"

    @property
    def tls(self) -> str:
        """URL of its port, with the user's credentials."""
        return f"gridrpc://{self.http}?credentials={self.user}"

    @property
    def http(self) -> str:
        """Address and port."""
        return f"{self._address}:{self.port}"

    @property
    def user(self) -> Path:
        """Folder with certificate, key and authority of the user."""
        return self._authority.user if self._authority else self.folder / "user"

    @property
    def credentials(self) -> Path:
        """Folder with certificate, key and authority of the server."""
        return self.folder / "tls"

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.processes[_NAME]

    def start(self) -> None:
        """Start it, and wait until all workers are ready."""
        inside = ["nsenter", f"--net={self._namespace}"] if self._namespace else []
        self._start(_NAME, *inside, _PROGRAM, "server", "-c", str(self._config), "start")
        self._until(self._is_ready, "the server is not ready")

    def stop(self) -> None:
        """Stop it with its workers; `start` starts it again."""
        self._end(_NAME)

    def _is_ready(self) -> bool:
        if not (self.folder / "state" / "socket").exists():
            return False
        try:
            status = self.run(_PROGRAM, "server", "-c", str(self._config), "status", "--json")
        except RuntimeError:
            return False
        pools = json.loads(status)["pools"]
        return bool(pools) and pools[0]["ready"] >= self._workers

    def _tables(self, modules: Sequence[str | Path], *, tls: bool, http: bool) -> str:
        """The configuration, in TOML."""
        lines = ["[server]", f'name = "{self.name}"', f'state = "{self.folder / "state"}"']
        if tls:
            files = [f'{key} = "{self.credentials / key}.pem"' for key in _FILES]
            lines += [f'addresses = ["{self._address}"]', f"port = {self.port}", "[tls]", *files]
        if http:
            lines += ["[http]", f"port = {self.port}", f'anonymous = "{_USER}"']
        lines += ["[workers]", f"count = {self._workers}"]
        lines += ["[modules]", f"files = {[str(module) for module in modules]}"]
        if self._cores != 1:
            cores = f'"{self._cores}"' if self._cores == "all" else self._cores
            for module in modules:
                lines += [f"[modules.{Path(module).stem}]", f"cores = {cores}"]
        if self._announced:
            lines += self._directory_table(self._announced)
        return "\n".join([*lines, ""])

    def _directory_table(self, announced: DirectoryTable) -> list[str]:
        return [
            "[directory]",
            f'urls = ["{announced.directory}"]',
            f'address = "{self.http}"',
            f'credentials = "{self.user}"',
            f"interval = {announced.interval}",
            f"speed = {announced.speed:e}",
        ]

    def _enrol(self) -> None:
        """Create an authority if there is none, and certificates for server and user."""
        if self._authority is None:
            self._authority = GridrpcAuthority(self)
        self._authority.server(self.credentials, ("localhost", self._address))


_FILES = ("certificate", "key", "authority")
"""Keys of [tls], each the name of a file."""

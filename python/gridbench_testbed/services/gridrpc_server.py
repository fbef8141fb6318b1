"""A `gridrpc server` of its own, with an authority and one user."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from gridbench_testbed.daemons import Daemons, free_ports

_PROGRAM = str(Path(sys.prefix, "bin", "gridrpc"))
_NAME, _USER = "server", "bench"


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
    ) -> None:
        """With `tls` it listens on a port as well, with `http` for the Open Inference Protocol
        without TLS; not with both. `cores`: processors of each call. `namespace`: the network
        namespace that it runs in, which has the `address`. RuntimeError if it does not start."""
        super().__init__(_NAME, directory)
        self._workers = workers
        self._cores = cores
        self._address = address
        self._namespace = namespace
        # A restarted server keeps its port.
        (self._port,) = free_ports(1)
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
        return f"{self._address}:{self._port}"

    @property
    def user(self) -> Path:
        """Folder with certificate, key and authority of the user."""
        return self.folder / "user"

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
        lines = ["[server]", f'name = "{_USER}"', f'state = "{self.folder / "state"}"']
        if tls:
            files = [f'{key} = "{self.credentials / key}.pem"' for key in _FILES]
            lines += [f'addresses = ["{self._address}"]', f"port = {self._port}", "[tls]", *files]
        if http:
            lines += ["[http]", f"port = {self._port}", f'anonymous = "{_USER}"']
        lines += ["[workers]", f"count = {self._workers}"]
        lines += ["[modules]", f"files = {[str(module) for module in modules]}"]
        if self._cores != 1:
            cores = f'"{self._cores}"' if self._cores == "all" else self._cores
            for module in modules:
                lines += [f"[modules.{Path(module).stem}]", f"cores = {cores}"]
        return "\n".join([*lines, ""])

    def _enrol(self) -> None:
        """Create an authority, and certificates for server and user."""
        authority = ("--folder", str(self.folder / "authority"))
        hosts = ("--host", "localhost", "--host", self._address)
        own, user, signed = str(self.credentials), str(self.user), str(self.folder / "signed.pem")
        for words in (
            ("init", *authority, "--name", _USER),
            ("server", _USER, *hosts, "--out", own, *authority),
            ("request", _USER, "--out", user),
            ("sign", f"{user}/request.pem", "--out", signed, *authority),
            ("install", signed, "--out", user),
        ):
            self.run(_PROGRAM, "ca", *words)


_FILES = ("certificate", "key", "authority")
"""Keys of [tls], each the name of a file."""

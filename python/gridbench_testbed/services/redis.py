"""A private Redis on this machine, on a free port of the loopback device and a Unix socket.

with Redis() as redis:
    redis.command("set", "key", "value")
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from gridbench_testbed.daemons import Daemons, free_ports, lacking

Fsync = Literal["", "no", "everysec", "always"]


def why_not() -> str:
    """Why Redis cannot start here; empty if it can."""
    program = lacking("redis-server", "redis-cli", "setpriv")
    return f"`{program}` is not installed: scripts/ensure-redis does that" if program else ""


class Redis(Daemons):
    """A Redis, which stores nothing on disk by default."""

    def __init__(self, fsync: Fsync = "", *, port: int = 0, directory: Path | None = None) -> None:
        """`fsync`: Redis' `appendfsync`; empty: no append-only file. `directory`: the parent of its
        folder. `port`: 0 for any free port."""
        super().__init__("redis", directory)
        self.port = port or free_ports(1)[0]
        """On 127.0.0.1."""
        self.socket = self.folder / "socket"
        self.variables = {"REDIS_URL": f"redis://127.0.0.1:{self.port}"}
        with self._making():
            self._make(fsync)

    def command(self, *words: str) -> str:
        """Send a command; its answer."""
        return self.run("redis-cli", "-e", "-s", str(self.socket), *words).strip()

    def _make(self, fsync: Fsync) -> None:
        stored = (
            ["--appendonly", "yes", "--appendfsync", fsync] if fsync else ["--appendonly", "no"]
        )
        self._start(
            "redis-server", "redis-server", "--bind", "127.0.0.1", "--port", str(self.port),
            "--unixsocket", str(self.socket), "--dir", str(self.folder), "--save", "", *stored,
        )  # fmt: skip
        self._until(self._answers, "Redis does not answer")

    def _answers(self) -> bool:
        try:
            return self.command("ping") == "PONG"
        except RuntimeError:
            return False

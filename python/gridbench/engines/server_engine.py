"""gridrpc with the workers of a `gridrpc server`, which other clients may use at the same time.

`--server gridrpc://host:port` names it. Without one, the engine starts a server on this machine,
before t = 0, as a site's server runs already, and connects to its Unix socket.
"""

from __future__ import annotations

from typing import Any, ClassVar

import gridrpc
from gridbench.engines.base import Cannot, Description
from gridbench.engines.gridrpc_engines import NativeEngine
from gridbench.engines.servers import SHARED, Servers
from gridbench.native import module
from gridbench_testbed.services.gridrpc_server import GridrpcServer
from gridrpc import _native


class ServerEngine(NativeEngine):
    """gridrpc with the native workers of a server that many clients share."""

    name: ClassVar[str] = "server"

    takes_namespaces: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__()
        self._server: GridrpcServer | None = None
        self._trusted = True

    def use_servers(self, servers: Servers) -> None:
        """Use a shared server. Raises Cannot for other hosts."""
        if any(host.launcher not in SHARED for host in servers.hosts):
            raise Cannot("name a server that many clients share, as in gridrpc://HOST:PORT")
        super().use_servers(servers)
        chosen = _native.chosen_servers(list(servers.names), servers.file)
        self._trusted = not any(server.only_offers for server in chosen)

    def put(self, value: Any) -> Any:
        """Shared data of the grid. Servers that are not trusted get it as an argument of each
        call."""
        return super().put(value) if self._trusted else value

    def describe(self) -> Description:
        """The grid's description, with the place of the server."""
        reported = super().describe()
        where = "started by gridbench on this machine, before t = 0"
        if self._servers is not None:
            where = ", ".join(self._servers.names)
        return Description(
            reported.name, reported.version, {**reported.configuration, "server": where}
        )

    def prepare(self, workers: int) -> None:
        """Start a server, unless one is named."""
        super().prepare(workers)
        if self._servers is None and self._server is None:
            self._server = GridrpcServer([module()], workers)

    def start(self, workers: int) -> None:
        """Connect to it."""
        self.prepare(workers)
        super().start(workers)

    def close(self) -> None:
        """Disconnect, and end the server if it was started here."""
        try:
            super().close()
        finally:
            server, self._server = self._server, None
            if server is not None:
                server.close()

    def _open(self, workers: int) -> gridrpc.Grid:
        # The server has the functions: none is sent.
        return gridrpc.Grid(**self._place(workers))

    def _place(self, workers: int) -> dict[str, Any]:
        if self._server is None:
            return super()._place(workers)
        return {"servers": [f"{self._server.socket}?trusted=true"]}

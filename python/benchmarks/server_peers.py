"""Servers whose function does nothing, to compare ours with; each runs in its engine's Python.

    python server_peers.py pyro SOCKET
    python server_peers.py ray PORT PROCESSORS

They print `ready`, and end with their input.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable


def pyro(socket: str) -> None:
    """Pyro5 at a Unix socket."""
    import Pyro5.api
    import Pyro5.server

    class Null:
        """One object."""

        @Pyro5.api.expose  # type: ignore[untyped-decorator]
        def null(self) -> None:
            """Nothing."""

    daemon = Pyro5.server.Daemon(unixsocket=socket)
    daemon.register(Null(), "null")

    def end_with_input() -> None:
        sys.stdin.read()
        daemon.shutdown()

    threading.Thread(target=end_with_input, daemon=True).start()
    print("ready", flush=True)
    daemon.requestLoop()


def ray_serve(port: str, processors: str) -> None:
    """Ray Serve over HTTP, with one replica in a process of its own, as is its default."""
    import ray
    from ray import serve

    class NullDeployment:
        async def __call__(self, request: object) -> str:
            del request
            return ""

    ray.init(num_cpus=int(processors), include_dashboard=False, log_to_driver=False)
    serve.start(http_options={"host": "127.0.0.1", "port": int(port)})
    serve.run(serve.deployment(NullDeployment).bind())
    print("ready", flush=True)
    try:
        sys.stdin.read()
    finally:
        ray.shutdown()


if __name__ == "__main__":
    serve: Callable[..., None] = pyro if sys.argv[1] == "pyro" else ray_serve
    serve(*sys.argv[2:])

"""The process in which an engine with an environment of its own has its client.

    python -m gridbench.run.host DESCRIPTOR NAME MODULE:CLASS WORKERS WARM

`gridbench run` starts it (see `gridbench.run.hosting`) with the environment's Python. They talk
over a socket (see `gridbench.run.client`). All stamps are taken here, in the engine's own client;
CLOCK_MONOTONIC is the same in all processes of a machine. Rows travel in batches.
"""

from __future__ import annotations

import json
import queue
import sys
import threading
from importlib.metadata import EntryPoint
from typing import Any

from gridbench.engines.registry import GROUP, make_engine
from gridbench.errors import InputError
from gridbench.process.children import Leftovers
from gridbench.process.inside import ObjectChannel, end_now, serve
from gridbench.run.client import GLANCE, Close, Closed, Failed, LocalClient, News, Pass, facts_of
from gridbench.run.exchange import EngineFailure

_FOR_EVER = 1e9


class _Host:
    def __init__(self, channel: ObjectChannel) -> None:
        self._channel = channel
        self._commands: queue.SimpleQueue[Pass | Close] = queue.SimpleQueue()
        threading.Thread(target=self._listen, name="listen", daemon=True).start()

    def serve(self, point: EntryPoint, workers: int, warm: bool) -> None:
        """Make the engine, and serve requests until the end."""
        try:
            engine = make_engine(point)
        except InputError as error:
            self._send(Failed(error.what, refused=True, remedy=error.remedy))
            while isinstance(self._commands.get(), Pass):
                pass
            self._send(Closed(""))
            return
        client = LocalClient(engine)
        self._send(facts_of(engine, _plain(client.describe()), workers, warm=warm))
        while isinstance(command := self._commands.get(), Pass):
            try:
                self._pass(client, command)
            except EngineFailure as error:
                self._send(_failed(error))
        # How long to wait is for the other side to decide.
        self._send(Closed(client.close(_FOR_EVER)))

    def _pass(self, client: LocalClient, command: Pass) -> None:
        client.begin(command.plan, check=command.check)
        # A command in the middle of a pass means that its end is not wanted any more.
        while not client.finished and self._commands.empty():
            rows = client.take(GLANCE)
            description = _plain(client.describe()) if client.finished else None
            self._send(News(rows, client.status, description))

    def _send(self, message: object) -> None:
        try:
            self._channel.send(message)
        except OSError:
            end_now()

    def _listen(self) -> None:
        try:
            while True:
                self._commands.put(self._channel.receive())
        except (EOFError, OSError):
            end_now()


def _failed(error: EngineFailure) -> Failed:
    cause = error.__cause__
    if isinstance(cause, InputError):
        return Failed(cause.what, refused=True, remedy=cause.remedy)
    return Failed(str(error))


def _plain(description: dict[str, Any]) -> dict[str, Any]:
    """Without types that only the engine's own Python knows."""
    plain: dict[str, Any] = json.loads(json.dumps(description, default=str))
    return plain


def main(descriptor: str, name: str, value: str, workers: str, warm: str) -> None:
    """Serve until the end."""
    with Leftovers():
        host = _Host(ObjectChannel(serve(descriptor)))
        host.serve(EntryPoint(name, value, GROUP), int(workers), warm == "warm")


if __name__ == "__main__":
    main(*sys.argv[1:])

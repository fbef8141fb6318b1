"""Waiting for calls in an event loop of asyncio, which no thread of it may do by sleeping."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from gridrpc._native import Call


class Bell:
    """Wakes a task of the running loop when one of the calls has ended that it listens to."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._rung = asyncio.Event()

    def listen(self, call: Call[Any]) -> None:
        """Ring when this call has ended, or soon if it has."""
        call._grid._dispatcher.add_soon(call, self.ring, self._loop)

    def ring(self) -> None:
        """Wake the task. In any thread."""
        # A loop that has been closed meanwhile waits for nothing.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._rung.set)

    async def wait(self, timeout: float | None) -> bool:
        """Wait until it has rung since the last time. Returns whether it has."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._rung.wait()
        has_rung = self._rung.is_set()
        self._rung.clear()
        return has_rung

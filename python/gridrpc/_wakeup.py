"""Wakes an asyncio loop when calls finish."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from gridrpc._native import Call


class LoopWakeup:
    """Wakes a task of the running loop when one of the watched calls has ended."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._notified = asyncio.Event()

    def watch(self, call: Call[Any]) -> None:
        """Notify when this call has ended, or soon if it has."""
        call._grid._dispatcher.add_soon(call, self.notify, self._loop)

    def notify(self) -> None:
        """Wake the task. In any thread."""
        # A loop that has been closed meanwhile waits for nothing.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._notified.set)

    async def wait(self, timeout: float | None) -> bool:
        """Wait for a notification since the last wait. Returns whether there was one."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._notified.wait()
        was_notified = self._notified.is_set()
        self._notified.clear()
        return was_notified

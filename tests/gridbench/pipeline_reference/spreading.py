"""Where shared data is, while it spreads over hosts.

A host needs it once, however many workers it has. Either the client sends it to each host that
comes to need it, or there is a chain: the client sends it to the first, and each host hands it on
to the next, piece by piece, so that one which joins at once has it when the first has. A host that
joins later is sent all of it by its neighbour, over a link that the client has no part in.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline_reference.stages import Clock, Then


class Spreading:
    """Which hosts have the data, and which tasks wait for it there."""

    def __init__(self, clock: Clock, hosts: Sequence[int], *, chained: bool) -> None:
        """`hosts`: the number of each worker's host, shape (workers,)."""
        self._clock = clock
        self._hosts = hosts
        self._chained = chained
        self._asked: set[int] = set()
        self._there: set[int] = set()
        self._waiting: dict[int, list[tuple[Then, int]]] = {}
        self._following: list[int] = []
        """Hosts whose neighbours have handed on all that they have, and have not all yet."""
        self._taken: set[int] = set()
        """Workers that have taken it."""

    def goes_along(self, worker: int, seconds: float) -> bool:
        """Whether the data is to go along with a task for this worker, over the client's link.

        If it does not, the host has it, or gets it from elsewhere. `seconds`: how long it takes
        over one link.
        """
        host = self._hosts[worker]
        if host in self._asked:
            return False
        first = not self._asked
        self._asked.add(host)
        if self._chained and not first:
            self._clock.at(self._clock.now + seconds, self._handed_on, host)
            return False
        return True

    def came(self, worker: int) -> None:
        """It has come to the host of this worker, over the client's link."""
        self._arrive(self._hosts[worker])
        while self._following:
            self._arrive(self._following.pop(0))

    def when_there(self, worker: int, then: Then, task: int) -> None:
        """Continue with `then(task)` when the host of this worker has the data."""
        host = self._hosts[worker]
        if host in self._there:
            then(task)
        else:
            self._waiting.setdefault(host, []).append((then, task))

    def takes(self, worker: int) -> bool:
        """Whether this worker has yet to take the data, which it is about to do."""
        if worker in self._taken:
            return False
        self._taken.add(worker)
        return True

    def _handed_on(self, host: int) -> None:
        # No faster than the first host has it.
        if self._there:
            self._arrive(host)
        else:
            self._following.append(host)

    def _arrive(self, host: int) -> None:
        self._there.add(host)
        for then, task in self._waiting.pop(host, ()):
            then(task)

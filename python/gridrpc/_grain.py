"""How many items of `map` go into one call, and how many calls are kept under way."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

#: A call's overhead is to be at most this share of the time that its items take.
SHARE = 0.0125
#: What a worker spends between two calls, ns: as long as it has not been seen, and its bounds.
OVERHEAD = 25_000
LEAST_OVERHEAD, MOST_OVERHEAD = 20_000, 250_000
#: A chunk may take so many times what it was to take, in these bounds (ns).
SURPRISE = 4
LEAST_LIMIT, MOST_LIMIT = 5_000_000, 20_000_000
#: Items of a chunk at most, and how many times as many as the largest chunk that has come back.
MOST_AT_ONCE = 2_000
GROWTH = 4
#: Arguments and results of a chunk at most, bytes: to move more takes longer than the overhead.
MOST_BYTES = 512 << 10
#: Each worker is to get so many of the chunks that are left, so that all end at once; but none that
#: are smaller than those that keep a call's overhead at this share of the time that its items take.
LEFT = 4
SHARE_AT_THE_END = 0.1
#: Weight of earlier measurements after another call.
MEMORY = 0.9

#: Calls that are kept under way at most, or four for each worker if that is more,
MOST_AHEAD = 256
#: or as many as the links and speeds of hosts need, up to this number.
MOST_WINDOW = 1 << 14
#: Results between two requests of that number, or one of each worker if these are more.
BETWEEN_WINDOWS = 16
#: Items in chunks that are kept under way at most, where that leaves two chunks for each processor.
MOST_ITEMS_AHEAD = 1 << 15

#: What a call cost: worker, when it was submitted, when its function started and returned (ns),
#: bytes moved.
Cost = tuple[int, int, int, int, int]


def checked_chunk(chunk: int | Literal["auto"], *, asks: bool) -> None:
    """Raise ValueError if there can be no such chunks; `asks`: calls ask for more than a worker."""
    if chunk != "auto" and (not isinstance(chunk, int) or chunk < 1):
        raise ValueError(f'chunk is {chunk!r}: give "auto", or a number from 1 on')
    if asks and chunk not in {"auto", 1}:
        raise ValueError(
            f"chunk is {chunk!r}: calls that ask for cores, memory, resources, ranks or an "
            "expected time take one item"
        )


class Costs:
    """What items of a function cost, and calls of it: known from one map to the next."""

    def __init__(self) -> None:
        self.overhead = float(OVERHEAD)
        #: Decaying sums: time that items took, ns, and their number.
        self.busy = self.items = 0.0
        #: Bytes of an item, with its result.
        self.bytes = 0.0
        #: Items of the largest call.
        self.largest = 0
        #: Calls to keep under way so that no host runs out of them: what the core reported last.
        self.window = 0

    def for_a_share_of(self, share: float) -> float:
        """How many items keep the overhead at that share of their time."""
        return self.overhead / share / max(1.0, self.busy / (self.items or 1.0))


class Grain:
    """Says how items go into calls, and learns from each that comes back.

    `chunk`: items per call, if that is settled; `workers`: how many there are now, or are to be;
    `processors`: how many of them can run at once;
    `total`: how many items there will be at most, if that is known; `max_bytes`: how much data may
    wait; `costs`: what is known of the function, and is added to; `few_ahead`: whether to keep no
    more calls without a result than the workers need: after a crash, all of these are in doubt.
    """

    def __init__(  # noqa: PLR0917 - one for each thing that bounds chunks
        self,
        chunk: int | None,
        workers: Callable[[], int],
        processors: int,
        total: int | None,
        max_bytes: int,
        costs: Costs | None = None,
        few_ahead: bool = False,
    ) -> None:
        self._chunk = chunk
        self._count = workers
        self._processors = processors
        self._left = total
        self._max_bytes = max_bytes
        self._costs = Costs() if costs is None else costs
        self._few_ahead = few_ahead
        #: When each worker was seen to end a call, ns.
        self._ended: dict[int, int] = {}
        #: Bytes of a call.
        self._call_bytes = 0.0
        #: Results until the window is requested again.
        self._until_window = 0
        #: Whether a call has come back, of this map or one before.
        self._has_learned = self._costs.items > 0

    @property
    def workers(self) -> int:
        """How many workers there are, or are to be."""
        return max(1, self._count())

    def size(self) -> int:
        """How many items the next call is to take."""
        if self._chunk is not None:
            return self._chunk
        costs = self._costs
        if not costs.items:
            return 1
        size = min(self._worthwhile(), GROWTH * costs.largest)
        if costs.bytes:
            size = min(size, MOST_BYTES / costs.bytes)
        if self._left is not None:
            least = min(costs.for_a_share_of(SHARE_AT_THE_END), self._left / self.workers)
            size = min(size, math.ceil(max(self._left / (LEFT * self.workers), least)))
        return max(1, int(size))

    def _worthwhile(self) -> float:
        """How many items keep the overhead small."""
        return min(MOST_AT_ONCE, self._costs.for_a_share_of(SHARE))

    def limit(self) -> int:
        """After which time a chunk is to begin no further item, ns; 0: it is to take all."""
        if self._chunk is not None:
            return 0
        return int(min(max(SURPRISE * self._costs.overhead / SHARE, LEAST_LIMIT), MOST_LIMIT))

    def budget(self) -> int:
        """How large the arguments of a chunk may be, bytes."""
        return MOST_BYTES if self._chunk is None else self._max_bytes

    def taken(self, count: int) -> None:
        """So many items have been taken."""
        if self._left is not None:
            self._left = max(0, self._left - count)

    def unanswered(self) -> int:
        """How many calls without a result to keep under way."""
        return 2 * self.workers if self._few_ahead else self.ahead()

    def ahead(self) -> int:
        """How many calls to keep under way, with those whose results are not due yet."""
        if not self._has_learned:
            # Until the first result tells how large they are, no more than the workers need.
            return 2 * self.workers
        if self._chunk is None and self._worthwhile() > GROWTH * self._costs.largest:
            # Chunks grow with what comes back: not behind many small ones.
            return 2 * self.workers
        window = min(self._costs.window, MOST_WINDOW)
        most = max(4 * self.workers, MOST_AHEAD, window)
        size = self.size()
        if self._chunk is None and size > 1:
            at_once = min(self.workers, self._processors)
            most = min(most, max(2 * at_once, MOST_ITEMS_AHEAD // size, window))
            least = 2 * at_once
        else:
            least = 2 * self.workers
        return min(most, max(least, int(self._max_bytes / max(1.0, self._call_bytes))))

    def enough(self) -> int:
        """How many calls without a result keep all workers busy while results are taken."""
        return max(2 * self.workers, min(self._costs.window, MOST_WINDOW))

    def follow(self, window: Callable[[], int]) -> None:
        """A result has come. `window`: gives the number of calls of the function to keep under
        way."""
        self._until_window -= 1
        if self._until_window <= 0:
            self._costs.window = window()
            self._until_window = max(BETWEEN_WINDOWS, self.workers)

    def sent(self, cost: Cost, items: int) -> None:
        """A call of so many items has been made: their arguments may be larger than before."""
        self._call_bytes = max(self._call_bytes, cost[-1])
        self._costs.bytes = max(self._costs.bytes, cost[-1] / items)

    def learn(self, cost: Cost, items: int) -> None:
        """A call has come back that has run so many items."""
        worker, submitted, started, returned, moved = cost
        if not returned:
            # Its worker was lost.
            return
        costs = self._costs
        self._has_learned = True
        self._call_bytes = max(MEMORY * self._call_bytes, moved)
        if self._chunk is not None or not items:
            return
        costs.largest = max(costs.largest, items)
        costs.bytes = max(MEMORY * costs.bytes, moved / items)
        ran = returned - started
        before = self._ended.get(worker)
        self._ended[worker] = returned
        if before is not None and submitted < before < started:
            # The worker came from another of our calls, and this one was waiting already.
            gap = started - before
            weight = 1 / 4 if gap < costs.overhead else 1 / 32
            overhead = costs.overhead + weight * (min(gap, MOST_OVERHEAD) - costs.overhead)
            costs.overhead = max(LEAST_OVERHEAD, overhead)
            # To unpickle items, and to pickle their results, counts as their own time; what
            # lies between may as well have been a call of somebody else.
            ran += max(0, min(gap - int(costs.overhead), 4 * ran))
        # One item that takes very long says little about the others; the limit deals with it.
        ran = min(ran, SURPRISE * int(costs.overhead / SHARE))
        costs.busy = MEMORY * costs.busy + ran
        costs.items = MEMORY * costs.items + items

"""How many items of `map` go into one call, and how many calls are kept under way."""

from __future__ import annotations

import math

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
#: Each worker is to get so many of the chunks that are left, so that all end at once.
LEFT = 4
#: How much of what was learned before counts after another call.
MEMORY = 0.9

#: Calls that are kept under way at most, or four for each worker if that is more.
MOST_AHEAD = 256
#: Items in chunks that are kept under way at most, where that leaves two chunks for each processor.
MOST_ITEMS_AHEAD = 1 << 15

#: What a call cost: worker, when it was submitted, when its function started and returned (ns),
#: bytes moved.
Cost = tuple[int, int, int, int, int]


class Grain:
    """Learns what items and calls cost.

    `chunk`: items per call, if that is settled; `processors`: how many workers can run at once;
    `total`: how many items there will be at most, if that is known; `max_bytes`: how much data may
    wait.
    """

    def __init__(
        self, chunk: int | None, workers: int, processors: int, total: int | None, max_bytes: int
    ) -> None:
        self._chunk = chunk
        self.workers = workers
        self._at_once = min(workers, processors)
        self._left = total
        self._max_bytes = max_bytes
        #: When each worker was seen to end a call, ns.
        self._ended: dict[int, int] = {}
        self._overhead = float(OVERHEAD)
        #: Decaying sums: time that items took, ns, and their number.
        self._busy = self._items = 0.0
        #: Bytes of an item, with its result.
        self._bytes = 0.0
        #: Bytes of a call, and items of the largest.
        self._call_bytes = 0.0
        self._largest = 0

    def size(self) -> int:
        """How many items the next call is to take."""
        if self._chunk is not None:
            return self._chunk
        if not self._items:
            return 1
        size = min(self._worthwhile(), GROWTH * self._largest)
        if self._bytes:
            size = min(size, MOST_BYTES / self._bytes)
        if self._left is not None:
            size = min(size, math.ceil(self._left / (LEFT * self.workers)))
        return max(1, int(size))

    def _worthwhile(self) -> float:
        """How many items keep the overhead small."""
        item = max(1.0, self._busy / self._items)
        return min(MOST_AT_ONCE, self._overhead / SHARE / item)

    def limit(self) -> int:
        """After which time a chunk is to begin no further item, ns; 0: it is to take all."""
        if self._chunk is not None:
            return 0
        return int(min(max(SURPRISE * self._overhead / SHARE, LEAST_LIMIT), MOST_LIMIT))

    def budget(self) -> int:
        """How large the arguments of a chunk may be, bytes."""
        return MOST_BYTES if self._chunk is None else self._max_bytes

    def taken(self, count: int) -> None:
        """So many items have been taken."""
        if self._left is not None:
            self._left = max(0, self._left - count)

    def ahead(self) -> int:
        """How many calls to keep under way."""
        if not self._largest:
            # Until the first result tells how large they are, no more than the workers need.
            return 2 * self.workers
        if self._chunk is None and self._worthwhile() > GROWTH * self._largest:
            # Chunks grow with what comes back: not behind many small ones.
            return 2 * self.workers
        most = max(4 * self.workers, MOST_AHEAD)
        size = self.size()
        if self._chunk is None and size > 1:
            most = min(most, max(2 * self._at_once, MOST_ITEMS_AHEAD // size))
            least = 2 * self._at_once
        else:
            least = 2 * self.workers
        return min(most, max(least, int(self._max_bytes / max(1.0, self._call_bytes))))

    def sent(self, cost: Cost, items: int) -> None:
        """A call of so many items has been made: their arguments may be larger than before."""
        self._call_bytes = max(self._call_bytes, cost[-1])
        self._bytes = max(self._bytes, cost[-1] / items)

    def learn(self, cost: Cost, items: int) -> None:
        """A call has come back that has run so many items."""
        worker, submitted, started, returned, moved = cost
        self._call_bytes = max(MEMORY * self._call_bytes, moved)
        self._largest = max(self._largest, items)
        if self._chunk is not None or not items:
            return
        self._bytes = max(MEMORY * self._bytes, moved / items)
        ran = returned - started
        before = self._ended.get(worker)
        self._ended[worker] = returned
        if before is not None and submitted < before < started:
            # The worker came from another of our calls, and this one was waiting already.
            gap = started - before
            weight = 1 / 4 if gap < self._overhead else 1 / 32
            overhead = self._overhead + weight * (min(gap, MOST_OVERHEAD) - self._overhead)
            self._overhead = max(LEAST_OVERHEAD, overhead)
            # To unpickle items, and to pickle their results, counts as their own time; what
            # lies between may as well have been a call of somebody else.
            ran += max(0, min(gap - int(self._overhead), 4 * ran))
        # One item that takes very long says little about the others; the limit deals with it.
        ran = min(ran, SURPRISE * int(self._overhead / SHARE))
        self._busy = MEMORY * self._busy + ran
        self._items = MEMORY * self._items + items

"""Speculative execution: near the end of a `map`, calls that take long run on a second worker."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from gridrpc._native import Call, Watch

#: A call is a straggler when it has taken so many times as long as the median of those before.
STRAGGLER = 1.5
#: Seconds that every call may take.
LEAST_TIME = 0.1
#: The median is that of the last calls, and of this many at least.
REMEMBERED, FEWEST = 1_000, 3
#: Seconds between two looks for stragglers, as a share of the median, and its bounds.
PAUSE, LEAST_PAUSE, MOST_PAUSE = 0.1, 0.01, 1.0


class _Copies(NamedTuple):
    """A call and its copy, and their tokens."""

    token: int
    of_copy: int
    call: Call[Any]
    copy: Call[Any]


class Speculation:
    """Copies of calls of one `map`. The first of both that returns gives the result, and the other
    is cancelled. A call has one copy at most.

    `copy`: makes a call of an item again; `workers`: how many there are.
    """

    def __init__(self, copy: Callable[[Any], Call[Any]], workers: Callable[[], int]) -> None:
        self._copy = copy
        self._workers = workers
        #: Seconds that calls took.
        self._took: deque[float] = deque(maxlen=REMEMBERED)
        #: By the tokens of both.
        self._copies: dict[int, _Copies] = {}
        #: Tokens of calls whose copies have given the results, and the other way round.
        self._losers: set[int] = set()
        #: Tokens of calls that have failed while the other one was to decide.
        self._failed: set[int] = set()
        #: When to look for stragglers again.
        self._looks_at = 0.0

    def learn(self, call: Call[Any]) -> None:
        """Take note of how long a call took that has returned."""
        profile = call._profile()
        if profile["sent"] and profile["retrieve"]:
            self._took.append(profile["retrieve"] - profile["sent"])

    @property
    def _median(self) -> float | None:
        if len(self._took) < FEWEST:
            return None
        return sorted(self._took)[len(self._took) // 2]

    def pause(self) -> float:
        """Seconds until the next look."""
        return min(max(PAUSE * (self._median or 0.0), LEAST_PAUSE), MOST_PAUSE)

    def is_due(self) -> bool:
        """Whether it is time for the next look."""
        now = monotonic()
        if now < self._looks_at:
            return False
        self._looks_at = now + self.pause()
        return True

    def copy_stragglers(
        self, running: Mapping[int, tuple[Call[Any], Any]], watch: Watch, next_token: int
    ) -> list[int]:
        """Copy as many stragglers as there are free workers, the longest first. `running`: calls
        without a result and their items, by token. Returns the tokens of those that are copied now;
        the copies have tokens from `next_token` on."""
        median = self._median
        free = self._workers() - len(running) - len(self._copies) // 2
        if median is None or free <= 0:
            return []
        late = monotonic() - max(STRAGGLER * median, LEAST_TIME)
        sent_at = {
            token: sent
            for token, (call, _) in running.items()
            if token not in self._copies and 0 < (sent := call._profile()["sent"]) < late
        }
        stragglers = sorted(sent_at, key=sent_at.__getitem__)[:free]
        for of_copy, token in enumerate(stragglers, next_token):
            call, item = running[token]
            copies = _Copies(token, of_copy, call, self._copy(item))
            self._copies[token] = self._copies[of_copy] = copies
            copies.copy._watch(watch, of_copy)
        return stragglers

    def decide(self, token: int) -> tuple[int, Call[Any]] | None:
        """The call that gives the result, and the token of the original, when this one has ended.
        None: the other one is waited for, or has given the result."""
        if token in self._losers:
            self._losers.remove(token)
            return None
        copies = self._copies[token]
        is_copy = token == copies.of_copy
        this, other = (copies.copy, copies.call) if is_copy else (copies.call, copies.copy)
        if this.exception() is not None:
            others = copies.token if is_copy else copies.of_copy
            if others not in self._failed:
                # It may have ended as well by now, and comes then.
                self._failed.add(token)
                return None
            self._failed.remove(others)
            this = copies.call
        else:
            self._losers.add(copies.token if is_copy else copies.of_copy)
            other.cancel()
        del self._copies[copies.token], self._copies[copies.of_copy]
        return copies.token, this

    def knows(self, token: int) -> bool:
        """Whether `decide` is to be asked when the call with this token has ended."""
        return token in self._copies or token in self._losers

    def cancel(self) -> None:
        """End the copies."""
        for token, copies in self._copies.items():
            if token == copies.of_copy:
                copies.copy.cancel()
        self._copies.clear()

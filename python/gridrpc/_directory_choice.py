"""The choice of a server for each call of a grid with a directory."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from gridrpc import _native
from gridrpc._directory import Directory, KnownServer, Prediction
from gridrpc._directory_client import Offer
from gridrpc._directory_shared import DirectoryArguments
from gridrpc.errors import GridError, LimitReached, NotPermitted, StartError, WorkerLost

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gridrpc._grid import Grid
    from gridrpc._native import Call

#: Bytes in, bytes out and operations of a call.
CallSize = tuple[float, float, float]
#: A server cannot be connected to, or does not have what its directory says.
UNUSABLE = (LookupError, OSError, WorkerLost, NotPermitted)


class Work(NamedTuple):
    """A call before it has a server."""

    arguments: DirectoryArguments
    size: CallSize
    #: Whether `CalcOrder` gives the operations.
    has_cost: bool


class Predicted(NamedTuple):
    """A server that could run a call."""

    server: KnownServer
    cores: int
    prediction: Prediction
    candidate: _native.Candidate


class Choice:
    """The server of a call, where the call counts from now on until it has ended."""

    def __init__(self, name: str, picked: Predicted, work: Work) -> None:
        self.server = picked.server
        #: Of the server.
        self.grid: Grid
        #: The function at the server.
        self.function: Any = None
        self._name = name
        self._operations = work.size[2]
        self._has_cost = work.has_cost
        now, measured = time.monotonic(), self.server.measured
        self._counted = [measured.begin(now, work.size, picked.candidate, picked.cores)]

    def ended(self, call: Call[Any], times: int) -> None:
        """Learn from a call that has ended, the first time. `times`: it ran the function so many
        times."""
        if not self.release():
            return
        error = call.exception()
        if error is None:
            operations = times * self._operations
            self.server.learn(self._name, call, operations, self._has_cost)
        elif isinstance(error, (LimitReached, StartError)):
            self.server.refuse()

    def release(self) -> bool:
        """Count it no longer. Returns whether it was counted."""
        try:
            call = self._counted.pop()
        except IndexError:
            return False
        self.server.measured.end(time.monotonic(), call)
        return True

    def arguments(self, arguments: DirectoryArguments) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments there."""
        return arguments.at(self.server.address, self.grid)

    def item(self, item: Any, single: bool) -> Any:
        """An item of a map there. `single`: it is the only argument."""
        args, kwargs = self.arguments(DirectoryArguments(*item_arguments(item, single)))
        return args[0] if single else kwargs or args


def item_arguments(item: Any, single: bool) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """The arguments of an item of a map."""
    if single:
        return (item,), {}
    return ((), dict(item)) if isinstance(item, dict) else (tuple(item), {})


class Chooser:
    """Chooses the server of each call of one function, or of an object of one class."""

    def __init__(
        self, directory: Directory, name: str, signature: str | None, *, is_any: bool = False
    ) -> None:
        """`signature`: the interface that calls keep to; None: it is in Python. `is_any`: all
        interfaces will do."""
        self.directory = directory
        self.name = name
        self._signature, self._is_any = signature, is_any

    def predicted(self, work: Work) -> list[Predicted]:
        """All servers, in the order of the directory's answer."""
        fetched, offers = self.directory.answer(self.name)
        servers = [(self.directory.server(offer), offer) for offer in offers]
        states = [self._state(server, offer, work.arguments) for server, offer in servers]
        known = [
            (
                offer.speed,
                offer.load,
                max(1, offer.cores),
                state != "ready",
                fetched - offer.age,
                work.arguments.bytes_at(server.address, server.grid),
                server.measured,
            )
            for (server, offer), state in zip(servers, states, strict=True)
        ]
        candidates = _native.server_candidates(known, self.name, work.has_cost, time.monotonic())
        result = []
        for (server, offer), state, found in zip(servers, states, candidates, strict=True):
            times = found.predict(work.size)
            prediction = Prediction(
                server.address, server.name, state, found.speed, found.load, *times
            )
            result.append(Predicted(server, max(1, offer.cores), prediction, found))
        return result

    def _state(self, server: KnownServer, offer: Offer, arguments: DirectoryArguments) -> str:
        if offer.signature != self._signature and not self._is_any:
            return "another interface"
        if offer.is_silent:
            return "silent"
        if server.is_lost():
            return "lost"
        if not arguments.can_be_at(server.address):
            return "without the data"
        return "full" if offer.is_full or time.monotonic() < server.refused_until else "ready"

    def choose(
        self,
        work: Work,
        connect: Callable[[Choice], bool] | None,
        tried: set[str],
        failure: Exception | None = None,
    ) -> Choice:
        """A server for a call, none of those that have been tried. `connect`: finds the function
        there; False: the server has another one.

        Raises the last failure, or LimitReached, if no server is left.
        """
        while True:
            fetched = self.directory.fetched(self.name)
            # Of calls that begin at a time, each counts for the next one.
            with self.directory.choosing:
                picked = self._pick(work, tried)
                choice = None if picked is None else Choice(self.name, picked, work)
            if choice is None:
                # There may be servers that have come since, also by a refresh meanwhile.
                if self.directory.ask_again(self.name, fetched):
                    continue
                raise failure or self._none_left(work)
            try:
                choice.grid = choice.server.connected()
                if connect is None or connect(choice):
                    return choice
            except UNUSABLE as error:
                failure = error
            except BaseException:
                choice.release()
                raise
            # The directory is behind, or lies.
            choice.release()
            choice.server.refuse()
            tried.add(choice.server.address)

    def _pick(self, work: Work, tried: set[str]) -> Predicted | None:
        """The server by the policy; None: there is none left."""
        servers = [
            one
            for one in self.predicted(work)
            if one.server.address not in tried and one.prediction.state == "ready"
        ]
        if not servers:
            return None
        policy = self.directory.policy
        if callable(policy):
            # The least of equals is the first, and what has not been measured is to be tried.
            servers.sort(key=lambda one: one.candidate.is_measured)
            predictions = [one.prediction for one in servers]
            return servers[predictions.index(policy(predictions))]
        candidates = [one.candidate for one in servers]
        found = _native.choose_server(policy, work.size, candidates, self.directory.draw())
        return servers[0 if found is None else found]

    def _none_left(self, work: Work) -> GridError:
        predicted = [one.prediction for one in self.predicted(work)]
        states = ", ".join(f"{one.address}: {one.state}" for one in predicted)
        return LimitReached(f"no server takes a call of {self.name} now ({states})")

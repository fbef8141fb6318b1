"""Functions of compiled modules that call one of the servers of a directory."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from gridrpc import _native
from gridrpc._directory import Directory, KnownServer, Offer, Prediction
from gridrpc._directory_shared import DirectoryArguments
from gridrpc._modules import ModuleFunction
from gridrpc._options import DEFAULT
from gridrpc.errors import (
    FunctionNotFound,
    LimitReached,
    NotPermitted,
    StartError,
    WorkerLost,
)

if TYPE_CHECKING:
    from gridrpc._grain import Grain
    from gridrpc._grid import Grid
    from gridrpc._native import Call, CallOptions

#: Bytes in, bytes out and operations of a call.
CallSize = tuple[float, float, float]
#: A server as `_native.choose_server` takes it.
Figures = tuple[float, float, float, float, float, bool, bool, float, float, float]


class Predicted(NamedTuple):
    """A server that could run a call."""

    server: KnownServer
    cores: int
    prediction: Prediction
    figures: Figures

    @property
    def is_measured(self) -> bool:
        return self.figures[6]


class Choice:
    """The server of a call, where the call counts from now on until it has ended."""

    def __init__(self, name: str, picked: Predicted, size: CallSize, has_cost: bool) -> None:
        self.server = picked.server
        #: The function at the server.
        self.function: ModuleFunction
        self._name = name
        self._operations = size[2]
        #: Whether `CalcOrder` says so.
        self._has_cost = has_cost
        seconds = _native.core_time(size, picked.figures)
        self._counted = [self.server.begin(seconds, picked.cores)]

    def watch(self, call: Call[Any], times: int = 1) -> None:
        """Learn from the call when it ends. `times`: it runs the function so often."""
        self._operations *= times
        call.add_done_callback(self.ended)

    def ended(self, call: Call[Any]) -> None:
        """Learn from a call that has ended, the first time."""
        if not self.release():
            return
        error = call.exception()
        if error is None:
            self.server.learn(self._name, call, self._operations, self._has_cost)
        elif isinstance(error, (LimitReached, StartError)):
            self.server.refuse()

    def release(self) -> bool:
        """Count it no longer. Returns whether it was counted."""
        try:
            call = self._counted.pop()
        except IndexError:
            return False
        self.server.end(call)
        return True

    def arguments(self, arguments: DirectoryArguments) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments there."""
        return arguments.at(self.server.address, self.function._grid)

    def item(self, item: Any, single: bool) -> Any:
        """An item of a map there. `single`: it is the only argument."""
        if single:
            return self.arguments(DirectoryArguments((item,), {}))[0][0]
        if isinstance(item, Mapping):
            return self.arguments(DirectoryArguments((), dict(item)))[1]
        return self.arguments(DirectoryArguments(tuple(item), {}))[0]


class DirectoryFunction(ModuleFunction):
    """A function of a compiled module, with a server for each call, from `Grid.function`."""

    def __init__(
        self, directory: Directory, grid: Grid, name: str, *, options: CallOptions, ranks: int
    ) -> None:
        self._directory = directory
        first = self._first(name, options, ranks)
        self._target = first._target
        self._native = first._grid._native
        #: Calls keep to this interface, whatever other servers have.
        self.signature: str = first.description["signature"]
        self._grid = grid
        self._on = None
        self._options = options
        self._ranks = ranks
        self.costs = first.costs
        self.__name__, self.__qualname__ = first.__name__, first.__qualname__
        self._warn_of_others()

    def _first(self, name: str, options: CallOptions, ranks: int) -> ModuleFunction:
        """The function at one of its servers, which gives the interface."""
        offers = self._directory.answer(name).offers
        if all(offer.signature is None for offer in offers):
            raise FunctionNotFound(
                f"{name} is in Python, and a directory finds functions of compiled modules: name "
                "its server, as in Grid(servers=[...])"
            )
        usable = [one for one in offers if one.signature is not None and not one.is_silent]
        failure: Exception = StartError(f"all servers that offer {name} are silent")
        for offer in sorted(usable, key=lambda offer: (offer.is_full, offer.load)):
            server = self._directory.server(offer)
            try:
                return server.function(name, options, ranks)
            except (LookupError, OSError, WorkerLost, NotPermitted) as error:
                server.refuse()
                failure = error
        raise failure

    def _warn_of_others(self) -> None:
        others = {
            offer.address
            for offer in self._directory.answer(self.name).offers
            if offer.signature not in (None, self.signature)
        }
        if others:
            warnings.warn(
                f"{self.name} has another interface at {', '.join(sorted(others))}: calls keep to "
                f"{self.signature}",
                RuntimeWarning,
                stacklevel=4,
            )

    @property
    def has_changed(self) -> bool:
        return False

    def predictions(self, /, *args: Any, **kwargs: Any) -> list[Prediction]:
        """The predicted time of a call with these arguments on each server."""
        arguments = DirectoryArguments(args, kwargs)
        size, has_cost = self._size(arguments)
        return [one.prediction for one in self._predicted(arguments, size, has_cost)]

    def _size(self, arguments: DirectoryArguments) -> tuple[CallSize, bool]:
        """Bytes in, bytes out and operations of a call, and whether `CalcOrder` gives these."""
        size = self._native.call_size(self._target, *arguments.values())
        bytes_in, bytes_out, operations = size
        if operations is None or operations <= 0:
            return (float(bytes_in), float(bytes_out), 1.0), False
        return (float(bytes_in), float(bytes_out), operations), True

    def _predicted(
        self, arguments: DirectoryArguments, size: CallSize, has_cost: bool
    ) -> list[Predicted]:
        """All servers, in the order of the directory's answer."""
        fetched, offers = self._directory.answer(self.name)
        servers = [(self._directory.server(offer), offer) for offer in offers]
        states = [self._state(server, offer) for server, offer in servers]
        known = []
        for (server, offer), state in zip(servers, states, strict=True):
            speed = server.speeds.get(self.name)
            known.append(
                (
                    offer.speed,
                    offer.load,
                    max(1, offer.cores),
                    state != "ready",
                    None if speed is None else speed.value,
                    server.bandwidth_in.value,
                    server.bandwidth_out.value,
                    *server.own_calls(fetched - offer.age),
                )
            )
        result = []
        for (server, offer), state, found in zip(
            servers, states, _native.server_candidates(known, has_cost), strict=True
        ):
            there = arguments.bytes_at(server.address, server.grid)
            figures = (*found[:4], there, *found[5:])
            load = figures[1] + figures[7]
            times = _native.predicted_time(size, figures)
            prediction = Prediction(server.address, server.name, state, figures[0], load, *times)
            result.append(Predicted(server, max(1, offer.cores), prediction, figures))
        return result

    def _state(self, server: KnownServer, offer: Offer) -> str:
        if offer.signature != self.signature:
            return "another interface"
        if offer.is_silent:
            return "silent"
        if server.is_lost():
            return "lost"
        return "full" if offer.is_full or time.monotonic() < server.refused_until else "ready"

    def _choose(
        self,
        arguments: DirectoryArguments,
        tried: set[str],
        failure: Exception | None = None,
    ) -> Choice:
        """A server for a call, none of those that have been tried.

        Raises the last failure, or LimitReached, if no server is left.
        """
        size, has_cost = self._size(arguments)
        while True:
            # Of calls that begin at a time, each counts for the next one.
            with self._directory.choosing:
                picked = self._pick(arguments, size, has_cost, tried)
                if picked is None:
                    raise failure or self._none_left(arguments, size, has_cost)
                choice = Choice(self.name, picked, size, has_cost)
            server = choice.server
            try:
                choice.function = server.function(self.name, self._options, self._ranks)
                signature = choice.function.description["signature"]
            except (LookupError, OSError, WorkerLost, NotPermitted) as error:
                signature, failure = None, error
            except BaseException:
                choice.release()
                raise
            if signature == self.signature:
                return choice
            # The directory is behind, or lies.
            choice.release()
            server.refuse()
            tried.add(server.address)

    def _pick(
        self, arguments: DirectoryArguments, size: CallSize, has_cost: bool, tried: set[str]
    ) -> Predicted | None:
        """The server by the policy; None: there is none left."""
        servers = [
            one
            for one in self._predicted(arguments, size, has_cost)
            if one.server.address not in tried and one.prediction.state == "ready"
        ]
        if not servers:
            return None
        policy = self._directory.policy
        if callable(policy):
            # The least of equals is the first, and what has not been measured is to be tried.
            servers.sort(key=lambda one: one.is_measured)
            predictions = [one.prediction for one in servers]
            return servers[predictions.index(policy(predictions))]
        figures = [one.figures for one in servers]
        found = _native.choose_server(policy, size, figures, self._directory.draw())
        return servers[0 if found is None else found]

    def _none_left(
        self, arguments: DirectoryArguments, size: CallSize, has_cost: bool
    ) -> Exception:
        predicted = [one.prediction for one in self._predicted(arguments, size, has_cost)]
        states = ", ".join(f"{one.address}: {one.state}" for one in predicted)
        return LimitReached(f"no server takes a call of {self.name} now ({states})")

    def _start(
        self,
        choice: Choice,
        arguments: DirectoryArguments,
        out: Any,
        options: CallOptions,
        *,
        ranks: int = 0,
        has_span: bool = True,
    ) -> Call[Any]:
        """Submit a call to its server, and watch it."""
        function = choice.function
        try:
            call = function._submit(
                function._grid,
                *choice.arguments(arguments),
                out,
                options,
                ranks=ranks,
                has_span=has_span,
            )
        except BaseException:
            choice.release()
            raise
        choice.watch(call)
        return call

    def __call__(
        self, /, *args: Any, out: Any = None, deadline: float | None = None, **kw: Any
    ) -> Any:
        options = DEFAULT if deadline is None else _native.CallOptions(deadline=deadline)
        tried: set[str] = set()
        failure: Exception | None = None
        arguments = DirectoryArguments(args, kw)
        while True:
            choice = self._choose(arguments, tried, failure)
            call = self._start(choice, arguments, out, options)
            try:
                return call.result()
            except (LimitReached, StartError) as error:
                # The server has not begun the call.
                failure = error
            except WorkerLost as error:
                if not self.is_idempotent:
                    raise
                failure = error
            finally:
                # The next call knows of this one, even if it comes before the callback.
                if call.done():
                    choice.ended(call)
            choice.server.refuse()
            tried.add(choice.server.address)

    def detach_on(self, grid: Grid, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        self._check_grid(grid)
        arguments = DirectoryArguments(args, kwargs)
        choice = self._choose(arguments, set())
        try:
            args, kwargs = choice.arguments(arguments)
            return choice.function.detach(*args, **kwargs)
        finally:
            choice.release()

    def submit_many_on(
        self, grid: Grid, items: list[Any], single: bool, grain: Grain, options: CallOptions
    ) -> tuple[Call[Any], int] | None:
        self._check_grid(grid)
        item = items[0]
        args: tuple[Any, ...] = (item,) if single else ()
        kwargs: dict[str, Any] = {}
        if not single:
            args, kwargs = ((), dict(item)) if isinstance(item, Mapping) else (tuple(item), {})
        choice = self._choose(DirectoryArguments(args, kwargs), set())
        function = choice.function
        made = None
        try:
            items = [choice.item(one, single) for one in items]
            made = function.submit_many_on(function._grid, items, single, grain, options)
        finally:
            if made is None:
                choice.release()
        if made is not None:
            choice.watch(*made)
        return made

    def _submit(
        self,
        grid: Grid,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        out: Any,
        options: CallOptions,
        *,
        ranks: int = 0,
        has_span: bool = True,
    ) -> Call[Any]:
        grid._check_open()
        arguments = DirectoryArguments(args, kwargs)
        choice = self._choose(arguments, set())
        return self._start(choice, arguments, out, options, ranks=ranks, has_span=has_span)

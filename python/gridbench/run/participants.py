"""The requested engines of a run, each with the place of its client."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import EntryPoint
from typing import Any

from gridbench.engines.base import Cannot, Engine
from gridbench.engines.environments import Environment, environment
from gridbench.engines.registry import find_engine, make_engine
from gridbench.engines.servers import Servers
from gridbench.errors import InputError
from gridbench.process.children import ChildProcess
from gridbench.run.client import Client, EngineFacts, LocalClient, facts_of
from gridbench.run.exchange import EngineFailure
from gridbench.run.hosting import HostedClient

_LOADING = 120.0  # seconds for a process to start and to import an engine


class Participant(abc.ABC):
    """An engine that can be run once."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.servers: Servers | None = None
        """Where its workers are; None: on this machine."""

    @abc.abstractmethod
    def use_namespaces(self, namespaces: Sequence[str]) -> None:
        """Have its workers live in these network namespaces. InputError if they cannot."""

    @abc.abstractmethod
    def require_servers(self) -> None:
        """InputError if its workers cannot be those of a grid's servers."""

    def use_servers(self, servers: Servers) -> None:
        """Have its workers be those of these servers. InputError if they cannot."""
        self.require_servers()
        self.servers = servers

    @abc.abstractmethod
    def facts(self, workers: int, *, warm: bool) -> EngineFacts:
        """Facts needed beforehand. InputError if the engine cannot be used."""

    @abc.abstractmethod
    def open(self, workers: int, *, warm: bool) -> tuple[Client, ChildProcess | None]:
        """A new client of it, and the process in which that is, if not in this one."""

    @abc.abstractmethod
    def environment(self) -> dict[str, Any] | None:
        """Where it lives, for the record; None for this Python."""


def find_participant(name: str) -> Participant:
    """The engine `name`; InputError if there is none or it cannot be used."""
    point = find_engine(name)
    own = environment(name)
    if own is not None:
        return _Elsewhere(point, own)
    engine = make_engine(point)
    return _Beside(point, engine) if engine.own_process else _Here(point, engine)


class _Here(Participant):
    """An engine that lives in this Python: its client is in this process."""

    def __init__(self, point: EntryPoint, engine: Engine) -> None:
        super().__init__(point.name)
        self._point = point
        self._engine = engine
        self._opened = False
        self._namespaces: Sequence[str] = ()

    def use_namespaces(self, namespaces: Sequence[str]) -> None:
        self._namespaces = namespaces
        try:
            self._engine.use_namespaces(namespaces)
        except Cannot as error:
            raise _no_namespaces(str(error)) from error

    def require_servers(self) -> None:
        if not self._engine.takes_servers:
            raise _no_servers(self.name)

    def use_servers(self, servers: Servers) -> None:
        super().use_servers(servers)
        try:
            self._engine.use_servers(servers)
        except Cannot as error:
            raise _no_servers(self.name, str(error)) from error

    def facts(self, workers: int, *, warm: bool) -> EngineFacts:
        return facts_of(self._engine, asdict(self._engine.describe()), workers, warm=warm)

    def open(self, workers: int, *, warm: bool) -> tuple[Client, ChildProcess | None]:
        del workers, warm
        if self._opened:  # an engine starts and ends once
            self._engine = make_engine(self._point)
            if self._namespaces:
                self.use_namespaces(self._namespaces)
            if self.servers is not None:
                self.use_servers(self.servers)
        self._opened = True
        return LocalClient(self._engine), None

    def environment(self) -> dict[str, Any] | None:
        return None


class _Beside(_Here):
    """An engine of this Python whose client is in another process."""

    def open(self, workers: int, *, warm: bool) -> tuple[Client, ChildProcess | None]:
        client = HostedClient(self._point, workers=workers, warm=warm)
        return client, client.process


class _Elsewhere(Participant):
    """An engine with an environment of its own: its client is in a process there."""

    def __init__(self, point: EntryPoint, own: Environment) -> None:
        super().__init__(point.name)
        own.require()
        self._point = point
        self._own = own

    def use_namespaces(self, namespaces: Sequence[str]) -> None:
        del namespaces
        raise _no_namespaces(f"{self.name}, in an environment of its own, takes no namespaces")

    def require_servers(self) -> None:
        raise _no_servers(self.name)

    def facts(self, workers: int, *, warm: bool) -> EngineFacts:
        client = HostedClient(self._point, workers=workers, warm=warm)
        try:
            return client.facts(_LOADING)
        except EngineFailure as error:
            cause = error.__cause__
            what = cause.what if isinstance(cause, InputError) else str(error)
            raise InputError(
                f"the engine `{self.name}` cannot be loaded: {what}",
                file=self._own.folder,
                remedy=f"install it again: `gridbench engines remove {self.name}`, then"
                f" `gridbench engines install {self.name}`",
            ) from error
        finally:
            client.close(1.0)
            client.process.kill()
            client.process.wait()

    def open(self, workers: int, *, warm: bool) -> tuple[Client, ChildProcess | None]:
        client = HostedClient(self._point, workers=workers, warm=warm)
        return client, client.process

    def environment(self) -> dict[str, Any] | None:
        packages = {one.package: one.version for one in self._own.required()}
        return {"folder": str(self._own.folder), "packages": packages}


def _no_namespaces(why: str) -> InputError:
    return InputError(why, remedy="choose gridrpc-native or gridrpc-python, or one host")


def _no_servers(name: str, why: str = "") -> InputError:
    return InputError(
        why or f"the engine `{name}` cannot run its workers on servers of a grid",
        remedy="choose gridrpc-native or gridrpc-python, or run it without --grid and --server, and"
        " compare both runs with `gridbench report`",
    )

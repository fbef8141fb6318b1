"""Call numerical code on other processes as if it were a local function.

import gridrpc

with gridrpc.Grid(workers=8) as grid:
    call = grid.submit(pow, 2, 10)
    print(call.result())
"""

from __future__ import annotations

TYPE_CHECKING = False  # what type checkers take it for is not worth loading `typing`, 10 ms

if TYPE_CHECKING:
    from typing import Any

    from gridrpc._call import as_completed, wait
    from gridrpc._config import Config
    from gridrpc._current import CurrentGrid, NestedCall, current_grid
    from gridrpc._detached import DetachedCall
    from gridrpc._directory import Prediction
    from gridrpc._environment import with_environment
    from gridrpc._executor import Executor
    from gridrpc._frozen import freeze_support
    from gridrpc._grid import Grid
    from gridrpc._hosts import HostState
    from gridrpc._journal import Journal
    from gridrpc._modules import ModuleFunction, RemoteObject, empty, empty_like
    from gridrpc._named_data import SharedName
    from gridrpc._native import Call
    from gridrpc._pool import Pool
    from gridrpc._profile import Profile
    from gridrpc._retries import retrying
    from gridrpc._scratch import in_scratch_folder
    from gridrpc._session.attached import AttachedGrid, attach
    from gridrpc._shared import Shared
    from gridrpc._stats import CallCounts, FunctionStats, GridStats, HostStats
    from gridrpc._stream import Stream
    from gridrpc.errors import (
        ArgumentError,
        CallCancelled,
        CapturedStateWarning,
        ConfigError,
        DeadlineExceeded,
        DependencyFailed,
        FunctionNotFound,
        GridClosed,
        GridError,
        InterfaceChanged,
        JournalError,
        LimitReached,
        NestingError,
        NoSession,
        NotPermitted,
        NotTrusted,
        ObjectLost,
        OutcomeUnknown,
        ProtocolError,
        RanksLost,
        RemoteError,
        ServerNotFound,
        SessionEnded,
        SessionError,
        SessionRefused,
        SessionSilent,
        StartError,
        SweepInterrupted,
        TooFewCores,
        TooFewResources,
        WorkerLost,
    )

__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "AttachedGrid",
    "Call",
    "CallCancelled",
    "CallCounts",
    "CapturedStateWarning",
    "Config",
    "ConfigError",
    "CurrentGrid",
    "DeadlineExceeded",
    "DependencyFailed",
    "DetachedCall",
    "Executor",
    "FunctionNotFound",
    "FunctionStats",
    "Grid",
    "GridClosed",
    "GridError",
    "GridStats",
    "HostState",
    "HostStats",
    "InterfaceChanged",
    "Journal",
    "JournalError",
    "LimitReached",
    "ModuleFunction",
    "NestedCall",
    "NestingError",
    "NoSession",
    "NotPermitted",
    "NotTrusted",
    "ObjectLost",
    "OutcomeUnknown",
    "Pool",
    "Prediction",
    "Profile",
    "ProtocolError",
    "RanksLost",
    "RemoteError",
    "RemoteObject",
    "ServerNotFound",
    "SessionEnded",
    "SessionError",
    "SessionRefused",
    "SessionSilent",
    "Shared",
    "SharedName",
    "StartError",
    "Stream",
    "SweepInterrupted",
    "TooFewCores",
    "TooFewResources",
    "WorkerLost",
    "as_completed",
    "attach",
    "current_grid",
    "empty",
    "empty_like",
    "freeze_support",
    "in_scratch_folder",
    "retrying",
    "wait",
    "with_environment",
]

#: Where each public name lives, if not in `errors`. They are loaded when they are first used:
#: a worker needs none of them, and what it does not load is not copied a hundred times.
_HOMES = {
    "AttachedGrid": "_session.attached",
    "Call": "_native",
    "CallCounts": "_stats",
    "Config": "_config",
    "CurrentGrid": "_current",
    "DetachedCall": "_detached",
    "Executor": "_executor",
    "FunctionStats": "_stats",
    "Grid": "_grid",
    "GridStats": "_stats",
    "HostState": "_hosts",
    "HostStats": "_stats",
    "Journal": "_journal",
    "ModuleFunction": "_modules",
    "NestedCall": "_current",
    "Pool": "_pool",
    "Prediction": "_directory",
    "Profile": "_profile",
    "RemoteObject": "_modules",
    "Shared": "_shared",
    "SharedName": "_named_data",
    "Stream": "_stream",
    "as_completed": "_call",
    "attach": "_session.attached",
    "current_grid": "_current",
    "empty": "_modules",
    "empty_like": "_modules",
    "freeze_support": "_frozen",
    "in_scratch_folder": "_scratch",
    "retrying": "_retries",
    "wait": "_call",
    "with_environment": "_environment",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"gridrpc.{_HOMES.get(name, 'errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

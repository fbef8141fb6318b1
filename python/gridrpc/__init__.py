"""Call numerical code on other processes as if it were a local function.

For example:

    import gridrpc

    with gridrpc.Grid(workers=8) as grid:
        call = grid.submit(pow, 2, 10)
        print(call.result())
"""

from gridrpc._call import Profile, as_completed
from gridrpc._config import Config
from gridrpc._executor import Executor
from gridrpc._grid import Grid
from gridrpc._native import Call
from gridrpc._shared import Shared
from gridrpc.errors import (
    CallCancelled,
    ConfigError,
    DeadlineExceeded,
    FunctionNotFound,
    GridClosed,
    GridError,
    RemoteError,
    StartError,
    WorkerLost,
)

__version__ = "0.1.0"

__all__ = [
    "Call",
    "CallCancelled",
    "Config",
    "ConfigError",
    "DeadlineExceeded",
    "Executor",
    "FunctionNotFound",
    "Grid",
    "GridClosed",
    "GridError",
    "Profile",
    "RemoteError",
    "Shared",
    "StartError",
    "WorkerLost",
    "as_completed",
]

"""Detached calls: a server keeps them, and any program of their owner takes the results."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from gridrpc._grid import Grid
    from gridrpc._native import Call

#: Between the URL of a server and the number of a call.
IN_ID = "/d/"


class DetachedCall(NamedTuple):
    """A detached call of this user, from `Grid.detached_calls`."""

    #: For `Grid.attach` and `gridrpc.attach`.
    id: str
    #: `module/function`.
    function: str
    #: "queued", "running", "done" or "failed".
    state: str
    #: When it was detached, seconds since 1970.
    submitted: float


def is_id(name: object) -> bool:
    """Whether a name is that of a detached call, not of a session."""
    return isinstance(name, str) and "://" in name


_lock = threading.Lock()
#: A grid for each server, and the process that has opened it.
_grids: dict[str, tuple[int, Grid]] = {}


def attach_call(call_id: str, credentials: str | os.PathLike[str] | None) -> Call[Any]:
    """The detached call with this id, by a grid that stays open until the program ends."""
    from gridrpc._grid import Grid

    server = call_id.rpartition(IN_ID)[0] or call_id
    url = server if credentials is None else f"{server}?credentials={os.fspath(credentials)}"
    with _lock:
        pid, grid = _grids.get(url, (0, None))
        if grid is None or pid != os.getpid() or grid._closed:
            grid = Grid(servers=url)
            _grids[url] = os.getpid(), grid
    return grid.attach(call_id)

"""What is known of the hosts of a grid."""

from __future__ import annotations

from typing import NamedTuple


class HostState(NamedTuple):
    """How a host is getting on."""

    server: str
    """The server that it belongs to."""
    host: str
    """Its name, as the configuration has it; of a batch system the server's name with a number."""
    state: str
    """"unwanted": it is not asked for, as there is no work for it; "queued": it waits in the queue
    of a batch system; "starting"; "ready": workers there have answered; "ending": it is given back;
    "lost": it could not be had."""
    ready: int
    """Workers there that have answered."""
    workers: int
    """How many there are to be; 0: it has not told yet."""
    detail: str
    """What else is known: in which job it waits, and why; how it was lost."""

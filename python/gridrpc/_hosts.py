"""What is known of the hosts of a grid."""

from __future__ import annotations

from typing import NamedTuple


class HostState(NamedTuple):
    """The state of a host."""

    server: str
    """The server that the host belongs to."""
    host: str
    """The host's name in the configuration; with a batch system, the server's name with a
    number."""
    state: str
    """"unwanted": not requested, since there is no work for it; "queued": waiting in the queue of a
    batch system; "starting"; "ready": workers there have answered; "ending": being given back;
    "lost": gone, or never reached."""
    ready: int
    """Number of workers there that have answered."""
    workers: int
    """Number of workers that the host will have; 0: not known yet."""
    detail: str
    """Further details: the job in which it waits, and why; how it was lost."""

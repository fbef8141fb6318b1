"""The profile of a call. Apart, as making this class takes longer than loading the calls."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Profile:
    """When and where a call ran: in seconds of this host's monotonic clock (NaN: not reached)."""

    submit: float
    """The caller submitted the call."""
    sent: float
    """The client sent the call to a worker."""
    received: float
    """All of its arguments had arrived at the worker."""
    calc_in: float
    """The function started."""
    calc_out: float
    """The function returned."""
    retrieve: float
    """The result had arrived at the client."""
    cpu: float
    """Processor time between calc-in and calc-out, all threads together; 0 if not measured."""
    callbacks: int
    """Number of callbacks that the function made."""
    callback_time: float
    """Seconds between calc-in and calc-out in which the function waited for callbacks."""
    worker: int | None
    """Number of the worker; None if no worker had the call."""
    pid: int
    """Process id of the worker; 0 if no worker had the call."""
    host: str
    """The host of the worker."""
    bytes_in: int
    """Bytes of arguments that were moved."""
    bytes_out: int
    """Bytes of the result that were moved."""
    clock_error: float
    """Seconds by which received, calc_in and calc_out may be wrong if they come from the clock of
    another host; 0 for this host."""

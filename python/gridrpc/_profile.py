"""The profile of a call. Apart, as making this class takes longer than loading the calls."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Profile:
    """Times of a call in seconds of this host's monotonic clock (NaN: not reached), and places."""

    submit: float
    """The caller handed it over."""
    sent: float
    """It went to a worker."""
    received: float
    """All of its arguments had come there."""
    calc_in: float
    """The function started."""
    calc_out: float
    """The function returned."""
    retrieve: float
    """The result was here."""
    cpu: float
    """Processor time between calc-in and calc-out, all threads together; 0 if not measured."""
    callbacks: int
    """How many callbacks the function made."""
    callback_time: float
    """Seconds between calc-in and calc-out in which it waited for them."""
    worker: int | None
    """Number of the worker; None if it never had one."""
    pid: int
    """Process id of the worker; 0 if it never had one."""
    host: str
    """Where the worker runs."""
    bytes_in: int
    """Bytes of arguments that were moved."""
    bytes_out: int
    """Bytes of the result that were moved."""
    clock_error: float
    """By how many seconds received, calc_in and calc_out may be wrong, as they were read from the
    clock of another host; 0 on this one."""

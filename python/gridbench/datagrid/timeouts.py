"""How long something may take before it counts as hanging: longer than anything that works, so that
only what hangs is given up."""

from __future__ import annotations

from gridbench.datagrid.parameters import Parameters

TO_ANSWER = 120.0
"""Seconds for what takes milliseconds, unless the cluster is about to replace a member."""
_LEAST_RATE = 100.0
"""Objects per second, of all clients together, below which reading or storing them is hanging."""
_LEAST_BYTES = 1 << 20
"""Bytes per second below which it is."""
_CALL = 1e-7
"""Seconds of a call of the random generator on the slowest processor that is believed."""
_WAYS = 2
"""An update reads its object, and writes it."""


def for_objects(objects: int, size: int) -> float:
    """Seconds for reading or storing so many objects of `size` bytes."""
    return TO_ANSWER + max(objects / _LEAST_RATE, objects * size / _LEAST_BYTES)


def for_first_tasks(own: Parameters) -> float:
    """Seconds for a task of each client, which all begin together."""
    operations = own.busy_clients * own.operations_of_task
    return for_objects(_WAYS * operations, own.object_bytes) + own.nrepeats * _load(own)


def for_an_answer(own: Parameters, rate: float | None) -> float:
    """Seconds in which one of the clients has an answer, or ends a task, as long as they work.

    `rate`: operations per second of all clients that a schedule has; None: there is none.
    """
    # Iterations without operations of their own follow each other without an answer.
    silent = 1 if own.keys_of_iteration + own.write_data_size else own.nrepeats
    scheduled = 0.0 if rate is None else own.busy_clients / rate
    operation = for_objects(_WAYS * own.busy_clients, own.object_bytes)
    return operation + silent * _load(own) + scheduled


def _load(own: Parameters) -> float:
    """Seconds of an iteration between its operations: all clients sleep at the same time, and
    compute, at worst, on one processor."""
    return own.sleep_time + own.busy_clients * own.process_time * _CALL

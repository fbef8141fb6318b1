"""Pickles with their large parts out of band, for both ends of a connection."""

from __future__ import annotations

import pickle

#: Buffers that one payload may have beside its pickle.
MAX_BUFFERS = 1000


def dumps(value: object) -> tuple[bytes, list[pickle.PickleBuffer]]:
    """Pickle `value`; contiguous arrays in it come out as buffers instead of being copied.

    Things that belong to the main program, and whatever else plain pickle refuses, go by value,
    through cloudpickle.
    """
    buffers: list[pickle.PickleBuffer] = []
    try:
        head = pickle.dumps(value, 5, buffer_callback=buffers.append)
    except (pickle.PicklingError, AttributeError, TypeError):
        return _by_value(value)
    if b"__main__" in head:
        return _by_value(value)
    if len(buffers) > MAX_BUFFERS:
        return pickle.dumps(value, 5), []
    return head, buffers


def _by_value(value: object) -> tuple[bytes, list[pickle.PickleBuffer]]:
    import cloudpickle  # takes 50 ms: not before it is needed

    buffers: list[pickle.PickleBuffer] = []
    head: bytes = cloudpickle.dumps(value, 5, buffer_callback=buffers.append)
    if len(buffers) > MAX_BUFFERS:
        head, buffers = cloudpickle.dumps(value, 5), []
    return head, buffers

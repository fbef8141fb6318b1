"""Pickles with their large parts out of band, for both ends of a connection."""

from __future__ import annotations

import sys
from pickle import PickleBuffer, Pickler, PicklingError
from pickle import dumps as dumps_in_band

from gridrpc._native import Buffer

TYPE_CHECKING = False  # as in `__init__`

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: Buffers that one payload may have beside its pickle.
MAX_BUFFERS = 1000
#: From how many bytes on bytes, bytearrays and texts are buffers.
LARGE = 256 << 10
#: Longer pickles may leave a large memo behind: their pickler is not used again.
SMALL = 64 << 10

# Operations of pickle.
_PROTO, _FRAME = 0x80, 0x95
#: What stands before large contents, by its length: the operation, and so many bytes of a length.
_BEFORE = {
    ord("B"): b"cgridrpc._native\nlarge_bytes\n\x97\x85R",
    0x8E: b"cgridrpc._native\nlarge_bytes\n\x97\x85R",
    0x96: b"cgridrpc._native\nlarge_bytearray\n\x97\x85R",
    ord("X"): b"cbuiltins\nstr\n\x97\x8c\x05utf-8\x8c\x0dsurrogatepass\x87R",
    0x8D: b"cbuiltins\nstr\n\x97\x8c\x05utf-8\x8c\x0dsurrogatepass\x87R",
}


class _Sink:
    """A file to a pickler, which takes its pieces."""

    __slots__ = ("write",)

    write: Callable[[Any], None]


#: Picklers that are free, each with the list that its pieces go to: to make one takes longer than a
#: small pickle.
_spare: list[tuple[Pickler, list[Any]]] = []


def _new(kind: type[Pickler]) -> tuple[Pickler, list[Any]]:
    pieces: list[Any] = []
    sink = _Sink()
    sink.write = pieces.append
    return kind(sink, 5, buffer_callback=pieces.append), pieces


def dumps(value: object, reducers: Any = None) -> tuple[bytes, list[PickleBuffer]]:
    """Pickle `value`; contiguous arrays in it come out as buffers instead of being copied.

    So do large bytes, bytearrays and texts. Things that belong to the main program, and whatever
    else plain pickle refuses, go by value, through cloudpickle. `reducers`: by type, functions that
    reduce an object as `__reduce__` does.
    """
    if reducers is not None or not _spare:
        pickler, pieces = _new(Pickler)
    else:
        pickler, pieces = _spare.pop()
    if reducers is not None:
        pickler.dispatch_table = _with_registered(reducers)
    try:
        pickler.dump(value)
    except (PicklingError, AttributeError, TypeError):
        return dumps_by_value(value, reducers=reducers)
    if len(pieces) == 1:
        head: bytes = pieces.pop()
        buffers: list[PickleBuffer] = []
        if len(head) < SMALL and reducers is None:
            pickler.clear_memo()
            _spare.append((pickler, pieces))
    else:
        head, buffers = _taken_apart(pieces, pickler)
    # The end of `__main__`, and of `__mp_main__` as children of multiprocessing call it.
    if b"_main__" in head or _names_other(head):
        return dumps_by_value(value, reducers=reducers)
    if len(buffers) > MAX_BUFFERS:
        return dumps_in_band(value, 5), []
    return head, buffers


def _with_registered(reducers: Any) -> Any:
    import copyreg

    return {**copyreg.dispatch_table, **reducers}


def _taken_apart(pieces: list[Any], pickler: Pickler) -> tuple[bytes, list[PickleBuffer]]:
    """A pickle that came in pieces: with its large contents, and the buffers beside it.

    A pickler writes contents of 64 KiB and more as they are, directly behind a piece that ends with
    the operation that they belong to. Those are replaced by operations that make the same of
    the next buffer.
    """
    room = MAX_BUFFERS - sum(isinstance(piece, PickleBuffer) for piece in pieces)
    head: list[Any] = []
    buffers: list[PickleBuffer] = []
    written = 0
    for piece in pieces:
        if isinstance(piece, PickleBuffer):
            buffers.append(piece)
        elif written:
            before = head[-1]
            if len(piece) >= LARGE and room > 0:
                room -= 1
                head[-1] = before[:-written] + _BEFORE[before[-written]]
                # The contents of a text belong to the text, which the pickler's memo holds.
                stored = Buffer.held(piece, pickler) if isinstance(piece, memoryview) else piece
                buffers.append(PickleBuffer(stored))
            else:
                head.append(piece)
            written = 0
        else:
            written = _contents_follow(piece)
            head.append(piece)
    return b"".join(head), buffers


def _contents_follow(piece: bytes) -> int:
    """How many bytes the operation has that ends a piece, if its contents are the next piece, or 0.

    Only such an operation lies behind the frame of its piece, except for three bytes of others: so
    few have no frame of their own.
    """
    at = 2 if piece[0] == _PROTO else 0
    if len(piece) > at and piece[at] == _FRAME:
        at += 9 + int.from_bytes(piece[at + 1 : at + 9], "little")
    behind = len(piece) - at
    return 9 if behind >= 9 else 5 if behind >= 5 else 0


def dumps_by_value(
    value: object, *, in_band: bool = False, reducers: Any = None
) -> tuple[bytes, list[PickleBuffer]]:
    """The same through cloudpickle; `in_band`: with no buffers beside the pickle."""
    from gridrpc import _by_value  # takes 50 ms: not before it is needed

    buffers: list[PickleBuffer] = []
    try:
        head = _by_value.dumps(value, None if in_band else buffers.append, reducers)
    except (PicklingError, AttributeError, TypeError, RuntimeError) as error:
        from gridrpc._unpicklable import explain

        explain(value, error)
        raise
    if len(buffers) > MAX_BUFFERS:
        head, buffers = _by_value.dumps(value, None, reducers), []
    if b"multiprocessing" in head:
        from gridrpc._authkey import with_authkey

        head = with_authkey(head)
    return head, buffers


def _names_other(head: bytes) -> bool:
    """Whether a pickle names what another process may not find by its name alone."""
    if b"multiprocessing" in head:
        return True
    registered = by_value_modules()
    return bool(registered) and any(name.encode() in head for name in registered)


def by_value_modules() -> set[str]:
    """Modules that the user has given to `cloudpickle.register_pickle_by_value`."""
    cloudpickle = sys.modules.get("cloudpickle.cloudpickle")
    return cloudpickle._PICKLE_BY_VALUE_MODULES if cloudpickle is not None else set()

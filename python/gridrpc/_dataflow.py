"""Calls as arguments of calls: what the first returns continues to the second."""

from __future__ import annotations

from pickle import loads

from gridrpc._wrapped import result_of

TYPE_CHECKING = False  # as in `__init__`

if TYPE_CHECKING:
    from typing import Any, NoReturn

    from gridrpc import _native
    from gridrpc._native import Call


class NotAnArgument(ValueError):
    """A call was pickled that is no argument of another call."""


def reduce(call: Call[Any]) -> tuple[Any, tuple[Any, ...]]:
    """`Call.__reduce__`: as an argument, it is pickled as a reference to its result."""
    from gridrpc._shared import collecting

    collected = getattr(collecting, "calls", None)
    if collected is None:
        raise NotAnArgument(
            "a call can be pickled only as an argument of a call that its own grid is to make: "
            "give its result here"
        )
    if call._grid._native is not collecting.native:
        raise ValueError(
            f"the call of {call.function_name} belongs to another grid: give its result"
        )
    # A pickle may be begun twice.
    held = collected[call][1] if call in collected else call._hold()
    if held is not None:
        index, _ = collected.setdefault(call, (len(collected), held))
        return passed_on, (index,)
    if not call.done():
        raise TypeError(
            f"{call.function_name} is a function of a compiled module, whose results land in the "
            "client's memory: wait for the call, and give its result"
        )
    return given, (call.result(),)


class CallOutput:
    """One of several results of a call, as an argument of another call: see `Call.output`."""

    __slots__ = ("_call", "_name")

    def __init__(self, call: Call[Any], name: str) -> None:
        self._call = call
        self._name = name

    def _passed(self, native: _native.Grid) -> Any:
        return self._call._passed(native, self._name)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"`{self._name}` of a call of {self._call.function_name} can be an argument of "
            "functions of compiled modules only: wait for the call, and give the result"
        )

    def __repr__(self) -> str:
        return f"<result `{self._name}` of {self._call!r}>"


def given(value: Any) -> Any:
    """In a worker: the result of a call that the client had taken before."""
    return value


def passed_on(index: int) -> Any:
    """In a worker: the result of another call that is number `index` among the arguments.

    Memory beside its pickle is read-only: others may read the same.
    """
    from gridrpc._worker import passed_on as parts

    head, *buffers = parts(index)
    return result_of(loads(head, buffers=buffers))

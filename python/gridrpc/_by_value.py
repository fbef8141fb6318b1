"""Pickles of what plain pickle refuses, and of what belongs to the main program: by value.

Apart, as cloudpickle takes 50 ms to load.
"""

from __future__ import annotations

import functools
import io
import sys
from collections import ChainMap
from types import FunctionType
from typing import Any

import cloudpickle
from cloudpickle import cloudpickle as internals

# Where version 2 has it; version 3 passes on what it has moved.
from cloudpickle.cloudpickle_fast import _function_setstate

#: Names of the main program; the second is that of children of `multiprocessing`.
MAIN = frozenset({"__main__", "__mp_main__"})

#: What the initializer of this worker has assigned to globals of the main program.
assigned: dict[str, Any] = {}


def dumps(value: object, buffer_callback: Any = None, reducers: Any = None) -> bytes:
    """Pickle a value with protocol 5. `reducers`: by type, before those that are known."""
    _register_main()
    with io.BytesIO() as file:
        Pickler(file, reducers, protocol=5, buffer_callback=buffer_callback).dump(value)
        return file.getvalue()


class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """cloudpickle's, for what it does not know."""

    def __init__(self, file: Any, reducers: Any = None, **options: Any) -> None:
        tables: list[Any] = [] if reducers is None else [reducers]
        tables.append(cloudpickle.Pickler.dispatch_table)
        reduction = sys.modules.get("multiprocessing.reduction")
        if reduction is not None:
            # Connections, sockets and what else processes of `multiprocessing` can be given.
            tables.append(reduction.ForkingPickler._extra_reducers)
        # As an attribute of the object, it is looked at only here.
        self.dispatch_table = ChainMap(*tables)
        super().__init__(file, **options)

    def reducer_override(self, value: Any) -> Any:
        """How to make functions and properties again that have a cache: with an empty one."""
        if type(value) is functools._lru_cache_wrapper and not _is_importable(value):
            return _cached, (value.__wrapped__, value.cache_parameters())
        if type(value) is functools.cached_property:
            return _cached_property, (value.func, value.attrname)
        if _is_single_dispatch(value) and not _is_importable(value):
            # Its functions may refer to it.
            state = value.__wrapped__, [*value.registry.items()]
            return _single_dispatch, (), state, None, None, _set_registry
        return super().reducer_override(value)

    def _dynamic_function_reduce(self, function: FunctionType) -> Any:
        make, arguments, state, _, _, _ = super()._dynamic_function_reduce(function)
        if function.__module__ not in MAIN:
            return make, arguments, state, None, None, _function_setstate
        return make, arguments, state, None, None, _set_main_state


def _set_main_state(function: FunctionType, state: Any) -> None:
    """Complete a function of the main program. Assignments of the initializer stay."""
    _function_setstate(function, state)
    function.__globals__.update(assigned)


def note_assigned(function: object, before: dict[str, Any]) -> None:
    """Remember what `function`, the initializer, has assigned; `before`: its globals before."""
    if isinstance(function, FunctionType) and function.__module__ in MAIN:
        for name, value in function.__globals__.items():
            if name not in before or before[name] is not value:
                assigned[name] = value


def _cached(function: Any, parameters: dict[str, Any]) -> Any:
    return functools.lru_cache(**parameters)(function)


def _cached_property(function: Any, name: str | None) -> Any:
    made = functools.cached_property(function)
    made.attrname = name
    return made


def _is_single_dispatch(value: Any) -> bool:
    """Whether a function was made by `functools.singledispatch`."""
    return isinstance(value, FunctionType) and value.__code__ is _SINGLE_DISPATCH


def _single_dispatch() -> Any:
    return functools.singledispatch(_undefined)


def _undefined(_: Any) -> None:
    """Takes the place of the first function until the others are known."""


_SINGLE_DISPATCH = _single_dispatch().__code__


def _set_registry(function: Any, state: Any) -> None:
    first, registry = state
    functools.update_wrapper(function, first)
    for kind, implementation in registry:
        function.register(kind, implementation)


def _is_importable(function: Any) -> bool:
    found = internals._lookup_module_and_qualname(function)
    return (
        found is not None
        and found[0].__name__ not in MAIN
        and not internals._is_registered_pickle_by_value(found[0])
    )


def _register_main() -> None:
    """In a child of `multiprocessing`, the main program is a module by another name."""
    main = sys.modules.get("__mp_main__")
    if main is not None and main.__name__ == "__mp_main__":
        cloudpickle.register_pickle_by_value(main)

"""Remote objects of Python classes: the object lives in a worker of its own."""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any

from gridrpc import _tracing
from gridrpc._instances import Method, make, public_methods
from gridrpc._modules import FINALIZE_TIME, RemoteObject
from gridrpc._native import CallOptions
from gridrpc._options import DEFAULT
from gridrpc._pickling import dumps
from gridrpc._wrapped import name_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from gridrpc._grid import Grid
    from gridrpc._native import Call, Function

#: The method that `RemoteObject.close` runs first.
CLOSE = "close"


class PythonObject(RemoteObject):
    """An object of a Python class, from `Grid.object`: its methods are attributes."""

    def __init__(
        self,
        grid: Grid,
        cls: type,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        start_timeout: float | None,
        *,
        server: str | None,
    ) -> None:
        grid._functions.check_python(cls)
        self._class = cls
        self._made: dict[str, RemoteMethod] = {}
        self._reserve(grid, name_of(cls), server, python=True)
        try:
            self._wait_for_worker(start_timeout)
            making = grid._functions.located(dumps(make)[0])
            beginning = grid._native.register(name_of(cls), making)
            # What the constructor raises is raised here.
            grid._native.submit(
                grid, beginning, (cls, args, kwargs), {}, DEFAULT, self._on
            ).result()
        except BaseException:
            self._release()
            raise

    def __getattr__(self, name: str) -> RemoteMethod:
        cls = self.__dict__.get("_class")
        if cls is None:  # its making has failed, or it is being copied
            raise AttributeError(name)
        method = self._made.get(name)
        if method is None:
            attribute = getattr(cls, name, None)
            if name.startswith("__") or not callable(attribute):
                raise AttributeError(self._no_method(name))
            method = self._made[name] = self._method(name)
        return method

    def _method(self, name: str) -> RemoteMethod:
        grid = self._grid
        grid._check_process()
        function = grid._functions.method(f"{self._name}.{name}", Method(name))
        return RemoteMethod(self, name, function, getattr(self._class, name))

    def _no_method(self, name: str) -> str:
        known = ", ".join(self._known()) or "none"
        return (
            f"{self._name} has no method `{name}`; it has {known}. Attributes of the object stay "
            "in its worker: write a method that returns them"
        )

    def _known(self) -> list[str]:
        return public_methods(self._class)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self._known()})

    def _finalize(self) -> None:
        if callable(getattr(self._class, CLOSE, None)):
            self._method(CLOSE)(deadline=FINALIZE_TIME)


class ServedObject(RemoteObject):
    """An object of a Python class that a server offers, from `Grid.object`."""

    def __init__(
        self,
        grid: Grid,
        name: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        start_timeout: float | None,
        *,
        server: str,
    ) -> None:
        #: Descriptions of the methods.
        self._methods: dict[str, str] = {}
        self._made: dict[str, RemoteMethod] = {}
        self._reserve(grid, name, server, python=True)
        try:
            self._wait_for_worker(start_timeout)
            making = grid._native.register(f"{name}.__init__")
            call: Call[dict[str, str]] = grid._native.submit(
                grid, making, args, kwargs, DEFAULT, self._on
            )
            # What the constructor raises is raised here.
            self._methods = call.result()
        except BaseException:
            self._release()
            raise

    def __getattr__(self, name: str) -> RemoteMethod:
        methods = self.__dict__.get("_methods", {})
        if name not in methods:
            known = ", ".join(sorted(methods)) or "none"
            raise AttributeError(
                f"{self.__dict__.get('_name')} has no method `{name}`; it has {known}"
            )
        method = self._made.get(name)
        if method is None:
            self._grid._check_process()
            function = self._grid._native.register(f"{self._name}.{name}")
            method = self._made[name] = RemoteMethod(self, name, function)
            method.__doc__ = methods[name]
        return method

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self._methods})

    def _finalize(self) -> None:
        if CLOSE in self._methods:
            self.__getattr__(CLOSE)(deadline=FINALIZE_TIME)


#: What is not bound to the proxy: nested classes, and methods in C, which refuse it.
_UNBOUND = (type, types.MethodDescriptorType, types.WrapperDescriptorType)


class RemoteMethod:
    """A method of a remote object. Call it, or `submit` a call of it."""

    def __init__(
        self, owner: RemoteObject, name: str, function: Function, method: Any = None
    ) -> None:
        self._owner = owner
        self._function = function
        self.__name__ = name
        self.__qualname__ = function.name
        if method is None:
            return
        functools.update_wrapper(self, method, assigned=("__doc__",), updated=())
        if isinstance(method, _UNBOUND) or not hasattr(method, "__get__"):
            del self.__wrapped__
        else:
            # So that `help` and `inspect.signature` show no `self`.
            self.__wrapped__: Callable[..., Any] = method.__get__(owner, vars(owner)["_class"])

    def __call__(self, /, *args: Any, deadline: float | None = None, **kwargs: Any) -> Any:
        return self.submit(*args, deadline=deadline, **kwargs).result()

    def submit(self, /, *args: Any, deadline: float | None = None, **kwargs: Any) -> Call[Any]:
        """Call it and return at once, with what will be the result.

        Calls run in the order in which they are submitted. `deadline`: seconds from now after which
        the call fails. Raises ObjectLost, GridClosed, and whatever pickling the arguments raises.
        """
        owner = self._owner
        grid = owner._grid
        grid._check_process()
        options = DEFAULT if deadline is None else CallOptions(deadline=deadline)
        function, on = self._function, owner._on
        if grid._has_servers and _tracing.is_used():
            return _tracing.submitted(
                function.name,
                options,
                lambda options: grid._native.submit(grid, function, args, kwargs, options, on),
            )
        return grid._native.submit(grid, function, args, kwargs, options, on)

    def __repr__(self) -> str:
        return f"<gridrpc method {self.__qualname__}>"

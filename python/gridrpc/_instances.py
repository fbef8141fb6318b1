"""What the worker of a remote object runs: it makes the object, and calls its methods."""

from __future__ import annotations

from gridrpc._wrapped import runnable

TYPE_CHECKING = False  # as in `__init__`

if TYPE_CHECKING:
    from typing import Any

#: The object of this worker, once it has been made.
_made: list[Any] = []


def make(cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Make the object of this worker."""
    _made.append(cls(*args, **kwargs))


class Method:
    """A method of the object, as a callable that is sent like any pickled function."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return runnable(getattr(_made[0], self.name))(*args, **kwargs)

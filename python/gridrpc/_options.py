"""Options of calls, and resources that machines have for them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from gridrpc import _native
from gridrpc._native import CallOptions

#: The most of anything: more than fits into a file or a message.
MOST = (1 << 63) - 1
#: The longest name of a resource, bytes.
LONGEST_NAME = 255
#: The resource that is counted in bytes.
MEMORY = "memory"


#: Options of a call that asks for nothing.
DEFAULT: Final[CallOptions] = CallOptions()
#: What a caller gives for them, in the order of `call_options`.
NOTHING_ASKED: Final = (None, False, 0, None, 1, None, None, None)


def call_options(  # noqa: PLR0917 (options in one order)
    deadline: float | None,
    idempotent: bool,
    priority: int,
    server: int | None,
    cores: int,
    memory: int | str | None,
    resources: Mapping[str, int] | None,
    expected: float | None,
) -> CallOptions:
    """Options of calls, checked. `server`: its number. Raises ValueError."""
    if isinstance(cores, bool) or not isinstance(cores, int) or not 1 <= cores < 1 << 31:
        raise ValueError(f"`cores` is {cores!r}: give a number from 1 on")
    if expected is not None and not _is_time(expected):
        raise ValueError(f"`expected` is {expected!r}: give seconds, a finite number from 0 on")
    requested = amounts(resources) if resources is not None else {}
    if memory is not None:
        requested[MEMORY] = memory_bytes(memory)
    return CallOptions(
        deadline=deadline,
        idempotent=idempotent,
        priority=priority,
        server=server,
        cores=cores,
        resources=list(requested.items()),
        expected=expected,
    )


def checked_ranks(ranks: int) -> int:
    """A number of ranks of MPI, or 0 for none. Raises ValueError."""
    if isinstance(ranks, bool) or not isinstance(ranks, int) or not 0 <= ranks < 1 << 16:
        raise ValueError(f"`ranks` is {ranks!r}: give a number from 1 on")
    return ranks


def memory_bytes(memory: int | str) -> int:
    """A size of memory in bytes. Raises ValueError."""
    size: int | None = None
    if isinstance(memory, str):
        size = _native.memory_size(memory)
    elif isinstance(memory, int) and not isinstance(memory, bool):
        size = memory
    if size is None or not 0 <= size <= MOST:
        raise ValueError(
            f'`memory` is {memory!r}: give a size such as "4 GB" or "512 MiB", or a number of bytes'
        )
    return size


def amounts(resources: Mapping[str, int]) -> dict[str, int]:
    """How much of each resource, checked. Raises ValueError."""
    if not isinstance(resources, Mapping):
        text = f'`resources` is {resources!r}: give a dict, such as {{"gpu": 1}}'
        raise ValueError(text)  # noqa: TRY004 (as for all that is wrong with it)
    for name, amount in resources.items():
        if name == MEMORY:
            raise ValueError('`resources` has "memory": give `memory`, such as memory="4 GB"')
        if not isinstance(name, str) or not 1 <= len(name.encode()) <= LONGEST_NAME:
            raise ValueError(
                f"`resources` has the name {name!r}: give a text of 1 to {LONGEST_NAME} bytes"
            )
        if isinstance(amount, bool) or not isinstance(amount, int) or not 0 <= amount <= MOST:
            raise ValueError(f"`resources` has {amount!r} of {name!r}: give a number from 0 on")
    return dict(resources)


def offered(memory: int | str, resources: Mapping[str, int]) -> list[tuple[str, int]]:
    """What this machine has for calls; no memory given: what it has."""
    size = memory_bytes(memory) if memory else _native.memory_of_machine()
    return [*amounts(resources).items(), (MEMORY, size)]


def _is_time(value: object) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and value >= 0  # type: ignore[arg-type, operator]

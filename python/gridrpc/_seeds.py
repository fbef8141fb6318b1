"""Random numbers of maps and calls: the seeds that their generators follow from."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from gridrpc._wrapped import Seeded

if TYPE_CHECKING:
    from numpy.random import BitGenerator, Generator, SeedSequence

    Seed: TypeAlias = int | Sequence[int] | SeedSequence | Generator
    #: True: the next seed of the grid; None and False: no generators.
    Rng: TypeAlias = bool | Seed | None


class Seeds:
    """The seeds of a grid's maps and calls: they follow from one, in the order of the requests."""

    def __init__(self, seed: Seed | None) -> None:
        """`seed`: None: the system draws it. Raises what `seed_of` raises."""
        from numpy.random import PCG64, SeedSequence

        #: Whether the seeds are the same in each run.
        self.are_fixed = seed is not None
        self._parent, self._kind = (
            (SeedSequence(), PCG64) if seed is None else seed_of(seed, "seed")
        )
        # NumPy's `spawn` may give two threads the same one.
        self._lock = threading.Lock()

    def take(self) -> tuple[SeedSequence, type[BitGenerator]]:
        """The next one, and the kind of the generators."""
        with self._lock:
            return self._parent.spawn(1)[0], self._kind

    def generator(self) -> Generator:
        """A generator of the next one."""
        from numpy.random import Generator

        seed, kind = self.take()
        return Generator(kind(seed))


def seeding(seed: SeedSequence, kind: type[BitGenerator]) -> Callable[[Any], Seeded]:
    """What makes of a function one that gets a generator of this kind for each item."""
    entropy: Any = seed.entropy

    def seeded(function: Any) -> Seeded:
        return Seeded(function, entropy, tuple(seed.spawn_key), seed.pool_size, kind)

    return seeded


def seed_of(seed: Any, name: str) -> tuple[SeedSequence, type[BitGenerator]]:
    """A seed as a sequence, and the kind of the generators that follow from it.

    `name`: of the argument. Raises TypeError and ValueError for what is no seed, and
    ModuleNotFoundError without NumPy.
    """
    from numpy.random import PCG64, Generator, SeedSequence

    if isinstance(seed, Generator):
        own = seed.bit_generator.seed_seq
        if not isinstance(own, SeedSequence):
            raise TypeError(f"`{name}` is a generator without a SeedSequence: {own!r}")
        return own.spawn(1)[0], type(seed.bit_generator)
    if isinstance(seed, SeedSequence):
        return seed.spawn(1)[0], PCG64
    try:
        if isinstance(seed, bool):
            raise TypeError("a bool is no seed")
        return SeedSequence(seed), PCG64
    except (TypeError, ValueError) as error:
        also = "True, " if name == "rng" else ""
        raise type(error)(
            f"`{name}` is {seed!r}: give {also}a seed from 0 on, a list of them, a SeedSequence or "
            f"a numpy.random.Generator ({error})"
        ) from None

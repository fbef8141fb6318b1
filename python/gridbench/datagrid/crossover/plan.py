"""What is to be measured, and what of it is missing."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from gridbench.datagrid.crossover.record import Identity, Sharing, Side
from gridbench.datagrid.crossover.request import Request
from gridbench.formats import compact_size, counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One measurement."""

    side: Side
    engine: str
    readers: int
    bytes: int
    repeat: int

    @property
    def identity(self) -> Identity:
        """As that of its record."""
        return self.side, self.engine, self.readers, self.bytes, self.repeat

    def told(self) -> str:
        """In words."""
        return f"{self.engine}, {compact_size(self.bytes)} for {counted(self.readers, 'reader')}"

    def done(self, **found: Any) -> Sharing:
        """Its record."""
        return self._record(status="done", **found)

    def left_out(
        self, status: Literal["failed", "skipped"], why: str, load: dict[str, Any] | None = None
    ) -> Sharing:
        """Its record, if it could not be done."""
        return self._record(status=status, why=why, load=load)

    def _record(self, **found: Any) -> Sharing:
        return Sharing(
            side=self.side,
            engine=self.engine,
            readers=self.readers,
            bytes=self.bytes,
            repeat=self.repeat,
            at=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            **found,
        )


def wanted_of(request: Request) -> list[Wanted]:
    """All measurements: each round in an order of its own, drawn from the seed, in which those of
    a data grid stand together, as its cluster is started for them."""
    found: list[Wanted] = []
    for number in range(request.rounds):
        draw = random.Random(f"{request.seed} {number}")
        compute = _all("compute grid", request.engines, request, number)
        draw.shuffle(compute)
        found += compute
        for name in request.data_grids:
            own = _all("data grid", [name], request, number)
            draw.shuffle(own)
            found += own
    return found


def _all(side: Side, engines: Iterable[str], request: Request, number: int) -> list[Wanted]:
    return [
        Wanted(side=side, engine=engine, readers=readers, bytes=size, repeat=number)
        for engine in engines
        for readers in request.cores
        for size in request.sizes
    ]

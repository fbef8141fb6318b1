"""Clusters of the Ninf-G2 paper, the sizes of its samples, and how runs divide processors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from gridbench.published.figures import table

GrainName = Literal["10-days", "month", "100-days"]
LayoutName = Literal[
    "ume",
    "koume",
    "presto3",
    "venus",
    "jupiter",
    "amata",
    "modern",
    "pairs",
    "ninf-g",
    "sc2003",
]
_KB = 1024
INPUT = round(3.4 * _KB)
"""Bytes of an initial state."""
PUBLISHED_SAMPLES = 5
"""Samples of each processor."""


@dataclass(frozen=True, slots=True)
class Grain:
    """A forecast of the paper."""

    seconds: float
    """Of a sample on a processor."""
    output: int
    """Bytes of its result."""
    frames: int
    """States of the result, one for each six hours."""


GRAINS: dict[GrainName, Grain] = {
    "10-days": Grain(12.0, 138 * _KB, 40),
    "month": Grain(35.0, 408 * _KB, 120),
    "100-days": Grain(120.0, round(1.35 * _KB * _KB), 400),
}


@dataclass(frozen=True, slots=True)
class EnsembleCluster:
    """A cluster as seen from the client, at AIST."""

    name: str
    """In lower case, as options and servers have it."""
    site: str
    processors: int
    """That the paper's had."""
    delay: float
    """Seconds, one way."""
    throughput: float
    """Bytes of payload per second."""


@cache
def clusters() -> Mapping[str, EnsembleCluster]:
    """All clusters of the paper, by name."""
    return {
        row["cluster"].lower(): EnsembleCluster(
            name=row["cluster"].lower(),
            site=row["site"],
            processors=int(row["cpus"]),
            delay=float(row["latency_ms"]) / 1e3,
            throughput=float(row["throughput_mbs"]) * 1e6,
        )
        for row in table("ninfg2-clusters")
    }


_MODERN = EnsembleCluster("modern", "here", 5000, 20e-6, 1195e6)
"""Behind 10 Gbit/s: the paper's clusters have neither so many processors nor such links."""


def cluster_of(name: str) -> EnsembleCluster:
    """A cluster of the paper, or `modern`."""
    return _MODERN if name == _MODERN.name else clusters()[name]


Shares = tuple[tuple[str, int], ...]
"""Clusters by name, each with the processors that a run uses."""


@dataclass(frozen=True, slots=True)
class Division:
    """How a run divides its processors and samples."""

    shares: Shares
    samples: int
    """Of each processor."""

    @property
    def processors(self) -> int:
        """Of all clusters."""
        return sum(count for _, count in self.shares)


_FIXED: dict[LayoutName, Sequence[Division]] = {
    "ninf-g": [Division((("ume", 3), ("venus", 3), ("jupiter", 3), ("amata", 1)), 5)],
    # The paper does not say how its 500 processors were divided among its five clusters.
    "sc2003": [
        Division((("ume", 128), ("presto3", 256), ("venus", 64), ("jupiter", 48), ("amata", 4)), 2)
    ],
}


def divisions(layout: LayoutName, processors: Sequence[int]) -> list[Division]:
    """The runs of a layout; `processors`: those of a single cluster."""
    if layout == "pairs":
        return [
            Division(
                tuple(
                    (name, count)
                    for name in ("ume", "presto3")
                    if (count := int(row[f"{name}_cpus"]))
                ),
                PUBLISHED_SAMPLES,
            )
            for row in table("ninfg2-multicluster")
        ]
    if layout in _FIXED:
        return list(_FIXED[layout])
    return [Division(((str(layout), count),), PUBLISHED_SAMPLES) for count in processors]


def told_shares(shares: Shares) -> str:
    """`ume 50 + presto3 150`."""
    return " + ".join(f"{name} {count}" for name, count in shares)


def shares_of(reported: str) -> Shares:
    """The shares that `told_shares` has written."""
    parts = (part.split() for part in reported.split(" + "))
    return tuple((name, int(count)) for name, count in parts)

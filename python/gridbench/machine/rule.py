"""The one rule by which a measurement counts as disturbed, whatever was measured."""

from __future__ import annotations

from typing import Any, Literal, Protocol

from gridbench.machine.available import available_count
from gridbench.machine.load import Load

Judgement = Literal["undisturbed", "disturbed", "not known"]

_LEAST = 0.15
_SHARE = 0.02


def tolerated(processors: int | None = None) -> float:
    """Processors that others may use of so many (those we may use) while something is measured."""
    return max(_LEAST, _SHARE * (processors or available_count()))


def judged(load: Load) -> Judgement:
    """Whether it disturbed what was measured meanwhile on this machine."""
    if load.others <= tolerated():
        return "undisturbed"
    if load.apart and load.at_least <= tolerated():
        return "not known"
    return "disturbed"


def is_quiet(share: float, processors: int) -> bool:
    """The same of a record that has only the share of so many processors that others used; False
    if that is NaN, not known."""
    return share * processors <= tolerated(processors)


class Judged(Protocol):
    """A record of something that was measured."""

    @property
    def load(self) -> dict[str, Any] | None:
        """What other programs did meanwhile, as `gridbench.machine.watch.Watch` records it."""


def disturbed(record: Judged) -> bool:
    """Whether the record says that they disturbed it."""
    return (record.load or {}).get("judgement") == "disturbed"
